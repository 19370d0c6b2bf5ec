/** curlew for nodes, one file with Node inside, on this machine. Bare systems: executable-on-nodes.test.ts. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { mkdir, open, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findEntry, openFileSource, readIndex } from '../../src/formats/archive/read.ts';
import { digestOf } from '../../src/core/digest.ts';
import { executableFileName, packedExecutableName } from '../../src/core/layout.ts';
import { ARCHES, compareVersions } from '../../src/core/ref.ts';
import * as assert from '../support/assert.ts';
import { built, BUILT_MAIN as main, NODES } from '../support/built.ts';
import { cleanEnvironment, curlewOk } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { makeSample, outcome, OWN, succeeds, type Sample } from '../components/support/executables.ts';
import { ROOT, run, shell } from '../components/support/programs.ts';
import { BUCKET, cannotServe, S3_KEYS, startS3 } from '../components/support/s3-servers.ts';

const test = suite('the executable for nodes', { timeoutMs: 300_000 });

const MAX_BYTES = 60_000_000;
const EXECUTABLE = built(executableFileName(OWN));
const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };

/** A script that V8 has compiled; its first function is the script itself. */
interface Compiled {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly { readonly endOffset: number }[] }[];
}

let box: Sample;

test.before(async () => {
  box = await makeSample();
});
test.after(async () => box[Symbol.asyncDispose]());

for (const arch of ARCHES) {
  test(`of ${arch} packs into 60 MB, and a bundle holds it as it was built`, async ({ signal }) => {
    const packed = built(packedExecutableName(arch));
    assert.ok((await stat(packed)).size <= MAX_BYTES);
    await using source = await openFileSource(box.bundle(arch));
    const index = await readIndex(source, { signal });
    const digest = digestOf(await readFile(built(executableFileName(arch))));
    assert.is(findEntry(index, 'bin/curlew')?.digest, digest);
    assert.ok((await stat(box.bundle(arch))).size <= MAX_BYTES + 1_000_000);
    await curlewOk(['verify', packed, box.bundle(arch)], { cwd: box.path, main });
    const listed = await run('tar', ['-tvzf', packed]);
    assert.match(listed, /^-rwxr-xr-x .* bin\/curlew$/m);
    assert.match(listed, /^-rw-r--r-- .* bin\/curlew\.license$/m);
  });
}

/** Versions of el8, the oldest system that nodes may have, by the names that symbols have them under. */
const OLDEST = { GLIBC: '2.28', GLIBCXX: '3.4.25', CXXABI: '1.3.11' };

for (const arch of ARCHES) {
  test(`of ${arch} asks of a system no more than el8 has`, async () => {
    const text = (await readFile(built(executableFileName(arch)))).toString('latin1');
    for (const [name, oldest] of Object.entries(OLDEST)) {
      const asked = [...text.matchAll(new RegExp(`\\0${name}_([\\d.]+)(?=\\0)`, 'g'))].map(
        ([, version = '']) => version,
      );
      assert.ok(asked.length > 0);
      assert.equal(
        asked.filter((version) => compareVersions(version, oldest) > 0),
        [],
      );
    }
    assert.not.match(text, '\0libatomic.so.1\0');
  });
}

test('says its version, whatever is in NODE_OPTIONS, and knows every command', async () => {
  assert.is(await succeeds([EXECUTABLE, '--version'], box.path, { NODE_OPTIONS: '--require=/missing.js' }), version);
  const all = await curlewOk(['help', 'commands'], { cwd: box.path, main });
  assert.is(await succeeds([EXECUTABLE, 'help', 'commands'], box.path), all);
  assert.match(await succeeds([EXECUTABLE, '--help'], box.path), /Start here:\n +install /);
});

test('compiles no more at a start than its command needs', async () => {
  for (const [most, ...words] of [
    [300_000, '--help'],
    [400_000, '--version'],
    [1_500_000, 'status', '--install-dir', 'none'],
  ] as const) {
    const folder = box.at(`coverage${words.join('')}`);
    await succeeds([EXECUTABLE, ...words], box.path, { NODE_V8_COVERAGE: folder });
    const [name = ''] = await readdir(folder);
    const { result } = JSON.parse(await readFile(join(folder, name), 'utf8')) as {
      readonly result: readonly Compiled[];
    };
    const sizes = result.flatMap(({ url, functions }) =>
      url.startsWith('node:') ? [] : (functions[0]?.ranges[0]?.endOffset ?? 0),
    );
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(sizes.length > 1 && bytes <= most, `${words.join(' ')}: ${bytes} bytes in ${sizes.length} texts`);
  }
});

test('its worker threads make the package that a Node with files makes', async () => {
  await succeeds([EXECUTABLE, 'build', 'web', '--arch', OWN, '--out', 'again'], box.path);
  const [name = ''] = await readdir(box.at('again'));
  const [mine, other] = await Promise.all([readFile(box.at('again', name)), readFile(box.at('out', name))]);
  assert.is(digestOf(mine), digestOf(other));
});

test('its SBOM of a bundle is the one that a Node with files makes', async () => {
  const words = ['sbom', box.bundle(OWN)];
  assert.is(await succeeds([EXECUTABLE, ...words], box.path), await curlewOk(words, { cwd: box.path, main }));
});

test('what it cannot do is said: Docker engines and bundles are for those who build', async () => {
  const words = ['bundle', 'installer.yaml', '--from', `store-${OWN}`, '-o', 'b.tar.gz'];
  const { exitCode, stderr } = await outcome([EXECUTABLE, ...words], box.path);
  assert.is(exitCode, 22);
  assert.match(stderr, /the curlew for nodes cannot make a bundle/);
});

test('installs by install.sh, leaves no scripts behind, and finds what is applied already', async () => {
  const folder = await box.unpack('plain');
  const words = [join(folder, 'install.sh'), '--root', box.at('plain-root'), '--unconfined'];
  await mkdir(box.at('tmp'));
  const env = { TMPDIR: box.at('tmp') };
  assert.match(await succeeds(words, box.path, env), /web +1\.0\.0 +installed/);
  assert.is(await readFile(box.at('plain-root/var/lib/curlew/kustomize/web/seen'), 'utf8'), 'port 8080\n');
  assert.match(await succeeds(words, box.path, env), /web +1\.0\.0 +already applied/);
  assert.equal(await readdir(box.at('tmp')), []);
});

test('a delta since its node makes the whole bundle there; one that counts on the curlew there is for install', async () => {
  const bundle = box.bundle(OWN);
  const trial = ['--root', box.at('delta-root'), '--unconfined', '--skip-images'];
  await succeeds([EXECUTABLE, 'install', '--bundle', bundle, ...trial], box.path);
  const node = box.at('delta-root/var/lib/curlew');
  const make = ['bundle', 'installer.yaml', '--from', `store-${OWN}`, '--arch', OWN];
  await succeeds([EXECUTABLE, 'inventory', node, '-o', 'node.json'], box.path);
  await curlewOk([...make, '--since', 'node.json', '-o', 'whole-delta.tar.gz'], { cwd: box.path, main });
  await succeeds([EXECUTABLE, 'apply', 'whole-delta.tar.gz', '--base', node, '-o', 'made.tar.gz'], box.path);
  assert.is(digestOf(await readFile(box.at('made.tar.gz'))), digestOf(await readFile(bundle)));

  await succeeds([EXECUTABLE, 'inventory', node, '--with-tool', '-o', 'tool.json'], box.path);
  await curlewOk([...make, '--since', 'tool.json', '-o', 'small-delta.tar.gz'], { cwd: box.path, main });
  assert.ok((await stat(box.at('small-delta.tar.gz'))).size < 100_000);
  assert.match(
    await succeeds([EXECUTABLE, 'install', '--bundle', 'small-delta.tar.gz', ...trial], box.path),
    /already/,
  );
  const words = ['apply', 'small-delta.tar.gz', '--base', node, '-o', 'made-2.tar.gz'];
  const { exitCode, stderr } = await outcome([EXECUTABLE, ...words], box.path);
  assert.is(exitCode, 14);
  assert.match(stderr, /1 file \(\d+ bytes\) missing: bin\/curlew .*--base bundle with the same bin\/curlew/s);
  await succeeds([EXECUTABLE, ...words, '--base', bundle], box.path);
});

test('a flipped byte is found before it runs', async () => {
  const folder = await box.unpack('flipped');
  await using file = await open(join(folder, 'bin/curlew'), 'r+');
  const at = Math.floor((await file.stat()).size / 2);
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at);
  await file.write(Buffer.from([(buffer[0] ?? 0) ^ 1]), 0, 1, at);
  const { exitCode, stderr } = await outcome([join(folder, 'install.sh'), '--root', box.at('never')], box.path);
  assert.is(exitCode, 15);
  assert.match(stderr, /bin\/curlew is damaged/);
  assert.not.ok(existsSync(box.at('never')));
});

const s3 = cannotServe('versitygw');
const ONLINE = 'installs from a store in S3';
if (s3 === undefined) {
  test(ONLINE, async () => {
    await using server = await startS3('versitygw', box.at('s3'));
    const store = [`s3://${BUCKET}/dist`, '--s3-endpoint', server.url];
    const words = ['web', '--arch', OWN, '--out', 'out', '--release', 'v1', '--to', ...store];
    await curlewOk(['publish', ...words], { cwd: box.path, main, env: S3_KEYS });
    const install = [EXECUTABLE, 'install', '--from', ...store, '--installer', 'installer.yaml'];
    const trial = ['--root', box.at('s3-root'), '--unconfined', '--skip-images'];
    const { exitCode, stdout, stderr } = await outcome([...install, ...trial], box.path, S3_KEYS);
    assert.is(exitCode, 0, stderr);
    assert.match(stdout, /web +1\.0\.0 +installed/);
    assert.not.match(stderr, /warning|NodeDeprecation/i);
  });
} else {
  test.skip(ONLINE, s3);
}

test('is the same, byte for byte, from another folder, with another umask, time zone and language', async () => {
  await using other = await tree();
  await shell(
    `cd "$1"; git ls-files -z -co --exclude-standard src scripts package.json tsconfig.json |
       xargs -0 cp --parents -t "$2" --
     ln -s "$1/node_modules" "$2/node_modules"; mkdir "$2/.curlew"; cp -a "$3" "$2/.curlew/node"
     rm -f "$2"/.curlew/node/*-${OWN}/*.deflate`,
    ROOT,
    other.path,
    NODES,
  );
  await execa('bash', ['-euc', 'umask 077; exec node --import tsx scripts/build-node-tool.ts'], {
    cwd: other.path,
    env: { ...cleanEnvironment({ cwd: other.path }), TZ: 'Asia/Tokyo', LC_ALL: 'C', NODE_OPTIONS: '--no-warnings' },
    extendEnv: false,
    stdin: 'ignore',
  });
  for (const name of ARCHES.flatMap((arch) => [executableFileName(arch), packedExecutableName(arch)])) {
    const [mine, theirs] = [built(name), other.at('dist/node', name)];
    assert.is(digestOf(await readFile(theirs)), digestOf(await readFile(mine)), name);
    assert.is((await stat(theirs)).mode, (await stat(mine)).mode, name);
  }
});

test('a Node that cannot be fetched is named, with what to do', async () => {
  await using other = await tree({ '.npmrc': 'registry=http://127.0.0.1:9/\nfetch-retries=0\n', 'package.json': '{}' });
  const script = join(ROOT, 'scripts/node-tool/prepare-node.ts');
  const { exitCode, stderr } = await execa('node', ['--import', 'tsx', script, other.at('nodes'), OWN], {
    cwd: ROOT,
    env: { ...cleanEnvironment({ cwd: other.path }), npm_config_registry: 'http://127.0.0.1:9/' },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
  assert.is(exitCode, 1);
  assert.match(stderr, new RegExp(`npm could not fetch node-linux-\\w+@\\S+, .* ${OWN} nodes`));
  assert.match(stderr, /npm registry .* and run again: npm run build/);
  assert.equal(await readdir(other.at('nodes')), []);
});

test.run();
