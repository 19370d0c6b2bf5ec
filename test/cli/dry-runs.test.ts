/** Every command with `--dry-run`, from the table of commands: none changes a file, a store, a node or a cluster. */
import { chmod, readdir, writeFile } from 'node:fs/promises';
import { nameWhenDone } from '../../src/cli/command.ts';
import { commandOf } from '../../src/cli/commands.ts';
import { REQUESTS } from '../../src/cli/requests.ts';
import { commandHelp } from '../../src/cli/help.ts';
import { formatAddonJson } from '../../src/core/package.ts';
import { parametersOf } from '../../src/core/request.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/builds.ts';
import { publishTestPackages, specOf } from '../support/bundles.ts';
import { configMap, openScene, type Scene } from '../support/delivery-scene.ts';
import { addon as fleetAddon, cluster, documents } from '../support/fleet-files.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { writeLayout } from '../support/image-packages.ts';
import { greeting, onNode, put, SAYS } from '../support/kept-node.ts';
import { writeKurlRepository } from '../support/kurl-repository.ts';
import { tracer, tracerPackage } from '../support/node-install.ts';
import { packageOf } from '../support/packages.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
import { snapshot } from '../support/snapshot.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree } from '../support/tree.ts';

const test = suite('cli/dry-runs', { timeoutMs: 120_000 });

const ON_NODE = ['--root', 'root', '--unconfined'];
const BUNDLE = ['--bundle', 'b.tar.gz'];

/** Arguments with which each command would change something; its status, if that is not 0. */
const CHANGES: Readonly<Record<string, readonly [args: readonly string[], status?: number]>> = {
  'support-bundle': [[]],
  build: [['web']],
  publish: [['--to', 'store', '--release', 'r9']],
  promote: [['--from', 'store@r1', '--to', 'other']],
  prune: [['--from', 'store', '--keep', '1']],
  reindex: [['store']],
  import: [['kurl', 'repository', '--out', 'imported']],
  'import-external': [['versions.json', '--name', 'acme', '--to', 'store']],
  bundle: [['spec.yaml', '--from', 'store', '-o', 'new.tar.gz']],
  split: [['b.tar.gz', '--size', '1K']],
  pull: [['b.tar.gz', '-o', 'pulled.tar.gz']],
  'channel apply': [['channel.yaml', '--kubeconfig', 'conf'], 2],
  'channel remove': [['page', '--kubeconfig', 'conf'], 2],
  'fleet apply': [['fleet.yaml'], 2],
  'fleet remove': [['gone', 'fleet.yaml']],
  install: [[...BUNDLE, ...ON_NODE]],
  join: [[...BUNDLE, '--root', 'joining', '--unconfined']],
  upgrade: [[...BUNDLE, ...ON_NODE]],
  resume: [ON_NODE],
  rollback: [['aaa', ...ON_NODE]],
  uninstall: [['aaa', ...ON_NODE]],
  reset: [ON_NODE],
  'load-images': [['--dir', 'images']],
  'certificates renew': [[]],
};

/**
 * Commands that show what would change unless these arguments let them change it. `--dry-run` asks for the same, so the suites of these
 * commands, with their hubs and hosts, show that it changes nothing.
 */
const SHOWN: Readonly<Record<string, readonly [args: string, change: string]>> = {
  'channel apply': ['c.yaml', '--yes'],
  'channel remove': ['page', '--yes'],
  'fleet apply': ['fleet.yaml', '--yes'],
  'fleet remove': ['page fleet.yaml', '--yes'],
  'fleet accept': ['paris', '--yes'],
  'fleet detach': ['paris', '--yes'],
  'agent unregister': ['', '--yes'],
  'cluster apply': ['paris.yaml --bundle b.tar.gz', '--yes'],
  'cluster delete': ['paris.yaml', '--confirm paris'],
  'machine add': ['paris.yaml p2 --address p2 --host-key KEY --bundle b.tar.gz', '--yes'],
  'machine drain': ['paris.yaml p2', '--yes'],
  'machine upgrade': ['paris.yaml p2 --bundle b.tar.gz', '--yes'],
  'machine repair': ['paris.yaml p2 --bundle b.tar.gz', '--yes'],
  'machine remove': ['paris.yaml p2', '--yes'],
  'node drain': ['node2', '--yes'],
  'node remove': ['node2', '--yes'],
};

/** An engine without images, which refuses to load one. */
const DOCKER = `#!/bin/sh
case $1-$2 in version-*) echo 29.0.0 ;; image-list) ;; *) exit 3 ;; esac
`;

/** A folder in which each of them would change something. */
async function openFull(signal: AbortSignal): Promise<Scene> {
  const scene = await openScene();
  const { box } = scene;
  await writeTree(box.path, {
    ...addon('web', ''),
    'spec.yaml': specOf({ alpha: '1.0.0' }),
    'bin/docker': DOCKER,
    'fleet.yaml': documents(
      cluster('fleet', { env: 'prod' }, { access: { kubeconfig: 'conf' } }),
      fleetAddon('site', { source: { manifest: 'page.yaml' } }),
    ),
    'other/note': 'an empty store',
    'versions.json': JSON.stringify([
      {
        version: '1.0.0',
        url: 'https://acme.example/a.tar.gz',
        kurlVersionCompatibilityRange: '*',
        isPrerelease: false,
      },
    ]),
  });
  await chmod(box.at('bin/docker'), 0o755);
  await writeKurlRepository(box.at('repository'), { count: 3 });
  const image = makeImage([makeLayer({ a: 'a' })]);
  const { images } = await writeLayout(box.at('images/addons/demo/1.0.0'), { 'docker.io/library/x:1': image });
  const demo = packageOf('demo', '1.0.0', [], { images }).addon;
  await writeFile(box.at('images/addons/demo/1.0.0/addon.json'), formatAddonJson(demo));
  for (const release of ['r0', 'r1']) {
    await publishTestPackages(box, [tracerPackage('alpha')], signal, createFolderStore(box.at('store')), release);
  }
  await scene.write('page.yaml', configMap('page'));
  await scene.channel({ name: 'page', manifest: 'page.yaml' });
  await scene.apply();
  await scene.write('page.yaml', configMap('page', { text: 'new' }));
  await scene.channel({ name: 'page', version: '2.0.0', manifest: 'page.yaml' });
  await put(box, [tracer('aaa', SAYS)], greeting('1.0.0', 'before'));
  assert.is((await onNode(box, 'install', '--unconfined', ...BUNDLE)).exitCode, 0);
  await put(box, [tracer('aaa', SAYS, '2.0.0')], greeting('2.0.0', 'after'));
  assert.is((await onNode(box, 'install', '--unconfined', ...BUNDLE)).exitCode, 20, 'the run is unfinished');
  return scene;
}

test('no dry run of any command writes anything: no lock, no file in a cache, no record, no object', async ({
  signal,
}) => {
  const commands = REQUESTS.filter((of) => parametersOf(of).options.some(([name]) => name === 'dry-run'));
  assert.equal(commands.map(({ name }) => name).toSorted(), Object.keys({ ...CHANGES, ...SHOWN }).toSorted());
  await using scene = await openFull(signal);
  const { box, requests } = scene;
  const env = {
    HOME: box.at('home'),
    PATH: `${box.at('bin')}:${process.env['PATH']}`,
    CONTAINERD_ADDRESS: box.at('none'),
  };
  const before = await snapshot(box.path);
  for (const [command, [args, status = 0]] of Object.entries(CHANGES)) {
    const asked = requests.length;
    const { exitCode, stdout, stderr } = await runTraced([...command.split(' '), ...args, '--dry-run'], box, env);
    assert.is(exitCode, status, `${command}: ${stdout}\n${stderr}`);
    assert.not.match(stderr, 'is now', command);
    assert.is(stdout === '', false, `${command} shows what it would do`);
    assert.equal(await snapshot(box.path), before, command);
    const writes = requests.slice(asked).filter((one) => !one.startsWith('GET ') && !one.includes('dryRun=All'));
    assert.equal(writes, [], command);
  }
});

test('former names of the option still work, with a note, and are not in the help', async () => {
  await using box = await tree({ ...addon('web', '') });
  const { exitCode, stderr } = await runCommand(['build', '--plan-only'], box.path, { HOME: box.at('home') });
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, '--plan-only is now --dry-run; the next release removes the old name');
  assert.equal((await readdir(box.path)).toSorted(), ['addons']);
  const { stderr: refused } = await runCommand(['bundle', '--plan', '--from-plan', 'none'], box.path);
  assert.match(refused, '--plan is now --dry-run');
  for (const name of ['build', 'bundle'])
    assert.not.match(commandHelp(await commandOf(name)), /--plan(?:-only)?\b(?!:)/);
});

test('where showing is the default, a command does not take --dry-run together with what lets it change something', async () => {
  for (const [command, [args, change]] of Object.entries(SHOWN)) {
    const words = `${command} ${args} ${change} --dry-run`.split(' ').filter((word) => word !== '');
    const { exitCode, stderr } = await runCommand(words, '/');
    assert.is(exitCode, 64, `${command}: ${stderr}`);
    assert.match(stderr, `${change.split(' ')[0]} and --dry-run cannot be used together`);
  }
});

test('a token for a cluster that comes back is no dry run', async () => {
  const { exitCode, stderr } = await runCommand(['fleet', 'accept', 'paris', '--rejoin', '--dry-run'], '/');
  assert.is(exitCode, 64);
  assert.match(stderr, '--rejoin makes a token, and accepts nothing');
});

test('the last line of a dry run does not read as if the command had run', () => {
  assert.is(nameWhenDone('install', { dryRun: true }), 'install --dry-run');
  assert.is(nameWhenDone('install', { dryRun: false }), 'install');
});

test.run();
