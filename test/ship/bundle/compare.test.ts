import { comparePlans, type PlanDifference } from '../../../src/ship/bundle/compare.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages, specOf, type TestPackage } from '../../support/bundles.ts';
import { noise } from '../../support/packages.ts';
import { planSpec } from '../../support/saved-plans.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/bundle/compare');

function addon(name: string, version: string, seed: number): TestPackage {
  const files = [
    { path: 'install.sh', data: `${name}() { :; }\n` },
    { path: 'assets/same', data: noise(9000, 1) },
    { path: 'assets/blob', data: noise(5000, seed) },
  ];
  return { name, version, files };
}

async function differ(
  before: readonly TestPackage[],
  after: readonly TestPackage[],
  specs: readonly [string, string],
  signal: AbortSignal,
): Promise<PlanDifference> {
  await using one = await tree();
  await using other = await tree();
  await using was = await planSpec(one, await publishTestPackages(one, before, signal), specs[0], { signal });
  await using is = await planSpec(other, await publishTestPackages(other, after, signal), specs[1], { signal });
  return comparePlans(was.plan, is.plan);
}

test('equal plans are the same, wherever they were made', async ({ signal }) => {
  const packages = [addon('alpha', '1.0.0', 2)];
  const spec = specOf({ alpha: 'latest' });
  const found = await differ(packages, packages, [spec, spec], signal);
  assert.equal([found.isSame, found.packages, found.files, found.added, found.removed], [true, [], [], 0, 0]);
});

test('a newer version, a new and a lost add-on, and one that was built anew are told apart', async ({ signal }) => {
  const found = await differ(
    [addon('alpha', '1.0.0', 2), addon('beta', '1.0.0', 3), addon('gamma', '1.0.0', 4)],
    [addon('alpha', '1.1.0', 2), addon('beta', '1.0.0', 5), addon('delta', '3.0.0', 6)],
    [
      specOf({ alpha: 'latest', beta: 'latest', gamma: 'latest' }),
      specOf({ alpha: 'latest', beta: 'latest', delta: 'latest' }),
    ],
    signal,
  );
  assert.is(found.isSame, false);
  assert.equal(
    found.packages.map(({ name, before, after }) => [name, before, after]),
    [
      ['alpha', '1.0.0', '1.1.0'],
      ['beta', '1.0.0', '1.0.0'],
      ['delta', undefined, '3.0.0'],
      ['gamma', '1.0.0', undefined],
    ],
  );
  assert.equal(found.files, ['bundle.json', 'installer.yaml']);
  assert.ok(found.added > 10_000 && found.added < 13_000, String(found.added));
});

test.run();
