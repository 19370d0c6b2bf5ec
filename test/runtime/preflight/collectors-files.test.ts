import { statfs } from 'node:fs/promises';
import { machine, release } from 'node:os';
import * as assert from '../../support/assert.ts';
import { collect } from '../../support/preflight.ts';
import { suite } from '../../support/suite.ts';
import { keyPairs } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';

const test = suite('preflight/collectors, files');

test('processors are read from the kernel, and threads of a core count once', async ({ signal }) => {
  const cpuinfo = ['0', '1', '2', '3'].map((at) => `processor\t: ${at}\nflags\t\t: fpu sse${at}\n`).join('\n');
  const lists = Object.fromEntries(
    ['0-1', '0-1', '2-3', '2-3'].map((list, at) => [
      `sys/devices/system/cpu/cpu${at}/topology/core_cpus_list`,
      `${list}\n`,
    ]),
  );
  await using box = await tree({ 'proc/cpuinfo': cpuinfo, ...lists });
  const facts = await collect('cpu', {}, { root: box.path, signal });
  assert.equal(facts, {
    logicalCount: 4,
    physicalCount: 2,
    flags: ['fpu', 'sse0', 'sse1', 'sse2', 'sse3'],
    machineArch: machine(),
  });
});

test('without topology the cores of each package are added', async ({ signal }) => {
  const one = (id: number): string => `processor : ${id}\nphysical id : ${id}\ncpu cores : 3\n`;
  await using box = await tree({ 'proc/cpuinfo': `${one(0)}\n${one(1)}\n` });
  const facts = await collect('cpu', {}, { root: box.path, signal });
  assert.is((facts as { physicalCount: number }).physicalCount, 6);
});

test('memory is told in bytes, and a kernel that shows none is no crash', async ({ signal }) => {
  await using box = await tree({ 'proc/meminfo': 'MemTotal:        8000 kB\nMemFree: 1 kB\n' });
  assert.equal(await collect('memory', {}, { root: box.path, signal }), { total: 8000 * 1024 });
  await using empty = await tree();
  let message = '';
  await collect('memory', {}, { root: empty.path, signal }).catch((error: unknown) => {
    message = String(error);
  });
  assert.match(message, 'no MemTotal');
});

test('a folder that is not there yet is judged by the disk that it will lie on', async ({ signal }) => {
  await using box = await tree({ file: 'x' });
  const { bsize, blocks } = await statfs(box.path);
  const facts = await collect('diskUsage', { path: '/a/b/c' }, { root: box.path, signal });
  assert.is((facts as { totalBytes: number }).totalBytes, bsize * blocks);
});

test('a disk that cannot be looked at is told', async ({ signal }) => {
  await using box = await tree({ file: 'x' });
  let message = '';
  await collect('diskUsage', { path: '/file/below' }, { root: box.path, signal }).catch((error: unknown) => {
    message = String(error);
  });
  assert.match(message, /inspect \/file\/below: ENOTDIR/);
});

test('systems have the names that specs use', async ({ signal }) => {
  const systems: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [
      { 'etc/os-release': 'ID=ubuntu\nVERSION_ID="22.04"\n', 'etc/debian_version': 'bookworm/sid\n' },
      'ubuntu debian 22.04',
    ],
    [{ 'etc/os-release': 'ID=debian\nVERSION_ID="12"\n', 'etc/debian_version': '12.11\n' }, 'debian debian 12.11'],
    [
      {
        'etc/os-release': 'ID="rhel"\nVERSION_ID="8.9"\n',
        'etc/redhat-release': 'Red Hat Enterprise Linux release 8.9 (Ootpa)\n',
      },
      'redhat rhel 8.9',
    ],
    [
      {
        'etc/os-release': 'ID="centos"\nVERSION_ID="7"\n',
        'etc/redhat-release': 'CentOS Linux release 7.9.2009 (Core)\n',
      },
      'centos rhel 7.9.2009',
    ],
    [
      { 'etc/os-release': "ID='ol'\nVERSION_ID='8.4'\n", 'etc/oracle-release': 'Oracle Linux Server release 8.4\n' },
      'oracle rhel 8.4',
    ],
    [
      {
        'etc/os-release': 'ID="amzn"\nVERSION_ID="2023"\n',
        'etc/system-release': 'Amazon Linux release 2023.5.20240805 (Amazon Linux)\n',
      },
      'amazon rhel 2023.5.20240805',
    ],
    [{ 'usr/lib/os-release': 'ID=rocky\nVERSION_ID="9.3"\n' }, 'rocky rhel 9.3'],
    [{ 'etc/os-release': 'ID=mine\n' }, 'mine  '],
    [{}, '  '],
  ];
  for (const [files, expected] of systems) {
    await using box = await tree(files);
    const facts = (await collect('hostOS', {}, { root: box.path, signal })) as Record<string, string>;
    assert.is(`${facts['platform']} ${facts['platformFamily']} ${facts['platformVersion']}`, expected);
    assert.is(facts['kernelVersion'], release());
  }
});

test('kernel modules are loaded, built in, or there to be loaded', async ({ signal }) => {
  const folder = `lib/modules/${release()}`;
  await using box = await tree({
    'proc/modules': 'overlay 151552 0 - Live 0x0\nnf_tables 1 2 a, Loading 0x0\n',
    [`${folder}/modules.builtin`]: 'kernel/fs/ext4/ext4.ko\n',
    [`${folder}/kernel/drivers/dm-snapshot.ko.xz`]: '',
    [`${folder}/kernel/drivers/brd.ko`]: '',
    [`${folder}/modules.dep`]: '',
  });
  assert.equal(await collect('kernelModules', {}, { root: box.path, signal }), {
    brd: 'loadable',
    'dm-snapshot': 'loadable',
    ext4: 'loaded',
    overlay: 'loaded',
    nf_tables: 'loading',
  });
});

test('a certificate and a key are missing, switched, encrypted, of two pairs, damaged or fine', async ({ signal }) => {
  const { one, two, files } = await keyPairs();
  await using box = await tree({
    ...files,
    'damaged.crt': one.cert.replace(/[A-Za-z]{20}\n/, `${'A'.repeat(20)}\n`).slice(0, 300),
    text: 'hello',
    'chain.crt': `text before\n${one.cert}${two.cert}`,
  });
  const state = async (certificate: string, key: string): Promise<unknown> =>
    collect('certificate', { certificatePath: `/${certificate}`, keyPath: `/${key}` }, { root: box.path, signal });
  assert.is(await state('a.crt', 'a.key'), 'key-pair-valid');
  assert.is(await state('chain.crt', 'a.key'), 'key-pair-valid');
  assert.is(await state('nosuch.crt', 'a.key'), 'key-pair-missing');
  assert.is(await state('a.crt', 'nosuch.key'), 'key-pair-missing');
  assert.is(await state('a.key', 'a.crt'), 'key-pair-switched');
  assert.is(await state('a.crt', 'a.crt'), 'key-pair-switched');
  assert.is(await state('a.crt', 'e.key'), 'key-pair-encrypted');
  assert.is(await state('a.crt', 'b.key'), 'key-pair-mismatch');
  assert.is(await state('a.crt', 'text'), 'key-pair-invalid');
  assert.is(await state('damaged.crt', 'a.key'), 'key-pair-invalid');
});

test.run();
