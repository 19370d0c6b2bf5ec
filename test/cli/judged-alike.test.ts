/** Whatever `install` refuses of an archive, `verify` refuses, with the same code and before anything is installed. */
import { writeFile } from 'node:fs/promises';
import { makeInventory } from '../../src/ship/bundle/delta/inventory.ts';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { badArchives, goodArchives } from '../support/bad-archives.ts';
import type { TestPackage } from '../support/bundles.ts';
import type { Outcome } from '../support/curlew.ts';
import { bundleOfPackages, deltaOf } from '../support/deltas.ts';
import { install, isUntouched, TRIAL } from '../support/install-command.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { tracer, tracerPackage } from '../support/node-install.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

// not fast: archives in many forms, each judged by several commands
const test = suite('cli/judged-alike', { timeoutMs: 60_000 });

function codeIn(stderr: string): string {
  return /^error ([A-Z_]+)/m.exec(stderr)?.[1] ?? stderr;
}

for (const { title, bytes } of badArchives()) {
  test(`refused alike: ${title}`, async () => {
    await using box = await tree({ 'b.tar.gz': bytes });
    const installed = await install(box, TRIAL);
    assert.is.not(installed.exitCode, 0, 'install');
    await isUntouched(box);
    const verified = await runCommand(['verify', 'b.tar.gz'], box.path);
    assert.equal([verified.exitCode, codeIn(verified.stderr)], [installed.exitCode, codeIn(installed.stderr)]);
    await runCommand(['keygen', 'our'], box.path);
    const signed = await runCommand(['sign', 'b.tar.gz', '--key', 'our.key'], box.path);
    assert.is(signed.exitCode, installed.exitCode, 'sign');
  });
}

for (const { title, bytes } of goodArchives()) {
  test(`taken alike: ${title}`, async () => {
    await using box = await tree({ 'b.tar.gz': bytes });
    const verified = await runCommand(['verify', 'b.tar.gz'], box.path);
    assert.is(verified.exitCode, 0, verified.stderr);
    const installed = await install(box, TRIAL);
    assert.is(installed.exitCode, 0, installed.stderr);
  });
}

test('images that could not be loaded are refused by verify, as the run would refuse them when it loads them', async () => {
  const digest = digestOf('no such blob');
  const image = { id: 'a', reference: 'docker.io/library/a:1', digest, platform: 'linux/amd64' };
  const bytes = bundleOf([{ ...tracer('aaa'), extra: { images: [image] } }]);
  await using box = await tree({ 'b.tar.gz': bytes });
  const { exitCode, stderr } = await runCommand(['verify', 'b.tar.gz'], box.path);
  assert.is(exitCode, 16, stderr);
  assert.match(stderr, /images\/blobs\/sha256\/[0-9a-f]{64} is missing/);
});

test('a delta is judged by what it brings, without its base', async () => {
  const here = tracerPackage('bbb');
  const base = await bundleOfPackages([here]);
  const payloads = base.plan.splice.index.entries.map(({ digest, size }) => ({ digest, size }));
  const inventory = makeInventory({ payloads, packages: [], tool: '1' });
  await using box = await tree();
  const verify = async (brought: TestPackage): Promise<Outcome> => {
    const delta = await deltaOf(await bundleOfPackages([brought, here]), inventory);
    await writeFile(box.at('d.tar.gz'), delta.bytes);
    return runCommand(['verify', 'd.tar.gz'], box.path);
  };
  const good = await verify(tracerPackage('aaa'));
  assert.is(good.exitCode, 0, good.stderr);
  const bad = await verify({ ...tracerPackage('aaa'), extra: { name: 'zzz' } });
  assert.is(bad.exitCode, 16, bad.stderr);
  assert.match(bad.stderr, 'addons/aaa/1.0.0/addon.json describes zzz-1.0.0');
});

test.run();
