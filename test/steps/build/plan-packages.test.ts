import { rm, writeFile } from 'node:fs/promises';
import type { Context } from '../../../src/core/context.ts';
import { lockMode, planAddons, planPackages, requireBuildable } from '../../../src/steps/build/plan-packages.ts';
import * as assert from '../../support/assert.ts';
import { addon } from '../../support/builds.ts';
import { noReport } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('steps/build/plan-packages');

function contextIn(cwd: string, signal: AbortSignal): Context {
  return { cwd, env: process.env, report: noReport, signal };
}

test('a plan has the steps of the chosen add-ons, for the architecture and format of the request', async ({
  signal,
}) => {
  await using box = await tree({ ...addon('a', 'asset f ./f\n', { f: 'text' }), ...addon('b', '') });
  const plan = await planPackages(['a'], { arch: 'arm64', imageFormat: 'docker-archive' }, contextIn(box.path, signal));
  assert.equal([plan.arch, plan.imageFormat], ['arm64', 'docker-archive']);
  assert.equal(
    plan.addons.map(({ ref, steps }) => [ref.name, steps.map(({ kind }) => kind)]),
    [['a', ['asset']]],
  );
});

test('errors of all add-ons are reported at once, those of lint only where packages are built', async ({ signal }) => {
  await using box = await tree({ ...addon('a', 'imag x\n'), ...addon('b', 'asset f\n') });
  const error = await assert.rejectsWith(planPackages([], {}, contextIn(box.path, signal)), 'MANIFEST_INVALID');
  assert.equal(
    error.diagnostics.map(({ code, place: { file } }) => `${file}: ${code}`),
    ['addons/a/1.0/Manifest: manifest/unknown-directive', 'addons/b/1.0/Manifest: manifest/missing-column'],
  );
  await rm(box.at('addons/a'), { recursive: true });
  await writeFile(box.at('addons/b/1.0/Manifest'), '');
  await writeFile(box.at('addons/b/1.0/install.sh'), 'b() {\n');
  const { addons } = await planAddons([], {}, contextIn(box.path, signal));
  assert.is(addons.length, 1);
  await assert.rejectsWith(planPackages([], {}, contextIn(box.path, signal)), 'MANIFEST_INVALID', /1 error in/);
});

test('images that are missing from a Manifest are warnings, in the words of lint', async ({ signal }) => {
  const yaml = 'kind: Pod\nspec: {containers: [{image: "a.example/b:1"}]}\n';
  await using box = await tree(addon('a', '', { 'pod.yaml': yaml }));
  const warned: string[] = [];
  const context: Context = {
    ...contextIn(box.path, signal),
    report: (event) => {
      if (event.type === 'note') warned.push(`${event.level} ${event.text}`);
    },
  };
  const plan = await planPackages([], {}, context);
  const missing = 'image/not-listed: the image "a.example/b:1" is missing from the Manifest (image <id> a.example/b:1)';
  const expected = [`warning addons/a/1.0/pod.yaml:2:29 ${missing}`];
  assert.equal(warned, expected);
  await requireBuildable(plan, context);
  assert.equal(warned, [...expected, ...expected]);
  await writeFile(box.at('.curlew-lint.json'), '{"rules": {"image/not-listed": "info"}}');
  await planPackages([], {}, context);
  assert.is(warned.length, 2);
});

test('only the first of many missing images are shown', async ({ signal }) => {
  const images = Array.from({ length: 12 }, (_, at) => `{image: "a.example/b:${at}"}`);
  const yaml = `kind: Pod\nspec: {containers: [${images.join(', ')}]}\n`;
  await using box = await tree(addon('a', '', { 'pod.yaml': yaml }));
  const warned: string[] = [];
  const context: Context = {
    ...contextIn(box.path, signal),
    report: (event) => {
      if (event.type === 'note') warned.push(event.text);
    },
  };
  await planPackages([], {}, context);
  assert.equal([warned.length, warned.at(-1)], [11, '2 more images are missing: curlew lint shows all']);
});

test('the folders of a saved plan are checked again', async ({ signal }) => {
  await using box = await tree(addon('a', ''));
  const context = contextIn(box.path, signal);
  const plan = await planPackages([], {}, context);
  await requireBuildable(plan, context);
  await writeFile(box.at('addons/a/1.0/Manifest'), 'imag x\n');
  await assert.rejectsWith(requireBuildable(plan, context), 'MANIFEST_INVALID');
});

test('a lock is compared unless it is required or written, and never both', () => {
  assert.equal(
    [lockMode({}), lockMode({ locked: true }), lockMode({ updateLock: true })],
    ['compare', 'require', 'update'],
  );
  assert.throwsWith(() => lockMode({ locked: true, updateLock: true }), 'USAGE', /cannot be used together/);
});

test.run();
