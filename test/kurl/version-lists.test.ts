import * as assert from '../support/assert.ts';
import { findings } from '../../src/kurl/finding.ts';
import { versionOrders } from '../../src/kurl/migrate.ts';
import { readVersionLists } from '../../src/kurl/version-lists.ts';
import { versionsScript } from '../support/kurl-repository.ts';
import { suite } from '../support/suite.ts';

const test = suite('migrate/version-lists');

test('lists of texts, with comments and commas as kURL writes them', () => {
  const text = versionsScript({
    rook: ['1.0.4', '1.7.11'],
    weave: ['2.6.5-20220720'],
    minio: ['2022-08-02T23-59-16Z'],
  });
  const { lists, problem } = readVersionLists('v.js', `/* x */${text}`);
  assert.is(problem, undefined);
  assert.equal(
    [...lists],
    [
      ['rook', ['1.0.4', '1.7.11']],
      ['weave', ['2.6.5-20220720']],
      ['minio', ['2022-08-02T23-59-16Z']],
    ],
  );
});

test('what is no plain list stops the reading there, and is named', () => {
  const cases: readonly (readonly [string, RegExp, number])[] = [
    ['export const x = 1;', /InstallerVersions is missing/, 0],
    ['exports.InstallerVersions = {\n a: ["1"],\n ...others,\n}', /not the name of an add-on/, 1],
    ['exports.InstallerVersions = { a: ["1"], b: [`2`] }', /not a plain list/, 1],
    ['exports.InstallerVersions = { a: make() }', /"\[" is missing/, 0],
    ['exports.InstallerVersions = { a: ["../x"] }', /is not a version/, 0],
    ['exports.InstallerVersions = { a: ["1"], a: ["2"] }', /a is listed twice/, 1],
    ['exports.InstallerVersions = { a: ["1"', /"," is missing/, 0],
    ['exports.InstallerVersions = {', /not the name/, 0],
  ];
  for (const [text, message, count] of cases) {
    const { lists, problem } = readVersionLists('v.js', text);
    assert.match(problem?.message ?? '', message, text);
    assert.is(lists.size, count, text);
  }
  const { problem } = readVersionLists('v.js', 'exports.InstallerVersions = {\n a: ["1"],\n ...others,\n}');
  assert.equal(problem?.place, { file: 'v.js', line: 3, column: 2, length: 1 });
});

test('the order holds versions that have a folder; what differs from the list is told', () => {
  const { lists } = readVersionLists(
    'v.js',
    versionsScript({ rook: ['1.0.4', 'gone', '1.7.11'], certManager: ['1.0.3'], other: ['1'] }),
  );
  const { list, add } = findings();
  const orders = versionOrders(
    [
      { tree: 'addons', name: 'rook', versions: ['1.0.4', '1.7.11', '1.8.0'] },
      { tree: 'addons', name: 'cert-manager', versions: ['1.0.3', '1.9.1'] },
      { tree: 'addons', name: 'calico', versions: ['3.9.1'] },
    ],
    { lists, problem: undefined },
    add,
  );
  assert.equal(orders, [{ tree: 'addons', name: 'rook', versions: ['1.0.4', '1.7.11'] }]);
  assert.equal(
    list.map(({ grade, subject, message }) => `${grade} ${subject}: ${message}`),
    [
      'note rook: listed, but without a folder: gone',
      'note rook: not listed, so after the listed versions: 1.8.0',
      "note cert-manager: the latest version is the highest: its list is named certManager, which kURL's catalog does not find",
      'note calico: the latest version is the highest: it has no list',
    ],
  );
});

test.run();
