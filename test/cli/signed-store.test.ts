import { execa } from 'execa';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { memorySource } from '../../src/formats/archive/read.ts';
import type { NodeResult } from '../../src/app/install-result.ts';
import { formatAddonJson } from '../../src/core/package.ts';
import type { NotCurrent } from '../../src/ship/release/signed-release.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import * as assert from '../support/assert.ts';
import { planTestBundle, publishTestPackages } from '../support/bundles.ts';
import { MAIN } from '../support/compiled.ts';
import { cleanEnvironment, type Outcome } from '../support/curlew.ts';
import { missing, unless } from '../support/needs.ts';
import { specOf } from '../support/node-bundles.ts';
import { tracerPackage } from '../support/node-install.ts';
import { archiveOf, noise, packageOf } from '../support/packages.ts';
import { madePackage, publishAs } from '../support/releases.ts';
import { runTraced } from '../support/run-command.ts';
import { keepSpec, serveStore } from '../support/served.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFolder } from '../support/web-server.ts';
import type { RunResult } from '../../src/runtime/run/run-result.ts';

// not fast: starts the command again and again
const test = suite('cli: signed releases', { timeoutMs: 120_000 });

const withCurl = unless(missing('curl', 'setsid'), test);
const INVALID = 30;
const PACKAGE = tracerPackage('aaa', '1.0.0', { 'assets/blob': noise(300_000) });

async function done(box: Tree, name: string, ...words: readonly string[]): Promise<Outcome> {
  const outcome = await runTraced([name, ...words], box);
  assert.is(outcome.exitCode, 0, outcome.stderr);
  return outcome;
}

async function refused(box: Tree, message: RegExp, name: string, ...words: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await runTraced([name, ...words], box);
  assert.is(exitCode, INVALID, stderr);
  assert.match(stderr.replaceAll('\n', ' '), message);
}

/** A store with the signed release r1 of one package, and two pairs of keys. */
async function signedBox(signal: AbortSignal): Promise<Tree> {
  const box = await tree({ 'spec.yaml': specOf([{ name: 'aaa', version: 'latest' }]) });
  await publishTestPackages(box, [PACKAGE], signal);
  for (const name of ['our', 'their']) await done(box, 'keygen', name);
  await done(box, 'sign', '--store', 'store', '--release', 'r1', '--key', 'our.key');
  return box;
}

function installing(...words: readonly string[]): readonly string[] {
  return ['--root', 'root', '--unconfined', '--installer', 'spec.yaml', ...words];
}

const NODE = 'root/var/lib/curlew';

test('a run takes the packages of a signed release from a folder and from the web', async ({ signal }) => {
  await using box = await signedBox(signal);
  await using server = await serveFolder(box.at('store'));
  const words = installing('--key', 'our.pub', '--from');
  assert.match((await done(box, 'install', ...words, 'store')).stdout, /^aaa {2}1\.0\.0 {2}installed/);
  assert.match(
    (await done(box, 'install', ...words, server.url, '--root', 'web')).stdout,
    /^aaa {2}1\.0\.0 {2}installed/,
  );
  const seen = JSON.parse(await readFile(box.at('web/var/lib/curlew/seen-releases.json'), 'utf8')) as object;
  assert.equal(Object.keys(seen), ['format', 'releases', 'stores']);
});

test('a run refuses what is not signed, and nothing is made', async ({ signal }) => {
  await using box = await signedBox(signal);
  await refused(
    box,
    /was not made with .*their\.pub/,
    'install',
    ...installing('--from', 'store', '--key', 'their.pub'),
  );
  await mkdir(box.at('plain'));
  const plain = createFolderStore(box.at('plain'));
  await publishAs(plain, 'p1', [await madePackage(box, 'aaa', '1.0.0', 'x')], signal);
  await refused(box, /the signature VERSION/, 'install', ...installing('--from', 'plain', '--key', 'our.pub'));
  await writeFile(
    box.at('o.yaml'),
    specOf([{ name: 'aaa', version: 'latest' }]) + '    s3Override: "http://[::1]:1/x"\n',
  );
  const words = ['--root', 'root', '--unconfined', '--installer', 'o.yaml', '--from', 'store', '--key', 'our.pub'];
  await refused(box, /the package of its s3Override is not signed/, 'install', ...words);
  const misled = await runTraced(
    ['install', ...installing('--from', 'store', '--key', 'our.pub', '--signature', 's')],
    box,
  );
  assert.is(misled.exitCode, 64);
  assert.is(await stat(box.at('trace')).catch(() => 'absent'), 'absent');
});

test('a mirror that is behind or lies is passed over for one that is signed', async ({ signal }) => {
  await using box = await signedBox(signal);
  await using server = await serveFolder(box.at('store'));
  await mkdir(box.at('plain'));
  await publishAs(createFolderStore(box.at('plain')), 'p1', [await madePackage(box, 'aaa', '1.0.0', 'x')], signal);
  const words = installing('--key', 'our.pub', '--from', 'plain', '--from', server.url);
  const { stdout, stderr } = await done(box, 'install', ...words);
  assert.match(stdout, /^aaa {2}1\.0\.0 {2}installed/);
  assert.match(stderr, /the signature VERSION\.sigstore\.json does not exist; trying the next place/);
});

/** Puts a package into the store that has another addon.json, the same size, and the identity of the one that is signed. */
async function swapAddonJson(box: Tree, signal: AbortSignal): Promise<void> {
  const store = createFolderStore(box.at('store'));
  const key = 'r1/aaa-1.0.0.tar.gz';
  const right = await readFile(box.at('store', key));
  const { addon } = packageOf('aaa', '1.0.0', PACKAGE.files);
  const forged = 'abcdefghijklmnopqrstuvwxyz'.split('').map((letter) => {
    const text = formatAddonJson({ ...addon, tool: letter + addon.tool.slice(1) });
    const files = [{ path: 'addon.json', data: text }, ...PACKAGE.files];
    return archiveOf(files.map((file) => ({ ...file, path: `addons/aaa/1.0.0/${file.path}` }))).bytes;
  });
  const bytes = forged.find((one) => one.byteLength === right.byteLength && !one.equals(right));
  if (bytes === undefined) throw new Error('none is of the same size');
  await store.delete(key, { signal });
  await store.put(key, bytes, { signal });
}

test('a package whose addon.json was exchanged is refused, though it has the identity of the signed one', async ({
  signal,
}) => {
  await using box = await signedBox(signal);
  await swapAddonJson(box, signal);
  await using server = await serveFolder(box.at('store'));
  for (const from of ['store', server.url]) {
    const { exitCode, stderr } = await runTraced(['install', ...installing('--from', from, '--key', 'our.pub')], box);
    assert.is(exitCode, 15, stderr);
  }
  const spec = await readFile(box.at('spec.yaml'), 'utf8');
  await assert.rejectsWith(planTestBundle(createFolderStore(box.at('store')), spec, signal), 'DIGEST_MISMATCH');
  assert.is(await stat(box.at('trace')).catch(() => 'absent'), 'absent');
});

test('a node and a workstation refuse a store that was put back behind what they have seen', async ({ signal }) => {
  await using box = await signedBox(signal);
  const store = createFolderStore(box.at('store'));
  const old = await readFile(box.at('store/VERSION.sigstore.json'));
  await done(box, 'sign', '--store', 'store', '--key', 'our.key', '--expires', '30d');
  const words = installing('--from', 'store', '--key', 'our.pub');
  await done(box, 'install', ...words);
  await done(box, 'promote', '--from', 'store', '--to', 'dist@d1', '--key', 'our.pub');
  await store.delete('VERSION.sigstore.json', { signal });
  await store.put('VERSION.sigstore.json', old, { signal });
  await refused(box, /r1 is signed as version \d+, and version \d+ was seen before/, 'install', ...words);
  await refused(box, /was seen before/, 'promote', '--from', 'store', '--to', 'dist@d2', '--key', 'our.pub');
  await writeFile(box.at(NODE, 'seen-releases.json'), '{}');
  const damaged = await runTraced(['install', ...words], box);
  assert.is(damaged.exitCode, 25, damaged.stderr);
});

test('an old release by its name is refused by a node and a workstation that have seen a newer one, unless they are told', async ({
  signal,
}) => {
  await using box = await signedBox(signal);
  const old = installing('--from', 'store', '--key', 'our.pub', '--require-signed', '--release', 'r1');
  await done(box, 'install', ...old);
  const packages = [await madePackage(box, 'aaa', '1.0.0', ': newer')];
  await publishAs(createFolderStore(box.at('store')), 'r2', packages, signal);
  await done(box, 'sign', '--store', 'store', '--release', 'r2', '--key', 'our.key');
  await done(box, 'install', ...old, '--dry-run');
  await done(box, 'install', ...installing('--from', 'store', '--key', 'our.pub', '--release', 'r2', '--dry-run'));
  await done(box, 'install', ...old);
  await done(box, 'install', ...installing('--from', 'store', '--key', 'our.pub', '--release', 'r2'));
  for (const name of ['install', 'upgrade']) {
    const { exitCode, stderr } = await runTraced([name, ...old], box);
    assert.is(exitCode, 34, stderr);
    assert.match(stderr, /r1 is signed as version \d+, but version \d+, r2, was read/);
  }
  await done(box, 'install', ...old, '--allow-downgrade');
  const words = ['spec.yaml', '--from', 'store', '--key', 'our.pub', '--dry-run'];
  await done(box, 'bundle', ...words, '--release', 'r1', '--allow-downgrade', '--out', 'r1.json');
  await done(box, 'bundle', ...words);
  const older = await runTraced(['bundle', ...words, '--release', 'r1'], box);
  assert.is(older.exitCode, 34, older.stderr);
  await done(box, 'bundle', ...words, '--release', 'r1', '--allow-downgrade');
  await done(box, 'bundle', '--from-plan', 'r1.json', '--from', 'store', '--key', 'our.pub', '-o', 'r1.tar.gz');
});

/** Publishes r2, which has another package of the same version, and signs it as the current release. */
async function replaceR1(box: Tree, signal: AbortSignal): Promise<void> {
  const packages = [await madePackage(box, 'aaa', '1.0.0', ': newer')];
  await publishAs(createFolderStore(box.at('store')), 'r2', packages, signal);
  await done(box, 'sign', '--store', 'store', '--release', 'r2', '--key', 'our.key');
}

withCurl(
  'an old script of serve on a node at its first sight installs what it names, and says what is current',
  async ({ signal }) => {
    await using box = await signedBox(signal);
    await keepSpec(box, 'one', specOf([{ name: 'aaa', version: 'latest' }]));
    const data = `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`;
    const tool = archiveOf([{ path: 'bin/curlew', mode: 0o755, data }]);
    const executable = async () => ({ source: memorySource('tool', tool.bytes), index: tool.plan.index });
    await using server = await serveStore(createFolderStore(box.at('store')), { site: { executable } });
    const script = await (await fetch(`${server.url}/one/install.sh`)).text();
    await replaceR1(box, signal);
    const words = ['--root', 'root', '--unconfined', '--key', 'our.pub', '--require-signed', '--json'];
    const env = cleanEnvironment({ cwd: box.path, env: { CURLEW_CACHE: box.at('cache'), TRACE: box.at('trace') } });
    const options = { cwd: box.path, env, extendEnv: false, input: script } as const;
    const { stdout, stderr } = await execa('setsid', ['--wait', 'bash', '-s', '--', ...words], options);
    const { addons, notCurrent } = JSON.parse(stdout) as NodeResult & RunResult;
    assert.equal([addons[0]?.outcome, notCurrent?.named, notCurrent?.current], ['installed', 'r1', 'r2']);
    assert.match(
      stderr,
      /r1 was requested, but r2 is the current release since \d{4}-\d\d-\d\dT[\d:]+Z; unless it is pinned/,
    );
    // A pin stays one.
    const again = await runTraced(
      ['install', ...installing('--key', 'our.pub', '--from', 'store', '--release', 'r1')],
      box,
    );
    assert.equal([again.exitCode, again.stderr.includes('r2 is the current release')], [0, true], again.stderr);
  },
);

test('of a named release, only a current one that is newer or that does not verify is worth a word', async ({
  signal,
}) => {
  await using box = await signedBox(signal);
  const store = createFolderStore(box.at('store'));
  const words = ['bundle', 'spec.yaml', '--from', 'store', '--key', 'our.pub', '--dry-run', '--json', '--release'];
  const saysOf = async (release: string, env = {}): Promise<string | undefined> => {
    const { exitCode, stdout, stderr } = await runTraced([...words, release], box, {
      XDG_STATE_HOME: box.at(release),
      ...env,
    });
    assert.is(exitCode, 0, stderr);
    const { notCurrent } = JSON.parse(stdout) as { readonly notCurrent?: NotCurrent };
    assert.is(stderr.includes(notCurrent?.text ?? 'current release'), notCurrent !== undefined, stderr);
    return notCurrent?.text;
  };
  assert.is(await saysOf('r1'), undefined);
  await replaceR1(box, signal);
  assert.is(await saysOf('r2'), undefined);
  assert.match((await saysOf('r1')) ?? '', 'r1 was requested, but r2 is the current release since');
  const key = 'VERSION.sigstore.json';
  const put = async (text: string): Promise<void> => {
    await store.delete(key, { signal });
    await store.put(key, Buffer.from(text), { signal });
  };
  await put('{}');
  assert.match((await saysOf('r1')) ?? '', 'VERSION.sigstore.json');
  await store.delete(key, { signal });
  assert.is(await saysOf('r1'), undefined);
});

test('where the versions seen cannot be kept, the variable for another folder is named', async ({ signal }) => {
  await using box = await signedBox(signal);
  const words = ['bundle', 'spec.yaml', '--from', 'store', '--key', 'our.pub', '-o', 'bundle.tar.gz'];
  const { exitCode, stderr } = await runTraced(words, box, { XDG_STATE_HOME: '/proc/none' });
  assert.is(exitCode, 25, stderr);
  assert.match(stderr, /cannot create a folder in \/proc\n[^]* hint: set XDG_STATE_HOME to a folder that stays/);
});

test('of a signed release every byte is proved on its way into parts, too', async ({ signal }) => {
  await using box = await signedBox(signal);
  const store = createFolderStore(box.at('store'));
  const key = 'r1/aaa-1.0.0.tar.gz';
  const bytes = await readFile(box.at('store', key));
  const at = bytes.byteLength - 100_000;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  await store.delete(key, { signal });
  await store.put(key, bytes, { signal });
  await mkdir(box.at('parts'));
  const words = ['bundle', 'spec.yaml', '--from', 'store', '--key', 'our.pub', '-o', 'parts/b.tar.gz'] as const;
  for (const more of [[], ['--split', '20M']]) {
    const { exitCode, stderr } = await runTraced([...words, ...more], box);
    assert.is(exitCode, 15, stderr);
    assert.match(stderr, /assets\/blob/);
  }
});

test('promotion asks for signatures, signs in the new place, and tells who stays behind', async ({ signal }) => {
  await using box = await signedBox(signal);
  const from = ['--from', 'store'];
  await refused(box, /was not made with .*their\.pub/, 'promote', ...from, '--to', 'dist', '--key', 'their.pub');
  const words = ['--key', 'our.pub', '--require-signed', '--sign', 'their.key', '--expires', '2w'];
  const { stdout } = await done(box, 'promote', ...from, '--to', 'dist@d1', ...words);
  assert.match(stdout, /r1 of .*store is signed with .*our\.pub/);
  await done(box, 'install', ...installing('--from', 'dist', '--key', 'their.pub'));
  const unsigned = await done(box, 'promote', ...from, '--to', 'dist@d2');
  assert.match(unsigned.stderr, /d2 is not signed as the current release/);
  await done(box, 'install', ...installing('--from', 'dist', '--key', 'their.pub', '--install-dir', '/opt/b'));
  await refused(
    box,
    /the signature .* does not exist/,
    'promote',
    '--from',
    'dist@d2',
    '--to',
    'e',
    '--key',
    'their.pub',
  );
});

test('versions names the key of a signed release, and refuses another key', async ({ signal }) => {
  await using box = await signedBox(signal);
  const from = ['--from', 'store', '--key'];
  assert.match((await done(box, 'versions', ...from, 'our.pub')).stdout, /^release r1 of .*, signed with .*our\.pub$/m);
  await refused(box, /was not made with .*their\.pub/, 'versions', ...from, 'their.pub');
  // A list has not used what it shows.
  const seen = async (): Promise<string> => readFile(box.at('.local/state/curlew', 'seen-releases.json'), 'utf8');
  const before = await seen();
  await done(box, 'sign', '--store', 'store', '--key', 'our.key', '--expires', '30d');
  const signed = await seen();
  await writeFile(box.at('.local/state/curlew/seen-releases.json'), before);
  await done(box, 'versions', ...from, 'our.pub');
  assert.is(await seen(), before);
  assert.is.not(signed, before);
  await refused(
    box,
    /packages in a signed store have no signatures of their own: curlew versions --from STORE --key FILE/,
    'verify',
    'store/r1/aaa-1.0.0.tar.gz',
    '--key',
    'our.pub',
  );
});

test('a release that is published again without a key, though it is signed as current, causes no warning', async ({
  signal,
}) => {
  await using box = await signedBox(signal);
  await mkdir(box.at('addons/web/1.0.0'), { recursive: true });
  await writeFile(box.at('addons/web/1.0.0/Manifest'), '');
  await writeFile(box.at('addons/web/1.0.0/install.sh'), 'web() { :; }\n');
  const words = ['--to', 'fresh', '--release'];
  const { stdout } = await done(box, 'publish', ...words, 'v1', '--sign', 'our.key');
  assert.match(stdout, /v1 is the current release, signed with our\.key until 20\d\d-\d\d-\d\dT[\d:]+Z; /);
  assert.not.match((await done(box, 'publish', ...words, 'v1')).stderr, 'is not signed');
  await writeFile(box.at('addons/web/1.0.0/install.sh'), 'web() { true; }\n');
  assert.match((await done(box, 'publish', ...words, 'v2')).stderr, 'v2 is not signed as the current release');
});

test('words that do not go together are told', async ({ signal }) => {
  await using box = await signedBox(signal);
  for (const [name, words] of [
    ['sign', ['b.tar.gz', '--key', 'our.key', '--release', 'r1']],
    ['sign', ['b.tar.gz', '--key', 'our.key', '--expires', '0d']],
    ['sign', ['--store', 'store', '--key', 'our.key', '--number', '7']],
    ['sign', ['--store', 'store', '--key', 'our.key', '--name', 'edge']],
    ...['0', '-1', '1.5', '1e3', '0x10', '9007199254740992', 'one'].map(
      (number) => ['sign', ['b.tar.gz', '--key', 'our.key', '--number', number]] as const,
    ),
    ...['', '.hidden', 'a b', 'a/b', '__proto__', 'x'.repeat(101)].map(
      (name) => ['sign', ['b.tar.gz', '--key', 'our.key', '--name', name]] as const,
    ),
    ['sign', ['b.tar.gz', '--store', 'store', '--key', 'our.key']],
    ['sign', ['--store', 'store']],
    ['sign', ['--store', 'store', '--key', 'our.key', '--expires', 'soon']],
    ['sign', ['--store', 'store', '--key', 'our.key', '--release', '..']],
    ['promote', ['--from', 'store', '--to', 'dist', '--expires', '30d']],
    ['bundle', ['spec.yaml', '--from', 'store', '--dry-run', '--require-signed']],
  ] as const) {
    assert.is((await runTraced([name, ...words], box)).exitCode, 64, words.join(' '));
  }
  assert.is((await runTraced(['sign', '--store', 'store', '--key', 'our.key', '--release', 'r9'], box)).exitCode, 14);
});

test.run();
