import { execa } from 'execa';
import { readdir, rm, utimes } from 'node:fs/promises';
import { asError } from '../../../src/core/errors.ts';
import type { Json } from '../../../src/formats/yaml/yaml.ts';
import * as assert from '../../support/assert.ts';
import { compiledModule } from '../../support/compiled.ts';
import { collect } from '../../support/preflight.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Files, type Tree } from '../../support/tree.ts';

const test = suite('preflight/collectors, programs');
const PATH = process.env['PATH'] ?? '';

/** What a collector finds where these programs are. */
async function withPrograms(
  kind: string,
  programs: Files,
  signal: AbortSignal,
  settings: Readonly<Record<string, Json>> = {},
  files: Files = {},
): Promise<Json | string> {
  const bin = Object.fromEntries(Object.entries(programs).map(([name, text]) => [`bin/${name}`, text]));
  await using box = await tree({ ...bin, ...files });
  const env = { PATH: `${box.at('bin')}:${PATH}` };
  try {
    return await collect(kind, settings, { root: box.path, env, signal });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const shown = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

const prints = (text: string): string => `#!/bin/sh\ncat <<'END'\n${text}\nEND\n`;

test('devices come from lsblk, also with odd names', async ({ signal }) => {
  const lines = [
    'NAME="sda" KNAME="sda" PKNAME="" TYPE="disk" SIZE="1000" FSTYPE="" MOUNTPOINT="" RO="0" RM="0"',
    'NAME="my\\x20disk" KNAME="dm-0" PKNAME="sda" TYPE="lvm" SIZE="10" FSTYPE="ext4" MOUNTPOINT="/a \\"b\\"" RO="1" RM="1"',
    '',
  ];
  const common = { parentKernelName: '', filesystemType: '', mountpoint: '', readOnly: false, removable: false };
  assert.equal(await withPrograms('blockDevices', { lsblk: prints(lines.join('\n')) }, signal), [
    { ...common, name: 'sda', kernelName: 'sda', type: 'disk', size: 1000 },
    {
      name: 'my disk',
      kernelName: 'dm-0',
      parentKernelName: 'sda',
      type: 'lvm',
      size: 10,
      filesystemType: 'ext4',
      mountpoint: '/a "b"',
      readOnly: true,
      removable: true,
    },
  ]);
});

test('a program that fails is told with what it said', async ({ signal }) => {
  const failing = { lsblk: '#!/bin/sh\necho no devices here >&2\nexit 3\n' };
  assert.is(await withPrograms('blockDevices', failing, signal), 'lsblk ended with status 3: no devices here');
});

test('time comes from timedatectl', async ({ signal }) => {
  const show = prints('Timezone=Etc/UTC\nNTPSynchronized=yes\nNTP=no');
  assert.equal(await withPrograms('time', { timedatectl: show }, signal), {
    timezone: 'UTC',
    ntpSynchronized: true,
    ntpActive: false,
  });
  assert.equal(
    await withPrograms('time', { timedatectl: prints('Timezone=Europe/Berlin\nNTPSynchronized=no\nNTP=yes') }, signal),
    {
      timezone: 'EUROPE/BERLIN',
      ntpSynchronized: false,
      ntpActive: true,
    },
  );
  assert.match(
    JSON.stringify(await withPrograms('time', { timedatectl: prints('Timezone=UTC') }, signal)),
    'does not report',
  );
});

test('services come from systemctl, those that failed too', async ({ signal }) => {
  const list = prints(
    '  ufw.service loaded active exited Uncomplicated firewall\n● x.service not-found failed dead x\n',
  );
  assert.equal(await withPrograms('hostServices', { systemctl: list }, signal), [
    { unit: 'ufw.service', load: 'loaded', active: 'active', sub: 'exited' },
    { unit: 'x.service', load: 'not-found', active: 'failed', sub: 'dead' },
  ]);
});

test('kernel parameters come from sysctl', async ({ signal }) => {
  const list = prints('net.ipv4.ip_forward = 1\nkernel.empty = \nnonsense\nnet.ipv4.range = 1\t2');
  assert.equal(await withPrograms('sysctl', { sysctl: list }, signal), {
    'net.ipv4.ip_forward': '1',
    'kernel.empty': '',
    'net.ipv4.range': '1\t2',
  });
});

test('packages are asked for at dpkg or rpm, with the lists of the system and of its version', async ({ signal }) => {
  const asks = '#!/bin/sh\necho "$@"\n[ "$2" != lvm2 ] || { echo no >&2; exit 1; }\n';
  const settings = { ubuntu: ['nfs-common'], ubuntu22: ['lvm2'], ubuntu20: ['other'], rhel9: ['nfs-utils'] };
  const on = async (id: string, version: string): Promise<Json | string> =>
    withPrograms('systemPackages', { dpkg: asks, rpm: asks }, signal, settings, {
      'etc/os-release': `ID=${id}\nVERSION_ID="${version}"\n`,
    });
  assert.equal(await on('ubuntu', '22.04'), {
    os: 'ubuntu',
    osVersion: '22.04',
    packages: [
      { name: 'nfs-common', details: '-s nfs-common\n', exitCode: 0, error: '' },
      { name: 'lvm2', details: '-s lvm2\n', exitCode: 1, error: 'no\n' },
    ],
  });
  assert.equal(await on('rhel', '9.3'), {
    os: 'rhel',
    osVersion: '9.3',
    packages: [{ name: 'nfs-utils', details: '-qi nfs-utils\n', exitCode: 0, error: '' }],
  });
  assert.is(await on('plan9', '4'), 'packages of plan9 cannot be queried');
});

test('a name that would be an option of dpkg is no package', async ({ signal }) => {
  const os = { 'etc/os-release': 'ID=ubuntu\nVERSION_ID=22.04\n' };
  assert.match(
    JSON.stringify(await withPrograms('systemPackages', {}, signal, { ubuntu: ['--remove'] }, os)),
    'is not a package name',
  );
});

const REPORT = JSON.stringify({
  jobs: [{ jobname: 'fsperf', sync: { lat_ns: { min: 1, max: 9, mean: 5.5, percentile: { '99.000000': 8 } } } }],
});

test('fio measures in a folder of its own, and every folder made for it goes away', async ({ signal }) => {
  await using box = await tree({
    'bin/fio': `#!/bin/sh\nfor word; do case $word in --directory=*) touch "\${word#*=}/x" && echo "$word" >"$LOG";; esac; done\ncat <<'END'\n${REPORT}\nEND\n`,
  });
  const env = { PATH: `${box.at('bin')}:${PATH}`, LOG: box.at('log') };
  const facts = (await collect(
    'filesystemPerformance',
    { directory: '/var/lib/etcd' },
    { root: box.path, env, signal },
  )) as Record<string, number>;
  assert.equal([facts['min'], facts['max'], facts['average'], facts['p99'], facts['p1']], [1, 9, 5, 8, 0]);
  assert.equal((await readdir(box.path)).toSorted(), ['bin', 'log']);
});

/** Measures below `box`, with its programs alone; returns the reason if there are no facts. */
async function measured(box: Tree, settings: Readonly<Record<string, Json>>, signal: AbortSignal): Promise<unknown> {
  const host = { root: box.path, env: { PATH: box.at('bin') }, signal };
  return collect('filesystemPerformance', settings, host).catch((error: unknown) => asError(error).message);
}

test('what a killed measurement leaves is not in a data folder, and the next one removes it', async ({ signal }) => {
  await using box = await tree({
    'bin/fio': '#!/bin/sh\nkill -9 $PPID\n',
    'var/lib/etcd/.curlew-preflight-Older1/x': '',
    'var/lib/etcd/member': '',
  });
  const lib = async (): Promise<readonly string[]> => readdir(box.at('var/lib'));
  const etcd = async (): Promise<readonly string[]> => readdir(box.at('var/lib/etcd'));
  const old = new Date(Date.now() - 2 * 86_400_000);
  await utimes(box.at('var/lib/etcd/.curlew-preflight-Older1'), old, old);
  const code = `const { collect } = await import(${JSON.stringify(compiledModule('test/support/preflight.ts'))});
    await collect('filesystemPerformance', { directory: '/var/lib/etcd' },
      { root: ${JSON.stringify(box.path)}, env: { PATH: ${JSON.stringify(`${box.at('bin')}:${PATH}`)} }, signal: AbortSignal.timeout(60000) });`;
  const killed = await execa(process.execPath, ['--input-type', 'module', '--eval', code], { reject: false });
  assert.is(killed.signal, 'SIGKILL');
  assert.equal([(await lib()).length, await etcd()], [2, ['member']]);
  await rm(box.at('bin/fio'));
  assert.is(await measured(box, { directory: '/var/lib/etcd' }, signal), 'fio is not installed');
  assert.equal([await lib(), await etcd()], [['etcd'], ['member']]);
});

test('without fio, nothing waits for background load to warm up', async ({ signal }) => {
  const load = {
    enableBackgroundIOPS: true,
    backgroundIOPSWarmupSeconds: 3600,
    backgroundWriteIOPS: 9,
    backgroundWriteIOPSJobs: 1,
  };
  await using box = await tree();
  assert.is(await measured(box, { directory: '/data', ...load }, signal), 'fio is not installed');
});

test('a measurement without fio, or with another report, has a reason', async ({ signal }) => {
  const settings = { directory: '/data' };
  const none = await withPrograms('filesystemPerformance', { fio: prints('{}') }, signal, settings);
  assert.is(none, 'fio reports no latency of syncs');
  assert.match(
    JSON.stringify(await withPrograms('filesystemPerformance', { fio: prints('hello') }, signal, settings)),
    'is not JSON',
  );
  assert.match(
    JSON.stringify(await withPrograms('filesystemPerformance', {}, signal, { ...settings, fileSize: 'big' })),
    'is not a size',
  );
});

test('a program of the spec runs in a folder of its own with what it is given', async ({ signal }) => {
  const script =
    'cat "$TS_INPUT_DIR/in.txt"; echo made >"$TS_OUTPUT_DIR/out.txt"; echo "$A-$B"; pwd; echo oops >&2; exit 7';
  const facts = (await withPrograms('run', {}, signal, {
    command: 'sh',
    args: ['-c', script],
    input: { 'in.txt': 'given\n' },
    outputDir: 'out',
    env: ['A=1'],
    ignoreParentEnvs: true,
  })) as Record<string, Json>;
  const [given, pair, folder] = shown(facts['stdout']).split('\n');
  assert.equal(
    [facts['exitCode'], given, pair, facts['stderr'], facts['files']],
    [7, 'given', '1-', 'oops\n', { 'out.txt': 'made\n' }],
  );
  let there = true;
  await readdir(folder ?? '').catch(() => {
    there = false;
  });
  assert.not(there);
});

test('input and output of a program stay in its folder', async ({ signal }) => {
  const run = async (settings: Readonly<Record<string, Json>>): Promise<Json | string> =>
    withPrograms('run', {}, signal, { command: 'true', ...settings });
  assert.match(JSON.stringify(await run({ input: { '../x': 'y' } })), 'contains \\"/\\"');
  assert.match(JSON.stringify(await run({ outputDir: '../../x' })), 'is a folder reference');
  assert.match(JSON.stringify(await run({ env: ['A'] })), 'is not NAME=value');
  assert.match(JSON.stringify(await run({ inheritEnvs: ['NOSUCH'] })), 'the environment has no NOSUCH');
});

test('what a program prints without end is cut', async ({ signal }) => {
  const facts = (await withPrograms('run', {}, signal, {
    command: 'sh',
    args: ['-c', 'head -c 3000000 /dev/zero'],
  })) as Record<string, Json>;
  assert.is(shown(facts['stdout']).length, 1 << 20);
});

test.run();
