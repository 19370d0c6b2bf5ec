/** Packages in a bundle that is without the folders of some operating systems, on nodes. */
import { execa } from 'execa';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import { isOsId, OS_IDS, osFolders, type OsId } from '../../src/core/os.ts';
import { addonRef } from '../../src/core/ref.ts';
import { runLibrary } from '../../src/runtime/host/run-library.ts';
import { knownPackage, openRemotePackage } from '../../src/runtime/node/remote-package.ts';
import { keptPackage } from '../../src/runtime/node/kept-package.ts';
import { checkPlaced, placedDigest, placedPackage } from '../../src/runtime/node/placed-package.ts';
import { planRun } from '../../src/runtime/plan/plan.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import type { SourcePackage } from '../../src/runtime/node/source.ts';
import { folderPackages } from '../../src/runtime/node/source-folder.ts';
import { nodeStatus } from '../../src/runtime/history/status.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { bundleOfPackages } from '../support/deltas.ts';
import { addon, folderOf, hostileBytes, OMITTED_LIES, rowsOf, WHOLE, without } from '../support/omitted.ts';
import { packagesOf, run, trace } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

// not fast: hundreds of hooks
const test = suite('runtime/omitted-systems', { timeoutMs: 60_000 });
const signal = new AbortController().signal;
const SCRIPTS = `${import.meta.dirname}/../../scripts`;

const REF = addonRef('aaa', '1.0.0', 'addons');

async function bundled(os?: readonly OsId[]): Promise<readonly SourcePackage[]> {
  return packagesOf((await bundleOfPackages([addon('aaa')], { os })).bytes);
}

async function onSystem(box: Tree, id: string, version: string) {
  await writeFile(box.at('os-release'), `ID=${id}\nVERSION_ID="${version}"\n`);
  const env = { PATH: process.env['PATH'], TRACE: box.at('trace'), CURLEW_OS_RELEASE: box.at('os-release') };
  return { env };
}

test('a package in part is recorded as such, and one that has more of it is extracted anew', async () => {
  await using box = await tree();
  const ubuntu = await onSystem(box, 'ubuntu', '22.04');
  const outcomes = async (os?: readonly OsId[]): Promise<readonly unknown[]> => {
    const { addons } = await run(box, await bundled(os), ubuntu);
    const [record] = (await readRecords(box.at('node'))).extracted;
    const [status] = (await nodeStatus(box.at('node'), { signal })).addons;
    assert.equal([status?.inPlace, status?.omitted], [true, record?.omitted]);
    const there = await readdir(box.at('node/addons/aaa/1.0.0'));
    return [addons[0]?.outcome, record?.omitted, there.filter((name) => isOsId(name))];
  };
  const few: readonly OsId[] = ['rhel-7', 'rhel-7-force', 'rhel-8'];
  assert.equal(await outcomes(['ubuntu-22.04']), ['installed', ['rhel-7-force', 'rhel-8'], ['ubuntu-22.04']]);
  assert.is(
    await placedPackage(box.at('node'), REF, digestOf('x'), { ...(await readRecords(box.at('node'))), signal }),
    undefined,
  );
  const more = ['already applied', ['rhel-7-force'], ['rhel-8', 'ubuntu-22.04']];
  assert.equal(await outcomes(['ubuntu-22.04', 'rhel-8']), more);
  // Less of the same takes nothing away.
  assert.equal(await outcomes(['ubuntu-22.04']), more);
  const whole = ['already applied', undefined, ['rhel-7-force', 'rhel-8', 'ubuntu-22.04']];
  assert.equal(await outcomes(), whole);
  assert.equal(await outcomes(['ubuntu-22.04']), whole);
  await assert.rejectsWith(outcomes(few), 'UNSUPPORTED');
});

test('the reason says what the node lacks', async () => {
  await using box = await tree();
  const ubuntu = await onSystem(box, 'ubuntu', '22.04');
  await run(box, await bundled(['ubuntu-22.04']), ubuntu);
  const [source] = await bundled();
  if (source === undefined) throw new Error('a package');
  const { ref, addon: json } = source;
  const facts = { ref, digest: json.digest, requires: [], fulfills: [], images: [], hasInstallScript: true };
  const now = { ...facts, settings: {}, inPlace: json.digest, remote: false, hookLimit: undefined };
  const options = { reapply: false, images: false, variables: [] };
  const { actions } = planRun('install', [now], await readRecords(box.at('node')), options);
  assert.equal(
    actions.filter(({ kind }) => kind === 'extract').map(({ because }) => because),
    ['on this node without rhel-7-force, rhel-8'],
  );
});

test('what lies in place in part is no package of a store, but one to go back to', async () => {
  await using box = await tree();
  const ubuntu = await onSystem(box, 'ubuntu', '22.04');
  await run(box, await bundled(['ubuntu-22.04']), ubuntu);
  const directory = box.at('node');
  const digest = (await placedDigest(directory, REF, { signal })) ?? digestOf('none');
  const judged = async (os?: readonly OsId[]): Promise<unknown> => {
    const [source] = await bundled(os);
    return source && (await checkPlaced(directory, source, { signal })).digest;
  };
  assert.is(await judged(['rhel-7', 'rhel-7-force', 'ubuntu-22.04']), undefined);
  assert.is(await judged(['ubuntu-22.04']), digest);
  assert.is(await placedPackage(directory, REF, digest, { ...(await readRecords(directory)), signal }), undefined);
  const kept = await keptPackage(directory, REF, digest, { signal });
  assert.equal(kept.omitted, ['rhel-7-force', 'rhel-8']);
  await kept.extract(box.at('copy'), { signal });
  assert.ok((await readdir(box.at('copy'))).includes('addon.omitted.json'));
  await rm(box.at('node/addons/aaa/1.0.0/ubuntu-22.04'), { recursive: true });
  assert.is(await placedDigest(directory, REF, { signal }), undefined);
  await assert.rejectsWith(keptPackage(directory, REF, digest, { signal }), 'NOT_FOUND');
});

test('a store has whole packages: one in part is not the one that it should have', async () => {
  const [part, { addon: whole }] = [hostileBytes(without('rhel-8'), rowsOf(folderOf('rhel-8'))), WHOLE];
  await using box = await tree({ 'store/aaa.tar.gz': part });
  const [source] = await packagesOf(part);
  assert.equal([source?.addon.digest, source?.omitted], [whole.digest, ['rhel-8']]);
  const places = [{ store: createFolderStore(box.at('store')), key: 'aaa.tar.gz' }];
  const published = { digest: whole.digest, sha256: digestOf(part), size: part.byteLength };
  const options = { report: noReport, signal };
  for (const [said, message] of [
    [published, /not the package that the catalog names/],
    [undefined, /does not contain exactly one whole package/],
  ] as const) {
    const file = { name: 'aaa-1.0.0', published: said, places };
    await assert.rejectsWith(openRemotePackage(file, options), 'DIGEST_MISMATCH', message);
  }
  // It was whole when it was looked at.
  const [seen] = await bundled();
  if (seen === undefined) throw new Error('a package');
  const known = knownPackage({ name: 'aaa-1.0.0', published, places }, seen, part.byteLength);
  const ubuntu = await onSystem(box, 'ubuntu', '22.04');
  await assert.rejectsWith(run(box, [known], ubuntu), 'DIGEST_MISMATCH', /not the package that was read before/);
});

test('without the word of what was left out the files in place are no package', async () => {
  await using box = await tree();
  const ubuntu = await onSystem(box, 'ubuntu', '22.04');
  await run(box, await bundled(['ubuntu-22.04']), ubuntu);
  await rm(box.at('node/addons/aaa/1.0.0/addon.omitted.json'));
  assert.is(await placedDigest(box.at('node'), REF, { signal }), undefined);
  await run(box, await bundled(['ubuntu-22.04']), ubuntu);
  await stat(box.at('node/addons/aaa/1.0.0/addon.omitted.json'));
});

test('an unpacked bundle is verified with what was left out, before and after a run has moved it', async () => {
  await using box = await tree();
  const ubuntu = await onSystem(box, 'ubuntu', '22.04');
  await writeFile(box.at('b.tar.gz'), (await bundleOfPackages([addon('aaa')], { os: ['ubuntu-22.04'] })).bytes);
  await mkdir(box.at('unpacked'));
  await execa('tar', ['xzf', box.at('b.tar.gz'), '-C', box.at('unpacked')]);
  for (const outcome of ['installed', 'already applied']) {
    const { packages } = await folderPackages(box.at('unpacked'), { directory: box.at('node'), signal });
    assert.equal(
      packages.map(({ omitted }) => omitted),
      [['rhel-7-force', 'rhel-8']],
    );
    assert.is((await run(box, packages, ubuntu)).addons[0]?.outcome, outcome);
  }
  await rm(box.at('node/addons/aaa/1.0.0/addon.omitted.json'));
  assert.equal((await folderPackages(box.at('unpacked'), { directory: box.at('node'), signal })).packages, []);
});

for (const [id, version, folders] of [
  ['rocky', '8.9', 'rhel-8'],
  ['ol', '8.4', 'rhel-8'],
  ['amzn', '2', 'rhel-7, rhel-7-force'],
] as const) {
  test(`a node whose own system was left out is refused before anything is changed: ${id} ${version}`, async () => {
    await using box = await tree();
    const packages = await bundled(['ubuntu-22.04']);
    await assert.rejectsWith(
      run(box, packages, await onSystem(box, id, version)),
      'UNSUPPORTED',
      new RegExp(
        `this machine is ${id} ${version}: .*\\(${folders}\\) were omitted from aaa-1\\.0\\.0; .* for ubuntu-22`,
      ),
    );
    assert.equal(await trace(box), []);
    assert.is(await stat(box.at('node')).catch(() => 'absent'), 'absent');
  });
}

for (const [id, version] of [
  ['ubuntu', '22.04'],
  // Nobody builds packages for these: nothing was left out for them.
  ['ubuntu', '24.04'],
  ['rocky', '9.4'],
  ['debian', '12'],
  ['plan9', '4'],
] as const) {
  test(`what was left out for others stops nothing: ${id} ${version}`, async () => {
    await using box = await tree();
    const { addons } = await run(box, await bundled(['ubuntu-22.04']), await onSystem(box, id, version));
    assert.is(addons[0]?.outcome, 'installed');
  });
}

for (const { title, given, note, code, message } of OMITTED_LIES) {
  test(`what a bundle says of what it left out is not believed: ${title}`, async () => {
    await assert.rejectsWith(packagesOf(hostileBytes(given, note)), code, message);
  });
}

test('what is kept for a system is what nodes of it look into', async () => {
  const versions = ['7', '7.9', '8.4', '9', '10.0', '2', '2023', '20.04', '22.04', '26.04'];
  const systems = ['ubuntu', 'debian', 'centos', 'rhel', 'rocky', 'almalinux', 'ol', 'amzn', 'plan9'];
  for (const version of versions) {
    const ask = `for LSB_DIST in "$@"; do DIST_VERSION=${version} DIST_VERSION_MAJOR=${version.split('.', 1)[0] ?? ''};
      echo "$LSB_DIST: $(curlew_os_names | tr '\\n' ' ')"; done`;
    const options = { scripts: SCRIPTS, env: { PATH: process.env['PATH'] }, signal };
    for (const line of await runLibrary(ask, systems, 'ask', options)) {
      const [system = '', names = ''] = line.split(': ');
      // Nodes take any other release of it for the older one.
      if (system === 'amzn' && version !== '2' && version !== '2023') continue;
      const looked = OS_IDS.filter((one) => names.split(' ').includes(one));
      assert.equal(osFolders(`${system}-${version}`), looked, `${system} ${version}`);
    }
  }
});

test.run();
