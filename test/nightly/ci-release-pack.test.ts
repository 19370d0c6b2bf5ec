/** What a release of curlew itself is made of, from this checkout's own build. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { makeKeyPair } from '../../src/formats/signing/keys.ts';
import { cannotRun, oracle } from '../components/support/programs.ts';
import { built, BUILT_MAIN, CHECKOUT } from '../support/built.ts';
import { unless } from '../support/needs.ts';
import { ci } from '../support/ci.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { createOpened } from '../components/support/opened.ts';

const test = suite('scripts/ci/release-pack, release-sign and release-publish', { timeoutMs: 900_000 });

const { privateKey, publicKey } = makeKeyPair(undefined);
const GH = '#!/bin/sh\nprintf "%s\\n" "$*" >"$HOME/gh"\n';
const manifest = await readFile(join(import.meta.dirname, '../../package.json'), 'utf8');
const { version } = JSON.parse(manifest) as { readonly version: string };
const ENDS = '-image.tar -linux-amd64.tar.gz -linux-arm64.tar.gz -utils.tar.gz .aarch64.rpm .tgz .x86_64.rpm'.split(
  ' ',
);
const FILES = [
  ...ENDS.map((end) => `curlew-${version}${end}`),
  ...['amd64', 'arm64'].map((arch) => `curlew_${version}_${arch}.deb`),
];

const MAINTAINER = { CURLEW_MAINTAINER: 'Ann Example <ann@example.com>' };

/** A checkout of which only the version counts, with a `gh` that writes down its words. */
async function checkout(): Promise<Tree> {
  return tree({ 'package.json': manifest, 'bin/gh': GH, 'docs/release.pub': publicKey });
}

async function sign(box: Tree): Promise<void> {
  const { exitCode, stderr } = await ci(box, ['release-sign', 'release'], { CURLEW_RELEASE_KEY: privateKey }, CHECKOUT);
  assert.is(exitCode, 0, stderr);
}

async function pack(box: Tree): Promise<void> {
  const { exitCode, stderr } = await ci(box, ['release-pack', box.at('release')], MAINTAINER, CHECKOUT);
  assert.is(exitCode, 0, stderr);
}

const opened = createOpened();
let made: Tree;
test.before(async () => {
  await execa('npm', ['run', 'image'], { cwd: CHECKOUT });
  made = opened.keep(await checkout());
  await pack(made);
});
test.after(opened.close);

/** A checkout with a copy of the release that was packed once. */
async function packed(): Promise<Tree> {
  const box = await checkout();
  await cp(made.at('release'), box.at('release'), { recursive: true });
  return box;
}

test('is the npm package, the executables, the packages of distributions, an image, and their checksums, always the same', async () => {
  await using first = await packed();
  await using second = await checkout();
  await pack(second);
  const sums = await readFile(first.at('release/SHA256SUMS'), 'utf8');
  assert.is(sums, await readFile(second.at('release/SHA256SUMS'), 'utf8'));
  const names = [...sums.matchAll(/^[0-9a-f]{64} {2}(.+)$/gm)].map(([, name = '']) => name);
  assert.equal(names.toSorted(), FILES.toSorted());
  const { stdout } = await execa('tar', ['-xOzf', `release/curlew-${version}.tgz`, 'package/package.json'], {
    cwd: first.path,
  });
  assert.is((JSON.parse(stdout) as { readonly version: string }).version, version);
  await execa('tar', ['-xzf', `release/curlew-${version}-utils.tar.gz`], { cwd: first.path });
  const { stdout: described } = await execa(process.execPath, [BUILT_MAIN, 'lint', 'packages/curlew-utils', '--json'], {
    cwd: first.path,
  });
  assert.match(described, '"errors": 0');
});

test('without the one who answers for it, a release is not packed', async () => {
  await using box = await checkout();
  const { exitCode, stderr } = await ci(box, ['release-pack', box.at('release')], {}, CHECKOUT);
  assert.is(exitCode, 1);
  assert.match(stderr, 'set CURLEW_MAINTAINER to the name and the mail address of who releases');
});

unless(cannotRun('lintian'), test)('lintian has nothing to say about the debs', async () => {
  for (const arch of ['amd64', 'arm64']) {
    const { stdout } = await execa('lintian', [made.at('release', `curlew_${version}_${arch}.deb`)], { reject: false });
    assert.is(stdout, '', arch);
  }
});

test('is published under the tag of its version', async () => {
  await using box = await packed();
  await sign(box);
  const env = { PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}` };
  const { exitCode, stderr } = await ci(box, ['release-publish', `v${version}`, 'release'], env, CHECKOUT);
  assert.is(exitCode, 0, stderr);
  const words = await readFile(box.at('gh'), 'utf8');
  assert.match(words, `release create v${version} --verify-tag`);
  for (const name of ['SHA256SUMS', 'SHA256SUMS.sig', ...FILES]) assert.match(words, `release/${name}`);
});

const reason = existsSync(oracle('cosign')) ? undefined : 'missing: scripts/tools cosign';
unless(reason, test)(
  'cosign verifies each file, and the executable that lies in bundles, by its provenance',
  async () => {
    await using box = await packed();
    await sign(box);
    const verify = async (file: string): Promise<boolean> => {
      const words = ['--key', 'docs/release.pub', '--insecure-ignore-tlog', '--type', 'slsaprovenance1'];
      const bundle = `release/curlew-${version}.provenance.sigstore.json`;
      const all = ['verify-blob-attestation', ...words, '--bundle', bundle, file];
      return (
        (
          await execa(oracle('cosign'), all, {
            cwd: box.path,
            env: { HOME: box.path, COSIGN_MAX_ATTACHMENT_SIZE: '300MB' },
            reject: false,
          })
        ).exitCode === 0
      );
    };
    for (const name of ['SHA256SUMS', ...FILES]) assert.ok(await verify(`release/${name}`), name);
    for (const arch of ['amd64', 'arm64']) assert.ok(await verify(built(`curlew-linux-${arch}`)), arch);
    await execa('bash', ['-c', `printf x >>release/curlew-${version}.tgz`], { cwd: box.path });
    assert.not.ok(await verify(`release/curlew-${version}.tgz`));
  },
);

for (const [title, tag, damage] of [
  ['another tag', 'v99.0.0', ''],
  ['a file that is damaged', `v${version}`, 'x'],
] as const) {
  test(`${title} is not published`, async () => {
    await using box = await packed();
    await sign(box);
    await execa('bash', ['-c', `printf '${damage}' >>release/curlew-${version}.tgz`], { cwd: box.path });
    const env = { PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}` };
    assert.is((await ci(box, ['release-publish', tag, 'release'], env, CHECKOUT)).exitCode, 1);
    assert.not.ok(existsSync(box.at('gh')));
  });
}

test.run();
