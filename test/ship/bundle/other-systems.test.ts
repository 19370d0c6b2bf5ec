import * as fc from 'fast-check';
import { memorySource, readIndex } from '../../../src/formats/archive/read.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import { parseBundleJson } from '../../../src/core/bundle.ts';
import { OS_IDS, type OsId } from '../../../src/core/os.ts';
import { archivePackages, type SourcePackage } from '../../../src/runtime/node/source.ts';
import * as assert from '../../support/assert.ts';
import type { TestPackage } from '../../support/bundles.ts';
import { bundleOfPackages } from '../../support/deltas.ts';
import { noise } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';

// soak: random cases
const test = suite('ship/bundle/other-systems');
const signal = new AbortController().signal;

const shared = noise(9000, 4);
const PACKAGES: readonly TestPackage[] = [
  {
    name: 'alpha',
    version: '1.0.0',
    files: [
      { path: 'install.sh', data: 'alpha() { :; }\n' },
      { path: 'rhel-8/archives/a.rpm', data: shared },
      { path: 'ubuntu-22.04/archives/a.deb', data: noise(5000, 2) },
      { path: 'rhel-8.txt', data: 'no folder' },
    ],
  },
  {
    name: 'beta',
    version: '1.0.0',
    files: [
      { path: 'install.sh', data: 'beta() { :; }\n' },
      { path: 'data/same', data: shared },
    ],
  },
];

const INSTALL = { path: 'install.sh', data: 'x() { :; }\n' };

async function packagesOf(bytes: Uint8Array): Promise<readonly SourcePackage[]> {
  const source = memorySource('b', bytes);
  await verifyArchive(source, { signal });
  return archivePackages(source, await readIndex(source, { signal }), { signal });
}

test('folders of other systems are left out, and what stays still proves each package', async () => {
  const whole = await bundleOfPackages(PACKAGES);
  const { plan, bytes } = await bundleOfPackages(PACKAGES, { os: ['ubuntu-22.04'] });
  const paths = plan.splice.index.entries.map(({ path }) => path);
  assert.not(paths.includes('addons/alpha/1.0.0/rhel-8/archives/a.rpm'));
  assert.ok(paths.includes('addons/alpha/1.0.0/ubuntu-22.04/archives/a.deb'));
  assert.ok(paths.includes('addons/alpha/1.0.0/rhel-8.txt'));
  assert.not(paths.includes('addons/beta/1.0.0/addon.omitted.json'));
  assert.equal(plan.bundle.os, { kept: ['ubuntu-22.04'], omitted: 9000 });
  assert.equal(plan.bundle.packages, whole.plan.bundle.packages);
  const found = await packagesOf(bytes);
  assert.equal(
    found.map(({ addon, omitted }) => [addon.digest, omitted]),
    [
      [plan.packages[0]?.digest, ['rhel-8']],
      [plan.packages[1]?.digest, []],
    ],
  );
  // The payload that went with the folder is there for the package that still has it.
  assert.ok(whole.bytes.byteLength - bytes.byteLength < 1000);
  const links = [whole.plan, plan].map(({ splice }) => splice.index.entries.at(-1)?.linkTo);
  assert.equal(links, ['addons/alpha/1.0.0/rhel-8/archives/a.rpm', undefined]);
});

test('whatever is kept of whatever is there, all packages prove themselves', async () => {
  const folder = fc.constantFrom('rhel-7', 'rhel-7-force', 'rhel-8', 'ubuntu-22.04', 'assets', 'rhel-80');
  const paths = fc.uniqueArray(fc.tuple(folder, fc.constantFrom('a', 'b/c', 'd é')), {
    maxLength: 8,
    selector: String,
  });
  const kept = fc.subarray([...OS_IDS], { minLength: 1 });
  const property = fc.asyncProperty(paths, fc.integer({ min: 0, max: 9000 }), kept, async (below, size, os) => {
    // Equal contents become links in the bundle.
    const files = below.map((parts, at) => ({ path: parts.join('/'), data: noise(size, (at % 2) + 1) }));
    const packages = ['one', 'two'].map((name) => ({ name, version: '1.0.0', files: [...files, INSTALL] }));
    const { bytes, plan } = await bundleOfPackages(packages, { os });
    const gone = OS_IDS.filter((id) => !os.includes(id) && below.some(([first]) => first === id));
    for (const [at, { addon, omitted, files: there }] of (await packagesOf(bytes)).entries()) {
      assert.is(addon.digest, plan.packages[at]?.digest);
      assert.equal(omitted, gone);
      assert.not(there.some(({ path }) => gone.some((id) => path.startsWith(`${id}/`))));
    }
  });
  await fc.assert(property, cases(60));
});

test('where nothing is to be left out only bundle.json says what was asked for', async () => {
  const whole = await bundleOfPackages(PACKAGES);
  const kept: readonly OsId[] = ['ubuntu-22.04', 'rhel-8'];
  const { plan } = await bundleOfPackages(PACKAGES, { os: kept });
  const names = (of: typeof plan): readonly string[] => of.splice.index.entries.map(({ path }) => path);
  assert.equal(names(plan), names(whole.plan));
  assert.equal(plan.bundle.os, { kept, omitted: 0 });
  assert.is(whole.plan.bundle.os, undefined);
});

test('a bundle.json that says something odd of its systems is refused', async () => {
  const { plan } = await bundleOfPackages(PACKAGES, { os: ['rhel-8'] });
  for (const os of [
    1,
    {},
    { kept: [], omitted: 0 },
    { kept: ['a/b'], omitted: 0 },
    { kept: ['\u001b[2J'], omitted: 0 },
    { kept: ['rhel-8'], omitted: -1 },
    { kept: ['rhel-8'], omitted: 0.5 },
  ]) {
    const text = JSON.stringify({ ...plan.bundle, os });
    assert.throwsWith(
      () => parseBundleJson(text, 'b'),
      'PACKAGE_INVALID',
      /bundle\.json: os(?:\.kept|\.omitted)?(?:\[0\])?: /,
    );
  }
});

test.run();
