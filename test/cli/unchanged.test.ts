/** What has changed is told by the store alone: every run has an empty cache and an empty folder for packages. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { command as changedCommand } from '../../src/cli/commands/changed.ts';
import { command as publishCommand } from '../../src/cli/commands/publish.ts';
import type { Command } from '../../src/cli/command.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { readPrevious } from '../../src/ship/release/previous-release.ts';
import { publishPackages } from '../../src/ship/release/publish.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/builds.ts';
import { noReport } from '../support/context.ts';
import { makeImage, makeLayer, type Image } from '../support/images.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { startServer, type WebServer } from '../support/web-server.ts';

const test = suite('cli/unchanged');

const image = makeImage([makeLayer({ a: 'one' })], 'oci', 'one');
const other = makeImage([makeLayer({ a: 'two' })], 'oci', 'two');

let machines = 0;

/** A machine that has never built anything. */
async function fresh<Result>(
  command: Command<Result>,
  box: Tree,
  words: readonly string[],
  signal: AbortSignal,
  events: ProgressEvent[] = [],
): Promise<Result> {
  machines += 1;
  const places = [
    '--cache',
    `cache-${machines}`,
    ...(command.of.name === 'changed' ? [] : ['--out', `out-${machines}`]),
  ];
  const context = {
    cwd: box.path,
    env: { HOME: box.path },
    report: (event: ProgressEvent) => events.push(event),
    signal,
  };
  return command.run(readArguments(command, [...words, ...places]), context);
}

/** An asset whose server gives a tag, or a date, and counts what is asked. */
async function assetServer(state: { body: string; etag: string }): Promise<WebServer> {
  return startServer(() => ({ status: 200, headers: { etag: state.etag }, body: state.body }));
}

async function registryOf(one: Image) {
  return startRegistry({ 'team/one:1': one });
}

test('a machine that has nothing builds what has changed, and only asks about the rest', async ({ signal }) => {
  const state = { body: 'tool', etag: '"1"' };
  await using web = await assetServer(state);
  await using registry = await registryOf(image);
  await using box = await tree({
    ...addon('a', `image one ${registry.host}/team/one:1\n`),
    ...addon('b', `asset tool ${web.url}/tool\n`),
    ...addon('c', '', { 'c.yaml': 'c: 1\n' }),
  });
  await fresh(publishCommand, box, ['--to', 'store', '--release', 'r1'], signal);
  const [blobs, downloads] = [registry.blobRequests().length, web.log.filter(({ method }) => method === 'GET').length];
  await writeFile(box.at('addons/c/1.0/c.yaml'), 'c: 2\n');
  const events: ProgressEvent[] = [];
  const result = await fresh(publishCommand, box, ['--to', 'store', '--release', 'r2'], signal, events);
  assert.ok('packages' in result);
  assert.equal(result.packages.map(({ name, outcome }) => `${name} ${outcome}`).toSorted(), [
    'a copied',
    'b copied',
    'c uploaded',
  ]);
  assert.is(registry.blobRequests().length, blobs);
  assert.is(web.log.filter(({ method }) => method === 'GET').length, downloads);
  const done = events.flatMap((event) => (event.type === 'step-done' ? [`${event.id} ${event.outcome}`] : []));
  assert.equal(done.toSorted(), [
    'c-1.0 built',
    'r2/a-1.0.tar.gz copied',
    'r2/b-1.0.tar.gz copied',
    'r2/c-1.0.tar.gz uploaded',
  ]);
  assert.ok(result.bytesUp > 0 && result.bytesUp < result.bytesCopied);
  const third = await fresh(publishCommand, box, ['--to', 'store', '--release', 'r3'], signal);
  assert.ok('packages' in third && third.packages.every(({ outcome }) => outcome === 'copied'));
});

const CASES = [
  ['an own file', /^x\.yaml differs$/, async (box) => writeFile(box.at('addons/a/1.0/x.yaml'), 'x: 2\n')],
  ['a file that is gone', /^x\.yaml was removed$/, async (box) => rm(box.at('addons/a/1.0/x.yaml'))],
  ['the body of an asset', /^asset tool has changed at its source$/, async (_, state) => void (state.etag = '"2"')],
  [
    'its settings',
    /^schema\.json is new$/,
    async (box) => writeFile(box.at('addons/a/1.0/schema.json'), '{"properties": {"size": {"type": "integer"}}}'),
  ],
  [
    'its hooks',
    /^install\.sh differs$/,
    async (box) => writeFile(box.at('addons/a/1.0/install.sh'), 'a() { :; }\na_join() { :; }\n'),
  ],
  [
    'what it requires',
    /^categories\.json differs, or another version of curlew built the package$/,
    async (box) => writeFile(box.at('addons/a/categories.json'), '{"name": "a", "requires": ["b"]}'),
  ],
  [
    'what it recommends',
    /^categories\.json differs, or another version of curlew built the package$/,
    async (box) => writeFile(box.at('addons/a/categories.json'), '{"name": "a", "recommends": ["b"]}'),
  ],
  [
    'the Kubernetes versions that it is for',
    /^categories\.json differs, or another version of curlew built the package$/,
    async (box) => writeFile(box.at('addons/a/categories.json'), '{"kubernetesVersion": {"1.0": ">=1.30.0"}}'),
  ],
  [
    'a line of the Manifest',
    /^Manifest differs$/,
    async (box) => writeFile(box.at('addons/a/1.0/Manifest'), '# nothing\n'),
  ],
] as const satisfies readonly (readonly [
  string,
  RegExp,
  (box: Tree, state: { body: string; etag: string }) => Promise<void>,
])[];

for (const [what, reason, change] of CASES) {
  test(`a change of ${what} is the reason that a dry run and changed give`, async ({ signal }) => {
    const state = { body: 'tool', etag: '"1"' };
    await using web = await assetServer(state);
    await using box = await tree({
      ...addon('a', `asset tool ${web.url}/tool\n`, { 'x.yaml': 'x: 1\n' }),
      ...addon('b', ''),
    });
    await fresh(publishCommand, box, ['--to', 'store', '--release', 'r1'], signal);
    await change(box, state);
    const before = await readFile(box.at('store/VERSION'), 'utf8');
    const plan = await fresh(publishCommand, box, ['--to', 'store', '--release', 'r2', '--dry-run'], signal);
    assert.ok('plan' in plan);
    const [a, b] = plan.plan;
    assert.is(a?.change, 'changed');
    assert.match(a?.because ?? '', reason);
    assert.is(b?.change, 'unchanged');
    assert.is(b?.since, 'r1');
    assert.is(await readFile(box.at('store/VERSION'), 'utf8'), before);
    const { changed: list, since, unchanged } = await fresh(changedCommand, box, ['--from', 'store'], signal);
    assert.equal([list.map(({ name }) => name), since, unchanged], [['a'], 'r1', 1]);
    assert.match(list[0]?.because ?? '', reason);
  });
}

test('a package of which only the metadata has changed is published once more', async ({ signal }) => {
  await using box = await tree(addon('a', ''));
  await fresh(publishCommand, box, ['--to', 'store'], signal);
  await writeFile(box.at('addons/a/categories.json'), '{"requires": ["b"], "kubernetesVersion": ">=1.30.0"}');
  await fresh(publishCommand, box, ['--to', 'store'], signal);
  const { packages } = await readPrevious(createFolderStore(box.at('store')), { signal });
  const { requires, kubernetesVersion } = packages.get('a-1.0.tar.gz')?.listed ?? {};
  assert.equal([requires, kubernetesVersion], [['b'], '>=1.30.0']);
  const third = await fresh(publishCommand, box, ['--to', 'store'], signal);
  assert.ok('packages' in third && third.packages.every(({ outcome }) => outcome !== 'uploaded'));
});

test('a tag that now names another image is a change', async ({ signal }) => {
  await using first = await registryOf(image);
  await using second = await registryOf(other);
  await using box = await tree(addon('a', 'image one images.example/team/one:1\n'));
  const mirror = (host: string): readonly string[] => ['--registry-mirror', `images.example=${host}`];
  await fresh(publishCommand, box, ['--to', 'store', '--release', 'r1', ...mirror(first.host)], signal);
  const same = await fresh(changedCommand, box, ['--from', 'store', ...mirror(first.host)], signal);
  assert.is(same.unchanged, 1);
  const now = await fresh(changedCommand, box, ['--from', 'store', ...mirror(second.host)], signal);
  assert.match(now.changed[0]?.because ?? '', /now names another image/);
  assert.equal(second.blobRequests(), []);
});

test('changed compares with any release, and cuts what it finds into batches', async ({ signal }) => {
  await using box = await tree({ ...addon('a', ''), ...addon('b', ''), ...addon('c', '') });
  await fresh(publishCommand, box, ['--to', 'store', '--release', 'r1'], signal);
  await fresh(publishCommand, box, ['a', '--to', 'store', '--release', 'r2'], signal);
  await rm(box.at('addons/c'), { recursive: true });
  await writeFile(box.at('addons/a/1.0/new'), 'x');
  await writeFile(box.at('addons/b/1.0/new'), 'x');
  const all = await fresh(changedCommand, box, ['--from', 'store', '--since', 'r1', '--batch', '1'], signal);
  const include = [
    { batch: 1, addons: 'a/1.0' },
    { batch: 2, addons: 'b/1.0' },
  ];
  assert.equal(all.matrix, { include });
  assert.equal(all.gone, ['c-1.0.tar.gz']);
  const words = readArguments(changedCommand, ['--from', 'store', '--batch', '1']);
  assert.equal(JSON.parse(changedCommand.render(all, words, undefined as never)), { include });
  await assert.rejectsWith(fresh(changedCommand, box, ['--from', 'store', '--since', 'r9'], signal), 'NOT_FOUND');
  await assert.rejectsWith(fresh(changedCommand, box, [], signal), 'USAGE');
  await assert.rejectsWith(fresh(changedCommand, box, ['--from', 'store', '--batch', '0'], signal), 'USAGE');
});

for (const damage of ['', '{', '{"format":1,"packages":{"a-1.0.tar.gz":7}}', '{"format":2}']) {
  test(`with ${JSON.stringify(damage)} recorded, the package is built and found to be the same`, async ({ signal }) => {
    await using box = await tree(addon('a', ''));
    await fresh(publishCommand, box, ['--to', 'store', '--release', 'r1'], signal);
    await writeFile(box.at('store/r1/inputs.json'), damage);
    const { changed: list } = await fresh(changedCommand, box, ['--from', 'store'], signal);
    assert.is(list[0]?.because, 'no record of an earlier build');
    const result = await fresh(publishCommand, box, ['--to', 'store', '--release', 'r2'], signal);
    assert.ok('packages' in result && result.packages[0]?.outcome === 'copied');
    assert.is((await fresh(changedCommand, box, ['--from', 'store'], signal)).unchanged, 1);
  });
}

test('a package that vanished from the store is built and uploaded again', async ({ signal }) => {
  await using box = await tree(addon('a', ''));
  await fresh(publishCommand, box, ['--to', 'store', '--release', 'r1'], signal);
  await rm(box.at('store/r1/a-1.0.tar.gz'));
  const { changed: list } = await fresh(changedCommand, box, ['--from', 'store'], signal);
  assert.match(list[0]?.because ?? '', /its package is missing from the store/);
  const result = await fresh(publishCommand, box, ['--to', 'store', '--release', 'r2'], signal);
  assert.ok('packages' in result && result.packages[0]?.outcome === 'uploaded');
});

test('what was judged by one release is not published on top of another', async ({ signal }) => {
  await using box = await tree(addon('a', ''));
  await fresh(publishCommand, box, ['--to', 'store', '--release', 'r1'], signal);
  const store = createFolderStore(box.at('store'));
  const previous = await readPrevious(store, { signal });
  await fresh(publishCommand, box, ['--to', 'store', '--release', 'r2'], signal);
  const unchanged = new Set(previous.packages.keys());
  const given = {
    store,
    release: 'r3',
    now: new Date(),
    carry: false,
    previous,
    unchanged,
    commit: undefined,
    jobs: 1,
  };
  const late = publishPackages([], { ...given, report: noReport, signal });
  await assert.rejectsWith(late, 'STORE_CONFLICT', /another publisher has made r2 current/);
});

test('a dry run into a store that is not there makes none', async ({ signal }) => {
  await using box = await tree(addon('a', ''));
  const plan = await fresh(publishCommand, box, ['--to', 'store', '--dry-run'], signal);
  assert.ok('plan' in plan);
  assert.match(plan.release, /^v\d{4}\.\d\d\.\d\d-0$/);
  assert.equal(plan.plan[0], {
    name: 'a',
    version: '1.0',
    change: 'new',
    because: 'it was not in any release',
    since: undefined,
    size: undefined,
  });
  assert.not.ok((await readdir(box.path)).includes('store'));
});

test('--locked holds for packages that are not built', async ({ signal }) => {
  await using box = await tree(addon('a', ''));
  await fresh(publishCommand, box, ['--to', 'store', '--release', 'r1', '--update-lock'], signal);
  await fresh(publishCommand, box, ['--to', 'store', '--release', 'r2', '--locked'], signal);
  await rm(box.at('addons/a/1.0/Manifest.lock'));
  const late = fresh(publishCommand, box, ['--to', 'store', '--release', 'r3', '--locked'], signal);
  await assert.rejectsWith(late, 'LOCK_MISMATCH', /has no Manifest\.lock/);
});

test.run();
