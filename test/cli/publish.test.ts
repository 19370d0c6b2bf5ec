import { appendFile, readdir, rename } from 'node:fs/promises';
import { changed } from '../../src/app/changed.ts';
import { promote } from '../../src/app/promote.ts';
import { planPublish, publish } from '../../src/app/publish.ts';
import type { Report } from '../../src/core/events.ts';
import type { PublishResult } from '../../src/store/release/publish.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/builds.ts';
import { noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/publish');

for (const [what, code, request] of [
  ['a store of an unknown kind', 'UNSUPPORTED', { to: 'ftp://host/x' }],
  ['a release string that is none', 'USAGE', { to: 'store', release: '../r1' }],
  ['a commit that is none', 'USAGE', { to: 'store', commit: 'main' }],
] as const) {
  test(`${what} is refused before anything is built`, async ({ signal }) => {
    await using box = await tree(addon('a', ''));
    const context = { cwd: box.path, env: {}, report: noReport, signal };
    await assert.rejectsWith(publish(request, context), code);
    assert.equal(await readdir(box.path), ['addons']);
  });
}

/** A folder with one add-on, and what runs use cases in it and keeps their warnings. */
async function shop(signal: AbortSignal) {
  const box = await tree(addon('app', ''));
  const warnings: string[] = [];
  const report: Report = (event) => {
    if (event.type === 'note' && event.level === 'warning') warnings.push(event.text);
  };
  const context = { cwd: box.path, env: {}, report, signal };
  const change = async (): Promise<void> => appendFile(box.at('addons/app/1.0/install.sh'), '# changed\n');
  return { box, context, warnings, change, [Symbol.asyncDispose]: async () => box[Symbol.asyncDispose]() };
}

const listed = ({ packages }: PublishResult): readonly string[] =>
  packages.map(({ version, arch, outcome }) => `${version} ${arch} ${outcome}`);

test('a release for one architecture keeps the packages for the other one', async ({ signal }) => {
  await using box = await shop(signal);
  await publish({ to: 'store', arch: 'amd64', release: 'v1' }, box.context);
  const planned = await planPublish({ to: 'store', arch: 'arm64', release: 'v2' }, box.context);
  assert.equal(
    planned.plan.map(({ change }) => change),
    ['new', 'unchanged'],
  );
  const both = await publish({ to: 'store', arch: 'arm64', release: 'v2' }, box.context);
  assert.equal(listed(both), ['1.0 arm64 uploaded', '1.0 amd64 copied']);
  const { gone, changed: stale } = await changed({ from: 'store', arch: 'amd64' }, box.context);
  assert.equal([gone, stale], [[], []]);
  assert.equal(box.warnings, []);

  await rename(box.box.at('addons/app/1.0'), box.box.at('addons/app/2.0'));
  const next = await publish({ to: 'store', arch: 'arm64', release: 'v3' }, box.context);
  assert.equal(listed(next), ['2.0 arm64 uploaded']);
});

test('a version whose content changes with a release is named, and not refused', async ({ signal }) => {
  await using box = await shop(signal);
  const first = await publish({ to: 'store', release: 'v1' }, box.context);
  const to = 'dist';
  await promote({ from: 'store', to }, box.context);
  await box.change();
  const second = await publish({ to: 'store', release: 'v2' }, box.context);
  assert.is(second.packages[0]?.replaces, first.packages[0]?.digest);
  const promoted = await promote({ from: 'store', to, dryRun: true }, box.context);
  assert.is(promoted.packages[0]?.replaces, first.packages[0]?.digest);
  assert.equal(box.warnings.length, 2);
  for (const text of box.warnings)
    assert.match(text, /^different content than in v1 under the same version: app 1\.0 \(amd64\); nodes that have it/);

  const same = await publish({ to: 'store', release: 'v3' }, box.context);
  assert.is(same.packages[0]?.replaces, undefined);
  assert.is(box.warnings.length, 2);
});

test.run();
