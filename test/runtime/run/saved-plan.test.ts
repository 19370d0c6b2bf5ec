import { readFile, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import type { OsId } from '../../../src/core/os.ts';
import { dryRun } from '../../../src/runtime/run/dry-run.ts';
import { plainPlace } from '../../../src/runtime/node/node-place.ts';
import { basisOf, formatPlan, readPlan, requireSamePlan, whatChanged } from '../../../src/runtime/run/saved-plan.ts';
import { RUN } from '../../../src/requests/node.ts';
import { planSchema } from '../../../src/runtime/run/plan-schema.ts';
import { viewRun } from '../../../src/runtime/prepare/prepare.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { bundleOfPackages } from '../../support/deltas.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run, tracer } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';
import type { RunRequest, RunView } from '../../../src/runtime/prepare/request.ts';

const test = suite('runtime/run/saved-plan');

async function view(box: Tree, more: Partial<RunRequest> = {}, ...names: readonly string[]): Promise<RunView> {
  const wanted = names.length === 0 ? ['aaa', 'bbb'] : names;
  const packages = await packagesOf(bundleOf(wanted.map((name) => tracer(name))));
  const request: RunRequest = {
    kind: 'install',
    place: plainPlace(box.at('node')),
    scripts: '',
    packages: packages.map((source) => ({ source, settings: {} })),
    variables: [],
    env: { PATH: process.env['PATH'] },
    reapply: false,
    skipImages: 'a test',
    hookLimit: undefined,
    command: undefined,
    ...more,
  };
  return viewRun(request, { report: noReport, signal: never });
}

async function save(box: Tree, seen: RunView): Promise<string> {
  const words = { bundle: '/b.tar.gz', 'install-dir': box.at('node') };
  const told = await dryRun(seen, { words, tool: '1.0.0', out: undefined, report: noReport, signal: never });
  await writeFile(box.at('plan.json'), formatPlan(told));
  return box.at('plan.json');
}

test('a plan is read as it was saved, and holds while nothing changes', async () => {
  await using box = await tree();
  const seen = await view(box);
  const saved = await readPlan(await save(box, seen), RUN.fields);
  assert.equal(saved.plan, JSON.parse(JSON.stringify(seen.plan)));
  requireSamePlan(saved, await view(box), '1.0.0');
});

test('a package in part is told, and takes the place of a whole one in no plan', async () => {
  await using box = await tree();
  const aaa = { name: 'aaa', version: '1.0.0', files: [{ path: 'rhel-8/archives/a.rpm', data: 'rpm' }] };
  const planned = async (os?: readonly OsId[]): Promise<RunView> => {
    const packages = await packagesOf((await bundleOfPackages([aaa], { os })).bytes);
    return view(box, { packages: packages.map((source) => ({ source, settings: {} })) });
  };
  const saved = await readPlan(await save(box, await planned()), RUN.fields);
  const part = await planned(['ubuntu-22.04']);
  assert.equal(
    part.plan.actions.map(({ because }) => because),
    ['not on this node; the package omits rhel-8'],
  );
  assert.throwsWith(() => requireSamePlan(saved, part, '1.0.0'), 'PLAN_CHANGED', /or their reasons/);
});

for (const [title, more, names, message] of [
  ['an add-on more', {}, ['aaa', 'bbb', 'ccc'], /ccc was not in the plan/],
  ['an add-on less', {}, ['aaa'], /bbb is only in the plan/],
  ['another variable', { variables: [['X', '1']] }, [], /the settings of the installer spec/],
  ['another decision', { reapply: true }, [], /their reasons|new action/],
] as const) {
  test(`${title} is named, and the plan refused`, async () => {
    await using box = await tree();
    await run(box, await packagesOf(bundleOf([tracer('aaa'), tracer('bbb')])));
    const saved = await readPlan(await save(box, await view(box)), RUN.fields);
    const now = await view(box, more, ...names);
    assert.throwsWith(() => requireSamePlan(saved, now, '1.0.0'), 'PLAN_CHANGED', message);
  });
}

test('records that a run has changed meanwhile are named with that run, and so is another curlew', async () => {
  await using box = await tree();
  const saved = await readPlan(await save(box, await view(box)), RUN.fields);
  const { run: id } = await run(box, await packagesOf(bundleOf([tracer('aaa')])));
  const now = await view(box);
  const { message } = assert.throwsWith(() => requireSamePlan(saved, now, '2.0.0'), 'PLAN_CHANGED');
  assert.match(message, `the records of this node: run ${id} ran since`);
  assert.match(message, 'curlew was 1.0.0 and is 2.0.0');
});

test('files of a package that somebody has removed since are extracted again, which is not the plan', async () => {
  await using box = await tree();
  await run(box, await packagesOf(bundleOf([tracer('aaa'), tracer('bbb')])));
  const saved = await readPlan(await save(box, await view(box)), RUN.fields);
  await writeFile(box.at('node/addons/aaa/1.0.0/addon.json'), '{}');
  const now = await view(box);
  assert.throwsWith(() => requireSamePlan(saved, now, '1.0.0'), 'PLAN_CHANGED', /new action: extract aaa-1\.0\.0/);
});

test('what a package holds, its version and its settings are compared', async () => {
  await using box = await tree();
  const before = basisOf(await view(box), '1');
  const [first, ...rest] = before.packages;
  if (first === undefined) throw new Error('no package');
  const changed = (more: object): readonly string[] =>
    whatChanged(before, { ...before, packages: [{ ...first, ...more }, ...rest] });
  assert.equal(changed({}), []);
  assert.equal(changed({ digest: digestOf('x') }), ['the package of aaa-1.0.0']);
  assert.equal(changed({ settings: digestOf('x') }), ['the settings of aaa']);
  assert.equal(changed({ version: '1.0.1' }), ['aaa was 1.0.0 and is 1.0.1']);
});

type Damage = (plan: Record<string, Record<string, unknown>>) => unknown;

for (const [title, damage, message] of [
  ['is another kind of document', () => ({ hello: 1 }), /the document/],
  ['is a list', () => [], /the document must be object/],
  ['has another format', (plan) => ({ ...plan, format: 2 }), /\/format/],
  ['has a word that no plan has', (plan) => ({ ...plan, words: { ...plan['words'], set: 'a.b=c' } }), /"set"/],
  ['has a path that is not absolute', (plan) => ({ ...plan, words: { root: '../x' } }), /\/words\/root/],
  [
    'names an add-on by a path',
    (plan) => ({
      ...plan,
      basis: {
        ...plan['basis'],
        packages: [{ tree: 'addons', name: '../../etc', version: '1', digest: digestOf(''), settings: digestOf('') }],
      },
    }),
    /\/basis\/packages\/0\/name/,
  ],
  ['has an unknown field', (plan) => ({ ...plan, extra: 1 }), /"extra"/],
  [
    'has a digest that is none',
    (plan) => ({ ...plan, basis: { ...plan['basis'], variables: 'md5:1' } }),
    /\/basis\/variables/,
  ],
  [
    'has a number where a text should be',
    (plan) => ({ ...plan, basis: { ...plan['basis'], tool: 1 } }),
    /\/basis\/tool/,
  ],
  [
    'wants a prototype',
    (plan) => JSON.parse(`${JSON.stringify(plan).slice(0, -1)},"__proto__":{"x":1}}`) as unknown,
    /__proto__/,
  ],
] as const satisfies readonly (readonly [string, Damage, RegExp])[]) {
  test(`a file that ${title} is refused with its place`, async () => {
    await using box = await tree();
    const path = await save(box, await view(box));
    const plan = JSON.parse(await readFile(path, 'utf8')) as Parameters<Damage>[0];
    await writeFile(path, JSON.stringify(damage(plan)));
    await assert.rejectsWith(readPlan(path, RUN.fields), 'FILE_UNUSABLE', message);
  });
}

test('a file that is not JSON, or not there, is refused', async () => {
  await using box = await tree({ text: 'plan!', nothing: '' });
  await assert.rejectsWith(readPlan(box.at('text'), RUN.fields), 'FILE_UNUSABLE', /not a saved plan/);
  await assert.rejectsWith(readPlan(box.at('nothing'), RUN.fields), 'FILE_UNUSABLE');
  await assert.rejectsWith(readPlan(box.at('none'), RUN.fields), 'NOT_FOUND');
});

test('the published schema is the one that plans are checked by', async () => {
  assert.equal(
    JSON.parse(await readFile('docs/schemas/plan-1.schema.json', 'utf8')),
    JSON.parse(JSON.stringify(planSchema(RUN.fields))),
  );
});

test.run();
