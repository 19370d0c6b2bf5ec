import { copyFile, cp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { openSavedPlan } from '../../../src/ship/bundle/open-saved.ts';
import { formatBundlePlan, parseBundlePlan } from '../../../src/ship/bundle/plan-file.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages, specOf, type TestPackage } from '../../support/bundles.ts';
import { archiveOf, noise } from '../../support/packages.ts';
import { planSpec, putTool, writePlan } from '../../support/saved-plans.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('ship/bundle/plan-file');

const shared = noise(20_000, 7);
const PACKAGES: readonly TestPackage[] = [
  {
    name: 'alpha',
    version: '1.0.0',
    files: [
      { path: 'install.sh', data: 'alpha() { :; }\n' },
      { path: 'assets/empty', data: '' },
      { path: 'images/blobs/sha256/a', data: shared },
    ],
  },
  {
    name: 'beta',
    version: '2.0.0',
    files: [
      { path: 'install.sh', data: 'beta() { :; }\n', mode: 0o755 },
      { path: 'images/blobs/sha256/a', data: shared },
      { path: 'text', data: 'word '.repeat(5000) },
    ],
  },
];
const SPEC = specOf({ alpha: 'latest', beta: '2.0.x' });

interface Saved {
  readonly store: Store;
  readonly text: string;
}

async function save(box: Tree, signal: AbortSignal): Promise<Saved> {
  const store = await publishTestPackages(box, PACKAGES, signal);
  await using open = await planSpec(box, store, SPEC, { signal });
  await writePlan(open, box.at('direct.tar.gz'), signal);
  return { store, text: formatBundlePlan({ store: store.address, plan: open.plan }) };
}

let once: Promise<string> | undefined;

/** The text of one and the same plan. */
async function planText(signal: AbortSignal): Promise<string> {
  once ??= (async () => {
    await using box = await tree();
    return (await save(box, signal)).text;
  })();
  return once;
}

/** The plan with some of its fields changed. */
function changed(text: string, change: (plan: Plan) => void): string {
  const plan = JSON.parse(text) as Plan;
  change(plan);
  return JSON.stringify(plan);
}

interface Plan {
  [field: string]: unknown;
  size: number;
  sources: Record<string, unknown>[];
  entries: (Record<string, unknown> & { from?: { source: number; offset: number; length: number } })[];
}

test('a saved plan gives the same bytes as the plan itself, from a copy of the store too', async ({ signal }) => {
  await using box = await tree();
  const { store, text } = await save(box, signal);
  await cp(box.at('store'), box.at('elsewhere'), { recursive: true });

  const saved = parseBundlePlan(text, 'plan.json');
  assert.is(formatBundlePlan(saved), text, 'a plan that was read is the plan that was written');
  const direct = await readFile(box.at('direct.tar.gz'));
  for (const [name, from] of [
    ['here.tar.gz', store],
    ['there.tar.gz', createFolderStore(box.at('elsewhere'))],
  ] as const) {
    await using open = await openSavedPlan(saved, from, { executables: box.at('node'), signal });
    await writePlan(open, box.at(name), signal);
    assert.ok(direct.equals(await readFile(box.at(name))), name);
  }
});

test('a plan names the add-ons with secrets, by the schemas of its packages too, also once it is saved', async ({
  signal,
}) => {
  await using box = await tree();
  const fields = { seed: { writeOnly: true }, pin: { format: 'password' }, joinToken: { writeOnly: false } };
  const packages = PACKAGES.map((one) => ({ ...one, extra: { settings: { type: 'object', properties: fields } } }));
  const store = await publishTestPackages(box, packages, signal);
  for (const [settings, secrets] of [
    ['seed: a', ['alpha']],
    ['pin: "1234"', ['alpha']],
    ['joinToken: a', []],
    ['adminPassword: a', ['alpha']],
    ['mode: a', []],
  ] as const) {
    const spec = SPEC.replace('"latest"', `"latest", ${settings}`);
    await using open = await planSpec(box, store, spec, { signal });
    assert.equal(open.secrets, secrets, settings);
    const saved = parseBundlePlan(formatBundlePlan({ store: store.address, plan: open.plan }), 'plan.json');
    await using again = await openSavedPlan(saved, store, { executables: box.at('node'), signal });
    assert.equal(again.secrets, secrets, settings);
  }
});

test('every entry is told with its place and what it is copied from', async ({ signal }) => {
  await using box = await tree();
  const { text } = await save(box, signal);
  const { sources, entries } = JSON.parse(text) as Plan;
  assert.equal(
    sources.map(({ key, because }) => [key, because]),
    [
      ['r1/alpha-1.0.0.tar.gz', 'latest'],
      ['r1/beta-2.0.0.tar.gz', 'greatest patch of 2.0'],
      ['curlew-linux-amd64.tar.gz', undefined],
    ],
  );
  const blob = entries.find(({ name }) => name === 'addons/alpha/1.0.0/images/blobs/sha256/a');
  const package_ = await readFile(box.at('store/r1/alpha-1.0.0.tar.gz'));
  const bundle = await readFile(box.at('direct.tar.gz'));
  const { offset = -1, length = 0 } = blob?.from ?? {};
  const at = bundle.indexOf(package_.subarray(offset, offset + length));
  assert.ok(at > 0 && at < Number(blob?.['offset']), 'its header begins before its payload');
});

for (const [title, change] of [
  [
    'was replaced',
    async (box: Tree) => copyFile(box.at('out/alpha-1.0.0.tar.gz'), box.at('store/r1/beta-2.0.0.tar.gz')),
  ],
  [
    'was touched, and has the same size',
    async (box: Tree) => utimes(box.at('store/r1/beta-2.0.0.tar.gz'), new Date(5e11), new Date(5e11)),
  ],
] as const) {
  test(`a package that ${title} since the plan was made stops it`, async ({ signal }) => {
    await using box = await tree();
    const { store, text } = await save(box, signal);
    await change(box);
    const opened = openSavedPlan(parseBundlePlan(text, 'p'), store, { executables: box.at('node'), signal });
    const { hint } = await assert.rejectsWith(opened, 'STORE_CONFLICT', /beta-2\.0\.0\.tar\.gz: has changed since/);
    assert.match(hint ?? '', 'create the plan again');
  });
}

test('in another store a package with another table of contents stops it', async ({ signal }) => {
  await using box = await tree();
  const { text } = await save(box, signal);
  await cp(box.at('store'), box.at('elsewhere'), { recursive: true });
  const path = box.at('elsewhere/r1/beta-2.0.0.tar.gz');
  const elsewhere = createFolderStore(box.at('elsewhere'));
  const bytes = await readFile(path);
  // A version of the same length, in the name of every entry.
  const other = archiveOf([{ path: 'addons/beta/2.0.0/other', data: noise(bytes.byteLength - 700) }]).bytes;
  await writeFile(path, Buffer.concat([Buffer.alloc(Math.max(0, bytes.byteLength - other.byteLength)), other]));
  const opened = openSavedPlan(parseBundlePlan(text, 'p'), elsewhere, { executables: box.at('node'), signal });
  await assert.rejectsWith(opened, 'STORE_CONFLICT');
  await rm(path);
  const gone = openSavedPlan(parseBundlePlan(text, 'p'), elsewhere, { executables: box.at('node'), signal });
  await assert.rejectsWith(gone, 'NOT_FOUND', /beta/);
});

test('a curlew with another tool for nodes cannot carry the plan out', async ({ signal }) => {
  await using box = await tree();
  const { store, text } = await save(box, signal);
  const other = archiveOf([{ path: 'bin/curlew', mode: 0o755, data: 'newer' }]).bytes;
  const executables = await putTool(box, other);
  const opened = openSavedPlan(parseBundlePlan(text, 'p'), store, { executables, signal });
  await assert.rejectsWith(opened, 'PLAN_CHANGED', /than curlew 1\.2\.3, which created the plan/);
});

/** Two entries of source 0 that lie behind each other. */
function neighbours({ entries }: Plan): Plan['entries'] {
  return entries.filter(({ from }) => from?.source === 0);
}

for (const [title, change, message] of [
  ['it is none', (plan: Plan) => (plan['kind'] = 'x'), /kind/],
  ['no size', (plan: Plan) => (plan['size'] = -1), /size/],
  ['another size', (plan: Plan) => (plan.size += 1), /add up to \d+ bytes/],
  ['another TOC digest', (plan: Plan) => (plan['tocDigest'] = `sha256:${'0'.repeat(64)}`), /are not at their offsets/],
  ['no entries', (plan: Plan) => (plan['entries'] = [] as never), /bytes instead of/],
  ['an entry twice', ({ entries }: Plan) => entries.push(entries[0] ?? {}), /is listed twice/],
  [
    'an entry twice under two names',
    (plan: Plan) => ((plan.entries[0] ??= {})['name'] = 'other'),
    /bytes instead of|are not at their offsets/,
  ],
  ['a path out of the bundle', ({ entries }: Plan) => ((entries[0] ??= {})['name'] = '../x'), /\.\./],
  ['payloads that overlap', ({ entries }: Plan) => ((entries[1] ??= {})['offset'] = 1), /overlaps/],
  [
    'ranges that overlap',
    (plan: Plan) => ((neighbours(plan)[1]?.from ?? { offset: 0 }).offset -= 1),
    /overlaps the previous/,
  ],
  [
    'a range beyond the end',
    (plan: Plan) => ((neighbours(plan).at(-1)?.from ?? { offset: 0 }).offset += 1e9),
    /after the source/,
  ],
  [
    'a range of another length',
    (plan: Plan) => ((neighbours(plan).at(-1)?.from ?? { length: 0 }).length -= 1),
    /length/,
  ],
  [
    'a source that is none',
    (plan: Plan) => ((neighbours(plan)[0]?.from ?? { source: 0 }).source = 9),
    /source 9 does not exist/,
  ],
  ['a range that is none', (plan: Plan) => ((neighbours(plan)[0] ??= {})['from'] = [1, 2] as never), /its range/],
  ['an entry from nowhere', (plan: Plan) => delete neighbours(plan)[0]?.from, /neither data nor/],
  ['a wrong payload size', (plan: Plan) => ((neighbours(plan)[0] ??= {})['packed'] = 3), /size and payload|length/],
  ['a size too large to count', (plan: Plan) => ((neighbours(plan)[0] ??= {})['size'] = 2 ** 60), /invalid size/],
  ['a digest that is none', (plan: Plan) => ((neighbours(plan)[0] ??= {})['digest'] = 'sha1:0'), /digest/],
  ['a key out of the store', ({ sources }: Plan) => ((sources[0] ??= {})['key'] = '../x'), /key/],
  ['a key of the store’s own', ({ sources }: Plan) => ((sources[0] ??= {})['key'] = '.curlew/x'), /key/],
  ['a key twice', ({ sources }: Plan) => ((sources[0] ??= {})['key'] = sources[1]?.['key']), /is duplicated/],
  ['a source without etag', ({ sources }: Plan) => delete sources[0]?.['etag'], /etag/],
  [
    'a source without digest',
    ({ sources }: Plan) => delete sources[0]?.['tocDigest'],
    /sources\[0\]\.tocDigest: missing/,
  ],
  ['a source of another size', ({ sources }: Plan) => ((sources[0] ??= {})['size'] = 1e9), /size does not match/],
  ['too many sources', (plan: Plan) => (plan['sources'] = Array.from({ length: 10_001 }, () => ({}))), /sources/],
  ['sources that are none', (plan: Plan) => (plan['sources'] = 'x' as never), /sources/],
  [
    'no bundle.json',
    (plan: Plan) => (plan.entries = plan.entries.filter(({ name }) => name !== 'bundle.json')),
    /bytes instead of/,
  ],
  [
    'a million entries and one',
    (plan: Plan) => (plan['entries'] = Array.from({ length: 1_000_001 }, () => ({}))),
    /more than/,
  ],
] as const) {
  test(`hostile plan: ${title}`, async ({ signal }) => {
    const text = await planText(signal);
    assert.throwsWith(() => parseBundlePlan(changed(text, change), 'plan.json'), 'FILE_UNUSABLE', message);
  });
}

test('hostile plan: a newer format, and no JSON', async ({ signal }) => {
  const text = await planText(signal);
  assert.throwsWith(() => parseBundlePlan(text.replace('"format": 1', '"format": 2'), 'p'), 'UNSUPPORTED', /format 2/);
  assert.throwsWith(() => parseBundlePlan(text.slice(0, -9), 'plan.json'), 'FILE_UNUSABLE', /plan\.json/);
});

test('hostile plan: an entry that is not where the plan says in its package', async ({ signal }) => {
  await using box = await tree();
  const { store, text } = await save(box, signal);
  const saved = parseBundlePlan(text, 'p');
  const { index, origins } = saved.plan.splice;
  const at = index.entries.findIndex(({ path }) => path.endsWith('alpha/1.0.0/images/blobs/sha256/a'));
  const moved = origins.map((origin, n) => (n === at && origin ? { ...origin, offset: origin.offset - 512 } : origin));
  const lying = { ...saved, plan: { ...saved.plan, splice: { ...saved.plan.splice, origins: moved } } };
  const opened = openSavedPlan(lying, store, { executables: box.at('node'), signal });
  await assert.rejectsWith(opened, 'FILE_UNUSABLE', /sha256\/a is not at the planned offset/);
});

test.run();
