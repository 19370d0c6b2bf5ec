import { appendFile, cp, readdir, rename, rm } from 'node:fs/promises';
import { changed } from '../../src/app/changed.ts';
import { keygen } from '../../src/app/keygen.ts';
import { promote } from '../../src/app/promote.ts';
import { planPublish, publish } from '../../src/app/publish.ts';
import type { Report } from '../../src/core/events.ts';
import type { PublishResult } from '../../src/ship/release/publish.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/builds.ts';
import { noReport } from '../support/context.ts';
import { curlew } from '../support/curlew.ts';
import { runCommand } from '../support/run-command.ts';
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
  const context = { cwd: box.path, env: { HOME: box.path }, report, signal };
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

test('a dry run warns of what the publish warns about', async ({ signal }) => {
  await using box = await shop(signal);
  const { context, warnings } = box;
  await cp(box.box.at('addons/app'), box.box.at('addons/gone'), { recursive: true });
  await cp(box.box.at('addons/app/1.0'), box.box.at('addons/app/nightly'), { recursive: true });
  await keygen({ name: 'our' }, context);
  await publish({ to: 'store', release: 'v2', sign: 'our.key', channel: ['stable'] }, context);
  await box.change();
  await rm(box.box.at('addons/gone'), { recursive: true });
  warnings.length = 0;
  const request = { to: 'store', release: 'v1' };
  await planPublish(request, context);
  const planned = warnings.splice(0);
  await publish(request, context);
  assert.equal(
    planned.map((text) => text.replace(/^possibly /, '').replace('would not be signed', 'is not signed')),
    warnings.map((text) =>
      text.replace(/; (curlew sign .*) signs it$/, '; add --sign FILE, or sign it afterwards with $1'),
    ),
  );
  const found = [
    'v1 becomes the current release',
    'not in the channels',
    'possibly different',
    'no longer',
    'would not be',
  ];
  for (const part of found)
    assert.ok(
      planned.some((text) => text.includes(part)),
      part,
    );
});

for (const [what, code, message, request] of [
  ['other content under a published release', 'STORE_CONFLICT', /v1 was published with different/, { release: 'v1' }],
  ['a base that is not signed', 'SIGNATURE_INVALID', /v1, on which .*, is not signed/, { sign: 'our.key' }],
  ['a key that is not there', 'NOT_FOUND', /their\.key/, { sign: 'their.key' }],
  ['--expires without a key', 'USAGE', /--expires requires --sign/, { expires: 1000 }],
  ['a lock that was not committed', 'LOCK_MISMATCH', /has no Manifest\.lock/, { locked: true }],
] as const) {
  test(`a dry run refuses ${what}, as the publish does`, async ({ signal }) => {
    await using box = await shop(signal);
    const { context } = box;
    await publish({ to: 'store', release: 'v1' }, context);
    await keygen({ name: 'our' }, context);
    await cp(box.box.at('addons/app'), box.box.at('addons/new'), { recursive: true });
    const given = { to: 'store', ...request };
    await assert.rejectsWith(planPublish(given, context), code, message);
    await assert.rejectsWith(publish(given, context), code, message);
  });
}

test('a dry run for a release that exists warns that the builds decide', async ({ signal }) => {
  await using box = await shop(signal);
  const request = { to: 'store', release: 'v1' };
  await publish(request, box.context);
  await planPublish(request, box.context);
  assert.equal(box.warnings, []);
  await box.change();
  await planPublish(request, box.context);
  assert.match(box.warnings[0] ?? '', /^v1 exists: the publish is refused if its builds make other content/);
});

test('a dry run writes no lock', async ({ signal }) => {
  await using box = await shop(signal);
  const request = { to: 'store', release: 'v1' };
  await publish(request, box.context);
  await planPublish({ ...request, updateLock: true }, box.context);
  assert.equal((await readdir(box.box.at('addons/app/1.0'))).toSorted(), ['Manifest', 'install.sh']);
});

test('each add-on is named once, in the result', async () => {
  await using box = await tree({ ...addon('api', ''), ...addon('web', '') });
  const { exitCode, stdout, stderr } = await curlew(['publish', '--to', 'store'], { cwd: box.path });
  assert.equal([exitCode, stderr], [0, '']);
  assert.match(stdout, /^api 1\.0: uploaded, .*\nweb 1\.0: uploaded, .*\n.*is the current release/);
  const { stderr: lines } = await curlew(['build', '--out', 'other', '--json'], { cwd: box.path });
  assert.equal(lines.split('\n').toSorted(), ['api-1.0: built', 'web-1.0: built']);
});

test('a dry run counts the packages whose size is not known yet', async () => {
  await using box = await tree({ ...addon('a', ''), ...addon('b', '') });
  const dry = async (...names: readonly string[]): Promise<string> => {
    const { stdout } = await runCommand(
      ['publish', ...names, '--to', 'store', '--release', 'v1', '--dry-run'],
      box.path,
    );
    return / would be created; (.*)$/.exec(stdout)?.[1] ?? stdout;
  };
  assert.is(await dry(), '2 packages of a size not known yet to be uploaded, 0 B copied');
  await runCommand(['build', 'a'], box.path);
  assert.match(await dry(), /^about [\d.]+ kB and 1 package of a size not known yet to be uploaded, 0 B copied$/);
  assert.match(await dry('a'), /^about [\d.]+ kB to be uploaded, 0 B copied$/);
  await runCommand(['publish', '--to', 'store', '--release', 'v1'], box.path);
  assert.match(await dry(), /^0 B to be uploaded, [\d.]+ kB copied$/);
});

test.run();
