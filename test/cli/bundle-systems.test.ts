/** `curlew bundle --os`: from the store to the node. */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { makeInventory } from '../../src/ship/bundle/delta/inventory.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf, type TestPackage } from '../support/bundles.ts';
import type { Outcome } from '../support/curlew.ts';
import { bundleOfPackages, deltaOf } from '../support/deltas.ts';
import { tracerPackage } from '../support/node-install.ts';
import { noise } from '../support/packages.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files, type Tree } from '../support/tree.ts';

const test = suite('cli/bundle-systems', { timeoutMs: 120_000 });

const KUBERNETES: TestPackage = {
  name: 'kubernetes',
  version: '1.29.9',
  files: [
    { path: 'install.sh', data: 'kubernetes() { cat "$DIR"/packages/x 2>/dev/null || true; }\n' },
    { path: 'rhel-8/kubelet.rpm', data: noise(300_000, 1) },
    { path: 'rhel-9/kubelet.rpm', data: noise(200_000, 2) },
    { path: 'ubuntu-22.04/kubelet.deb', data: noise(100_000, 3) },
    { path: 'assets/tool', data: noise(50_000, 4) },
  ],
  extra: { os: ['rhel-8', 'rhel-9', 'ubuntu-22.04'] },
};
const PLAIN = tracerPackage('plain');

const SYSTEMS: Files = {
  ubuntu: 'ID=ubuntu\nVERSION_ID="22.04"\n',
  rocky: 'ID="rocky"\nVERSION_ID="8.9"\n',
};

async function site(signal: AbortSignal, files: Files = {}, more: readonly TestPackage[] = []): Promise<Tree> {
  const spec = specOf({ plain: '1.0.0', kubernetes: '1.29.9' });
  const box = await tree({ ...SYSTEMS, ...files, 'spec.yaml': spec });
  await publishTestPackages(box, [KUBERNETES, PLAIN, ...more], signal);
  return box;
}

async function ok(box: Tree, ...words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runCommand(words, box.path);
  assert.is(exitCode, 0, stderr);
  return stdout;
}

async function bundle(box: Tree, ...words: readonly string[]): Promise<string> {
  return ok(box, 'bundle', 'spec.yaml', '--from', 'store', ...words);
}

async function install(box: Tree, system: string, ...words: readonly string[]): Promise<Outcome> {
  const all = ['install', '--root', 'root', '--unconfined', ...words];
  return runTraced(all, box, { CURLEW_OS_RELEASE: box.at(system) });
}

const NODE = 'root/var/lib/curlew';

test('a site without the other systems: planned, saved, made, looked at, installed', async ({ signal }) => {
  await using box = await site(signal);
  const planned = await bundle(box, '--os', 'ubuntu-22.04', '--dry-run', '--out', 'p.json');
  assert.match(planned, /^host packages for ubuntu-22\.04 only: 500 kB omitted$/m);
  assert.match(await bundle(box, '--os', 'ubuntu-22.04', '-o', 'b.tar.gz'), /500 kB omitted/);
  assert.match(await ok(box, 'bundle', '--from-plan', 'p.json', '--from', 'store', '-o', 'a.tar.gz'), /500 kB omitted/);
  assert.ok((await readFile(box.at('a.tar.gz'))).equals(await readFile(box.at('b.tar.gz'))));
  const differs = await bundle(box, '--dry-run', '--against', 'p.json');
  assert.match(differs, /^ {2}host packages: ubuntu-22\.04 only -> all$/m);
  const same = await bundle(box, '--os', 'ubuntu-22.04', '--dry-run', '--against', 'p.json');
  assert.match(same, 'identical to the previous bundle');
  await ok(box, 'verify', 'b.tar.gz');
  assert.match(await ok(box, 'inspect', 'b.tar.gz'), /\nwithout +rhel-8 rhel-9\n/);
  await bundle(box, '-o', 'whole.tar.gz');
  const [part, whole] = [await stat(box.at('b.tar.gz')), await stat(box.at('whole.tar.gz'))];
  assert.ok(whole.size - part.size > 499_000);
  const { exitCode, stderr } = await install(box, 'ubuntu', '--bundle', 'b.tar.gz');
  assert.is(exitCode, 0, stderr);
  assert.equal((await readdir(box.at(NODE, 'addons/kubernetes/1.29.9'))).toSorted(), [
    'addon.json',
    'addon.omitted.json',
    'assets',
    'install.sh',
    'ubuntu-22.04',
  ]);
  assert.match(await ok(box, 'status', '--root', 'root'), /kubernetes .* without rhel-8, rhel-9$/m);
  const again = await install(box, 'ubuntu', '--bundle', 'whole.tar.gz', '--dry-run');
  assert.match(again.stdout, /on this node without rhel-8, rhel-9/);
  assert.is((await install(box, 'ubuntu', '--bundle', 'whole.tar.gz')).exitCode, 0);
  assert.not.match(await ok(box, 'status', '--root', 'root'), 'without');
});

test('a node whose system was left out is told so by name, and nothing is changed', async ({ signal }) => {
  await using box = await site(signal);
  await bundle(box, '--os', 'ubuntu-22.04,rocky-9', '-o', 'b.tar.gz');
  for (const more of [[], ['--dry-run'], ['--preflights', 'ignore']]) {
    const { exitCode, stderr } = await install(box, 'rocky', '--bundle', 'b.tar.gz', ...more);
    assert.is(exitCode, 22, stderr);
    assert.match(
      stderr,
      'this machine is rocky 8.9: its host packages (rhel-8) were omitted from kubernetes-1.29.9; the bundle has those for ubuntu-22.04, rhel-9',
    );
    assert.match(stderr, 'create the bundle with --os rhel-8 as well');
    assert.is(await stat(box.at(NODE)).catch(() => 'absent'), 'absent');
  }
});

test('preflight refuses such a node as install does, with what comes along, and judges facts of others', async ({
  signal,
}) => {
  const host: TestPackage = { ...KUBERNETES, name: 'host', version: 'openssl', extra: { tree: 'packages' } };
  await using box = await site(signal, {}, [host]);
  await bundle(box, '--os', 'ubuntu-22.04', '-o', 'b.tar.gz');
  const look = async (system: string, ...words: readonly string[]): Promise<Outcome> =>
    runCommand(['preflight', '--bundle', 'b.tar.gz', ...words], box.path, { CURLEW_OS_RELEASE: box.at(system) });
  const fit = await look('ubuntu', '--save-facts', 'facts.json');
  assert.match(fit.stdout, / passed, /, fit.stderr);
  const refused = await look('rocky');
  assert.is(refused.exitCode, 22, refused.stderr);
  const { stderr } = await install(box, 'rocky', '--bundle', 'b.tar.gz');
  assert.is(refused.stderr, stderr);
  assert.match(stderr, /omitted from (?=.*kubernetes-1\.29\.9)(?=.*host-openssl)/);
  assert.match((await look('rocky', '--from', 'facts.json')).stdout, / passed, /);
});

test('a system that no package has anything for is told, once a name', async ({ signal }) => {
  await using box = await site(signal);
  const words = ['bundle', 'spec.yaml', '--from', 'store', '--dry-run', '--os'];
  const told = await runCommand([...words, 'ubuntu-22.04,ubuntu-20.04,ol-7,rocky-9.4'], box.path);
  assert.is(told.exitCode, 0, told.stderr);
  assert.equal(told.stderr.match(/no package .*$/gm), [
    'no package has files in ubuntu-20.04',
    'no package has files in rhel-7 or ol-7',
  ]);
  assert.match(told.stderr, /warning.*--os ubuntu-20\.04: no package/);
  assert.not.match((await runCommand([...words, 'ol-9'], box.path)).stderr, 'warning');
});

test('a delta of such a bundle makes it, and brings a node what it lacks', async ({ signal }) => {
  await using box = await site(signal);
  await bundle(box, '--os', 'ubuntu-22.04', '-o', '1.tar.gz');
  assert.is((await install(box, 'ubuntu', '--bundle', '1.tar.gz')).exitCode, 0);
  await ok(box, 'inventory', '1.tar.gz', '-o', 'i.json');
  const words = ['--os', 'ubuntu-22.04', '--os', 'rhel-8'];
  await bundle(box, ...words, '-o', '2.tar.gz');
  assert.match(await bundle(box, ...words, '--since', 'i.json', '-o', 'd.tar.gz'), /for ubuntu-22\.04, rhel-8 only/);
  await ok(box, 'apply', 'd.tar.gz', '--base', '1.tar.gz', '-o', 'made.tar.gz');
  assert.ok((await readFile(box.at('made.tar.gz'))).equals(await readFile(box.at('2.tar.gz'))));
  const { exitCode, stderr } = await install(box, 'ubuntu', '--bundle', 'd.tar.gz');
  assert.is(exitCode, 0, stderr);
  const file = await readFile(box.at(NODE, 'addons/kubernetes/1.29.9/rhel-8/kubelet.rpm'));
  assert.ok(file.equals(noise(300_000, 1)));
  assert.match(await ok(box, 'status', '--root', 'root'), /without rhel-9$/m);
});

test('a delta that counts on a folder which the node is without changes nothing', async ({ signal }) => {
  await using box = await site(signal);
  await bundle(box, '--os', 'ubuntu-22.04', '-o', '1.tar.gz');
  await bundle(box, '-o', 'whole.tar.gz');
  assert.is((await install(box, 'ubuntu', '--bundle', '1.tar.gz')).exitCode, 0);
  await ok(box, 'inventory', 'whole.tar.gz', '-o', 'i.json');
  await bundle(box, '--since', 'i.json', '-o', 'd.tar.gz');
  const before = await readFile(box.at(NODE, 'records.json'), 'utf8');
  const { exitCode, stderr } = await install(box, 'ubuntu', '--bundle', 'd.tar.gz');
  assert.is(exitCode, 14);
  assert.match(stderr, 'addons/kubernetes/1.29.9/rhel-8/kubelet.rpm');
  assert.is(await readFile(box.at(NODE, 'records.json'), 'utf8'), before);
  // What says that something was left out is asked for with all that is read first.
  await ok(box, 'inventory', '1.tar.gz', '-o', 'j.json');
  await bundle(box, '--os', 'ubuntu-22.04', '--since', 'j.json', '-o', 'e.tar.gz');
  const words = ['--bundle', 'e.tar.gz', '--install-dir', box.at('other')];
  for (const fresh of [await install(box, 'ubuntu', ...words), await runCommand(['load-images', ...words], box.path)]) {
    assert.is(fresh.exitCode, 14);
    assert.match(fresh.stderr, /kubernetes\/1\.29\.9\/addon\.json.*addon\.omitted\.json/s);
  }
});

test('a delta says what its bundle is without, also when its place has the list of that', async () => {
  await using box = await tree();
  const released = (version: string): TestPackage => {
    const [, ...others] = KUBERNETES.files;
    return {
      ...KUBERNETES,
      version,
      files: [{ path: 'install.sh', data: `kubernetes() { echo ${version}; }\n` }, ...others],
    };
  };
  const options = { os: ['ubuntu-22.04'] } as const;
  const before = await bundleOfPackages([released('1.29.9')], options);
  const after = await bundleOfPackages([released('1.29.10')], options);
  const inventory = makeInventory({ payloads: before.plan.splice.index.entries, packages: [], tool: 'test' });
  await writeFile(box.at('d.tar.gz'), (await deltaOf(after, inventory)).bytes);
  assert.not.match(await ok(box, 'inspect', 'd.tar.gz', '--files'), 'addon.omitted.json');
  const shown = await ok(box, 'inspect', 'd.tar.gz');
  assert.match(shown, /^unpacked 150 kB files, /m);
  assert.match(shown, /\nsystems  ubuntu-22\.04\nwithout  rhel-8 rhel-9$/);
});

test("kURL's layout has the folders that are kept, and what was left out beside them", async ({ signal }) => {
  const names = ['install.sh', 'join.sh', 'upgrade.sh', 'tasks.sh'].map((name) => [`kurl/${name}`, '#!/bin/bash\n']);
  await using box = await site(signal, Object.fromEntries(names) as Files);
  const words = ['--layout', 'kurl', '--kurl-scripts', 'kurl', '--os', 'rhel-9', '-o', 'k.tar.gz'];
  const made = await runCommand(['bundle', 'spec.yaml', '--from', 'store', ...words], box.path);
  assert.not.match(made.stderr, 'warning');
  assert.match(made.stdout, /^host packages for rhel-9 only: 400 kB omitted$/m);
  const files = await ok(box, 'inspect', 'k.tar.gz', '--files');
  assert.match(files, 'kurl/addons/kubernetes/1.29.9/rhel-9/kubelet.rpm');
  assert.match(files, 'kurl/addons/kubernetes/1.29.9/addon.omitted.json');
  assert.not.match(files, /rhel-8|ubuntu/);
});

for (const [words, message] of [
  [
    ['--os', 'ubunut-22.04'],
    /--os "ubunut-22\.04": unknown operating system\n {2}hint: did you mean ubuntu-22\.04\? known: /,
  ],
  [['--os', 'ubuntu-22.10'], /did you mean ubuntu-22\.04\?/],
  [['--os', 'rocky8'], /did you mean rocky-8\?/],
  [['--os', 'ubuntu-22.04,'], /--os "": unknown operating system/],
  [['--os', 'plan9'], /known: ubuntu-16\.04, /],
] as const) {
  test(`a system that nobody knows is told with a near one: ${words.join(' ')}`, async () => {
    await using box = await tree({ 'spec.yaml': specOf({}) });
    const { exitCode, stderr } = await runCommand(
      ['bundle', 'spec.yaml', '--from', 'store', '--dry-run', ...words],
      box.path,
    );
    assert.is(exitCode, 64, stderr);
    assert.match(stderr, message);
  });
}

test('a saved plan has decided on systems already', async () => {
  await using box = await tree();
  await writeFile(box.at('p.json'), '{}');
  const words = ['bundle', '--from-plan', 'p.json', '--from', 'store', '-o', 'b.tar.gz', '--os', 'rhel-8'];
  const { exitCode, stderr } = await runCommand(words, box.path);
  assert.is(exitCode, 64);
  assert.match(stderr, /already determines --os/);
});

test.run();
