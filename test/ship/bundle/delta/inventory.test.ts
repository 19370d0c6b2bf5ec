import { formatInventory, makeInventory, parseInventory } from '../../../../src/ship/bundle/delta/inventory.ts';
import { canonicalJson, digestOf, hexOf } from '../../../../src/core/digest.ts';
import * as assert from '../../../support/assert.ts';
import { suite } from '../../../support/suite.ts';

// not fast: bundles of many sizes
const test = suite('ship/bundle/inventory', { timeoutMs: 60_000 });

const [ONE, TWO] = [digestOf('1'), digestOf('2')];
const MADE = makeInventory({
  payloads: [
    { digest: TWO, size: 2 },
    { digest: ONE, size: 1 },
    { digest: TWO, size: 2 },
    { digest: digestOf(''), size: 0 },
  ],
  packages: ['addons/b/1', 'addons/a/1', 'addons/b/1'],
  tool: '1.2.3',
});

test('the same payloads make the same inventory, in whatever order they were found', () => {
  const { payloads, packages, digest } = MADE;
  // "6b…" and "d4…"
  const expected = [
    [hexOf(ONE), 1],
    [hexOf(TWO), 2],
  ];
  assert.equal(payloads, expected);
  assert.equal(packages, ['addons/a/1', 'addons/b/1']);
  assert.is(digest, digestOf(canonicalJson(expected)));
  assert.is(formatInventory(MADE), `${canonicalJson(MADE)}\n`);
  assert.equal(parseInventory(formatInventory(MADE), 'i.json'), MADE);
});

test('its identity is that of the payloads alone: tool and packages are for people', () => {
  const payloads = MADE.payloads.map(([hex, size]) => ({ digest: `sha256:${hex}` as const, size }));
  assert.is(makeInventory({ payloads, packages: [], tool: '9.9.9' }).digest, MADE.digest);
});

test('an inventory of another format is told, whatever else stands in it', () => {
  const error = assert.throwsWith(
    () => parseInventory('{"format":2}', 'i.json'),
    'UNSUPPORTED',
    /unknown inventory format 2/,
  );
  assert.match(error.hint ?? '', 'a newer curlew');
});

for (const [title, change, message] of [
  ['a digest that is not its own', { digest: ONE }, /its digest does not match/],
  ['no digest', { digest: undefined }, /: digest: missing/],
  ['payloads that are no list', { payloads: {} }, /payloads/],
  ['a payload that is no pair', { payloads: [[hexOf(ONE)]] }, /payloads\[0\]: not a digest with a size/],
  ['a size that is a text', { payloads: [[hexOf(ONE), '1']] }, /payloads\[0\]: not a digest with a size/],
  ['a size below one', { payloads: [[hexOf(ONE), 0]] }, /payloads\[0\]: not a digest with a size/],
  ['a size that is no whole number', { payloads: [[hexOf(ONE), 1.5]] }, /payloads\[0\]: not a digest with a size/],
  ['a size beyond all files', { payloads: [[hexOf(ONE), 2 ** 60]] }, /payloads\[0\]: not a digest with a size/],
  ['a digest in capitals', { payloads: [[hexOf(ONE).toUpperCase(), 1]] }, /payloads\[0\]: not a digest with a size/],
  ['a payload twice', { payloads: [...MADE.payloads, ...MADE.payloads.slice(1)] }, /payloads\[2\]: duplicated/],
  ['payloads out of order', { payloads: MADE.payloads.toReversed() }, /payloads\[1\]: duplicated or out of order/],
  ['a package outside', { packages: ['addons/../../etc'] }, /packages/],
  ['a package that is a folder', { packages: ['etc/a/1'] }, /packages/],
  ['no tool', { tool: 7 }, /tool/],
  ['a tool like a book', { tool: 'x'.repeat(101) }, /tool/],
] as const) {
  test(`${title} is refused`, () => {
    const text = JSON.stringify({ ...MADE, ...change });
    assert.throwsWith(() => parseInventory(text, 'i.json'), 'FILE_UNUSABLE', message);
  });
}

test('what is no JSON object is refused', () => {
  for (const text of ['', 'x', '[]', 'null', '7']) {
    assert.throwsWith(() => parseInventory(text, 'i.json'), 'FILE_UNUSABLE', /^cannot read i\.json: not an inventory/);
  }
});

test('a million payloads are read, one more is refused', () => {
  const rows = Array.from({ length: 1_000_001 }, (_, at) => [at.toString(16).padStart(64, '0'), at + 1] as const);
  const most = rows.slice(0, -1);
  const text = (payloads: readonly unknown[]): string =>
    JSON.stringify({ ...MADE, payloads, digest: digestOf(JSON.stringify(payloads)) });
  assert.is(parseInventory(text(most), 'i.json').payloads.length, 1_000_000);
  assert.throwsWith(() => parseInventory(text(rows), 'i.json'), 'FILE_UNUSABLE', /more than 1000000 payloads/);
});

test('a text of very many values is refused before they fill the memory', () => {
  const text = `{"payloads":[${'0,'.repeat(3_000_001)}0]}`;
  // Its other mistakes would be reported first if it were read.
  assert.throwsWith(() => parseInventory(text, 'x'), 'FILE_UNUSABLE', /more than 1000000 payloads/);
});

test.run();
