/** What docs/usage.md and docs/signing.md tell people to type on a machine without curlew, carried out as it stands there. */
import { execa } from 'execa';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { memorySource, readTocText } from '../../src/formats/archive/read.ts';
import { digestOf, hexOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { bundleWithScript, exchangeScript, HOSTILE, HONEST } from '../support/exchanged.ts';
import { missing, unless } from '../support/needs.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/signing-page', { timeoutMs: 120_000 });
const withOpenssl = unless(missing('openssl', 'tar', 'sha256sum'), test);

/** The blocks of shell of a page. */
async function blocksOf(page: string): Promise<readonly string[]> {
  return [...(await readFile(page, 'utf8')).matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
}

async function blockWith(page: string, word: string): Promise<string> {
  const [only, another] = (await blocksOf(page)).filter((block) => block.includes(word));
  assert.ok(only !== undefined && another === undefined, `${page}: ${word}`);
  return only ?? '';
}

const usage = await blockWith('docs/usage.md', 'openssl dgst');
const checks = {
  openssl: await blockWith('docs/signing.md', 'bundle.tar.gz.sig bundle.tar.gz'),
  sha256sum: await blockWith('docs/signing.md', 'bundle.tar.gz.sha256'),
};
const unpack = await blockWith('docs/signing.md', 'tar -xzf');

/** A signed bundle, by the commands. */
async function signedBox(): Promise<Tree> {
  const box = await tree({ 'bundle.tar.gz': bundleWithScript() });
  for (const words of [
    ['keygen', 'release'],
    ['sign', 'bundle.tar.gz', '--key', 'release.key'],
  ]) {
    const { exitCode, stderr } = await runTraced(words, box);
    assert.is(exitCode, 0, stderr);
  }
  return box;
}

/** Types lines into a shell; true when the last one went well. */
async function type(box: Tree, lines: string): Promise<{ readonly ok: boolean; readonly output: string }> {
  const { exitCode, all } = await execa('bash', ['-c', lines], {
    cwd: box.path,
    reject: false,
    all: true,
    stdin: 'ignore',
  });
  return { ok: exitCode === 0, output: all };
}

/** Puts a hostile install.sh into the bundle: its table of contents, and every place in the file, stay as they were. */
async function attack(box: Tree): Promise<void> {
  const bytes = await readFile(box.at('bundle.tar.gz'));
  const contents = await readTocText(memorySource('b', bytes), { signal: never });
  const exchanged = await exchangeScript(bytes);
  assert.equal(await readTocText(memorySource('b', exchanged), { signal: never }), contents);
  assert.is(exchanged.byteLength, bytes.byteLength);
  await writeFile(box.at('bundle.tar.gz'), exchanged);
}

withOpenssl('a bundle as it was signed is proved, unpacked and run by what the pages say', async () => {
  await using box = await signedBox();
  for (const lines of [checks.openssl, checks.sha256sum]) {
    const { ok, output } = await type(box, lines);
    assert.ok(ok, output);
    assert.match(output, /^(?:Verified OK|bundle\.tar\.gz: OK)$/m);
  }
  const { ok, output } = await type(box, usage);
  assert.ok(ok, output);
  assert.match(output, HONEST);
});

withOpenssl(
  'tar and sh run what was put in the place of install.sh behind the back of the table of contents',
  async () => {
    await using box = await signedBox();
    await attack(box);
    assert.match((await type(box, unpack)).output, HOSTILE);
  },
);

withOpenssl('what the pages say refuses that before tar sees it', async () => {
  await using box = await signedBox();
  await attack(box);
  for (const lines of [checks.openssl, checks.sha256sum, usage]) {
    const { ok, output } = await type(box, lines);
    assert.not.ok(ok, lines);
    assert.not.match(output, HOSTILE);
  }
  assert.is(await stat(box.at('bundle')).catch(() => 'absent'), 'absent');
});

withOpenssl(
  'openssl refuses it though its sum was put right, and so it does with the signature of another file',
  async () => {
    await using box = await signedBox();
    const honest = await readFile(box.at('bundle.tar.gz'));
    await attack(box);
    const sum = hexOf(digestOf(await readFile(box.at('bundle.tar.gz'))));
    await writeFile(box.at('bundle.tar.gz.sha256'), `${sum}  bundle.tar.gz\n`);
    assert.not.ok((await type(box, checks.openssl)).ok);
    const statement = await readFile(box.at('bundle.tar.gz.sigstore.json'), 'utf8');
    const { dsseEnvelope } = JSON.parse(statement) as { dsseEnvelope: { signatures: [{ sig: string }] } };
    await writeFile(box.at('bundle.tar.gz.sig'), Buffer.from(dsseEnvelope.signatures[0].sig, 'base64'));
    assert.not.ok((await type(box, usage)).ok);
    await writeFile(box.at('bundle.tar.gz'), honest);
    assert.not.ok((await type(box, checks.openssl)).ok);
  },
);

withOpenssl('parts are joined as the pages say, and the file is proved by the signatures beside them', async () => {
  await using box = await signedBox();
  const { exitCode, stderr } = await runTraced(['split', 'bundle.tar.gz', '--size', '20K', '--to', '.'], box);
  assert.is(exitCode, 0, stderr);
  const page = await readFile('docs/signing.md', 'utf8');
  const join = /`(cat bundle\.tar\.gz\.part-\*[^`]+)`/.exec(page)?.[1] ?? 'false';
  const lines = ['rm bundle.tar.gz', join, checks.openssl, checks.sha256sum].join('\n');
  const done = await type(box, `set -e\n${lines}`);
  assert.ok(done.ok, done.output);
  const parts = await type(box, 'ls bundle.tar.gz.part-*');
  const [first = ''] = parts.output.split('\n');
  const bytes = await readFile(box.at(first));
  bytes[500] = (bytes[500] ?? 0) ^ 1;
  await writeFile(box.at(first), bytes);
  assert.not.ok((await type(box, `set -e\n${lines}`)).ok);
});

test.run();
