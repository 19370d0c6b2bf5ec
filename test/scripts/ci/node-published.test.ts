/** The pinned Node beside what a web server publishes: archives as nodejs.org has them, and a list that real gpg has signed. */
import { execa } from 'execa';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { ci } from '../../support/ci.ts';
import type { Outcome } from '../../support/curlew.ts';
import { missing, unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { startServer } from '../../support/web-server.ts';

const test = suite('scripts/ci/node-published', { timeoutMs: 120_000 });
const ROOT = join(import.meta.dirname, '../../..');
const PLATFORMS = { amd64: 'linux-x64', arm64: 'linux-arm64' } as const;
const LIST = 'v1.2.3/SHASUMS256.txt.asc';

/** A checkout whose pins are those of the archives in `dist`, with a signed list where a signer is named. */
async function published(): Promise<Tree> {
  const box = await tree();
  const arches: Record<string, object> = {};
  let list = '';
  for (const [arch, platform] of Object.entries(PLATFORMS)) {
    const folder = `node-v1.2.3-${platform}`;
    const archive = `${folder}.tar.gz`;
    await mkdir(box.at('dist/v1.2.3', folder, 'bin'), { recursive: true });
    await writeFile(box.at('dist/v1.2.3', folder, 'bin/node'), `node of ${arch}`);
    await writeFile(box.at('dist/v1.2.3', folder, 'LICENSE'), 'license');
    await execa('tar', ['-czf', archive, folder], { cwd: box.at('dist/v1.2.3') });
    const archiveDigest = hexOf(digestOf(await readFile(box.at('dist/v1.2.3', archive))));
    arches[arch] = { archive, archiveDigest, node: hexOf(digestOf(Buffer.from(`node of ${arch}`))) };
    list += `${archiveDigest}  ${archive}\n`;
  }
  await mkdir(box.at('scripts/node-tool'), { recursive: true });
  for (const folder of ['ci', 'support']) await mkdir(box.at('scripts', folder));
  for (const name of ['ci/node-published', 'support/ci.bash']) {
    await copyFile(join(ROOT, 'scripts', name), box.at('scripts', name));
  }
  const pins = { version: '1.2.3', license: hexOf(digestOf(Buffer.from('license'))), arches };
  await writeFile(box.at('scripts/node-tool/node.json'), JSON.stringify(pins));
  await writeFile(box.at('list'), list);
  return box;
}

/** Runs it against a server that has the files of `dist`. */
async function compare(box: Tree, ...words: readonly string[]): Promise<Outcome> {
  const files = [LIST, ...Object.values(PLATFORMS).map((platform) => `v1.2.3/node-v1.2.3-${platform}.tar.gz`)];
  const bodies = new Map<string, Buffer>();
  for (const path of files) {
    const body = await readFile(box.at('dist', path)).catch(() => undefined);
    if (body !== undefined) bodies.set(`/${path}`, body);
  }
  await using server = await startServer(({ path }) => {
    const body = bodies.get(path);
    return body === undefined ? { status: 404 } : { status: 200, body };
  });
  return await ci(box, ['node-published', ...words], { NODE_DIST: server.url }, box.path);
}

async function changePins(box: Tree, change: (text: string) => string): Promise<void> {
  const path = box.at('scripts/node-tool/node.json');
  await writeFile(path, change(await readFile(path, 'utf8')));
}

test('archives that are as pinned, and files in them, are named', async () => {
  await using box = await published();
  const { exitCode, stdout, stderr } = await compare(box);
  assert.is(exitCode, 0, stderr);
  assert.is(stdout, 'node-v1.2.3-linux-x64.tar.gz: as published\nnode-v1.2.3-linux-arm64.tar.gz: as published');
});

for (const [title, wanted, said] of [
  ['an archive', 'archive', /linux-arm64\.tar\.gz is sha256:\w+, not the pinned/],
  ['the program', 'node of arm64', /linux-arm64\/bin\/node is sha256:\w+, not the pinned/],
  ['the license', 'license', /linux-x64\/LICENSE is sha256:\w+, not the pinned/],
] as const) {
  test(`${title} that is another one is an error`, async () => {
    await using box = await published();
    const archive = await readFile(box.at('dist/v1.2.3/node-v1.2.3-linux-arm64.tar.gz'));
    const digest = hexOf(digestOf(wanted === 'archive' ? archive : Buffer.from(wanted)));
    await changePins(box, (text) => text.replace(digest, hexOf(digestOf(Buffer.from('something else')))));
    const { exitCode, stderr } = await compare(box);
    assert.is(exitCode, 1);
    assert.match(stderr, said);
  });
}

test('a release that is not there is an error', async () => {
  await using box = await published();
  await changePins(box, (text) => text.replace('1.2.3"', '9.9.9"'));
  const { exitCode, stderr } = await compare(box);
  assert.is(exitCode, 1);
  assert.match(stderr, /cannot fetch http:.*\/v9\.9\.9\/node-v1\.2\.3-linux-x64\.tar\.gz/);
});

test('the pins are of the archives of the pinned version', async () => {
  const { version, arches } = JSON.parse(await readFile(join(ROOT, 'scripts/node-tool/node.json'), 'utf8')) as {
    readonly version: string;
    readonly arches: Readonly<Record<string, { readonly archive: string; readonly package: string }>>;
  };
  for (const [arch, platform] of Object.entries(PLATFORMS)) {
    assert.is(arches[arch]?.archive, `node-v${version}-${platform}.tar.gz`);
    assert.is(arches[arch]?.package, `node-${platform}`);
  }
});

const signed = unless(missing('gpg', 'gpgv', 'gpgconf'), test);

/** Signs the list as somebody; returns the path of a keyring with their key. */
async function sign(box: Tree, name: string): Promise<string> {
  const env = { GNUPGHOME: box.at(name) };
  await mkdir(env.GNUPGHOME, { mode: 0o700 });
  const gpg = async (...words: readonly string[]): Promise<void> => {
    await execa('gpg', ['--batch', '--quiet', '--passphrase', '', ...words], { cwd: box.path, env });
  };
  try {
    await gpg('--quick-generate-key', `${name}@example.com`, 'ed25519', 'sign', 'never');
    await gpg('--output', `${name}.gpg`, '--export');
    await gpg('--yes', '--output', `dist/${LIST}`, '--clear-sign', 'list');
  } finally {
    await execa('gpgconf', ['--kill', 'all'], { env });
  }
  return `${name}.gpg`;
}

signed('with a keyring, the list of the archives has to be signed by a key of it', async () => {
  await using box = await published();
  const keyring = await sign(box, 'releaser');
  const { exitCode, stdout, stderr } = await compare(box, keyring);
  assert.is(exitCode, 0, stdout + stderr);
  await sign(box, 'stranger');
  const other = await compare(box, keyring);
  assert.is(other.exitCode, 1);
  assert.match(other.stderr, 'is not signed by a key of releaser.gpg');
});

signed('a signed list with another digest is an error', async () => {
  await using box = await published();
  const list = await readFile(box.at('list'), 'utf8');
  await writeFile(box.at('list'), list.replace(/^\w{64}/, hexOf(digestOf(Buffer.from('another')))));
  const { exitCode, stderr } = await compare(box, await sign(box, 'releaser'));
  assert.is(exitCode, 1);
  assert.match(stderr, 'does not have node-v1.2.3-linux-x64.tar.gz as sha256:');
});

test.run();
