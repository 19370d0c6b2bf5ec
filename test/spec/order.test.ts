import { orderAddons } from '../../src/spec/order.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/order');

const addon = (name: string, requires: readonly string[] = [], fulfills: readonly string[] = []) => ({
  name,
  requires,
  fulfills,
});
const names = (...addons: readonly ReturnType<typeof addon>[]): readonly string[] =>
  orderAddons(addons).map(({ name }) => name);

test('known add-ons come in kURL’s order, unknown ones after them in the order given', () => {
  const given = ['zeta', 'velero', 'alpha', 'rook', 'containerd', 'kubernetes', 'cert-manager', 'flannel'];
  assert.equal(names(...given.map((name) => addon(name))), [
    'containerd',
    'kubernetes',
    'flannel',
    'rook',
    'velero',
    'cert-manager',
    'zeta',
    'alpha',
  ]);
});

test('an unknown add-on moves up before one that requires it, and no further', () => {
  assert.equal(names(addon('rook'), addon('contour', ['lb']), addon('b'), addon('lb')), ['rook', 'lb', 'contour', 'b']);
  assert.equal(names(addon('a', ['b']), addon('b'), addon('c')), ['b', 'a', 'c']);
});

test('what an add-on fulfills counts as its name, and one that comes early enough is enough', () => {
  const store = ['object-store'];
  assert.equal(names(addon('a', store), addon('s', [], store), addon('rook', [], store)), ['rook', 'a', 's']);
  assert.equal(names(addon('a', store), addon('s', [], store)), ['s', 'a']);
});

test('known add-ons do not move among themselves, and what nobody provides does not matter', () => {
  assert.equal(names(addon('rook', ['velero']), addon('velero', ['rook', 'nothing'])), ['rook', 'velero']);
});

test('a cycle is named', () => {
  const error = assert.throwsWith(() => names(addon('x'), addon('a', ['b']), addon('b', ['a'])), 'SPEC_INVALID');
  assert.match(error.message, 'a requires b requires a');
});

test('long lists of packages are looked through once', () => {
  const many = Array.from({ length: 30_000 }, (_, at) => `r${at}`);
  const long = (name: string) => ({ name, requires: many, fulfills: many.map((one) => `${one}-of-${name}`) });
  const started = performance.now();
  assert.equal(
    orderAddons([long('a'), long('b')]).map(({ name }) => name),
    ['a', 'b'],
  );
  // Each against each took four times as long.
  assert.ok(performance.now() - started < 5000);
});

test.run();
