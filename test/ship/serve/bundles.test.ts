import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { memorySource, openFileSource, readIndex } from '../../../src/formats/archive/read.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import { writeBundleFile } from '../../../src/ship/bundle/write/write-bundle.ts';
import { planFrom } from '../../../src/ship/bundle/plan-from.ts';
import { storeKey } from '../../../src/core/layout.ts';
import { installerId } from '../../../src/spec/id.ts';
import { parseInstaller } from '../../../src/spec/parse.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { readCatalog } from '../../../src/ship/store/read-catalog.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages, specOf, TOOL } from '../../support/bundles.ts';
import { noReport } from '../../support/context.ts';
import { noise, writePackage } from '../../support/packages.ts';
import { madePackage, publishAs } from '../../support/releases.ts';
import { keepSpec, serveStore } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('ship/serve/bundles');

const SPEC = specOf({ alpha: 'latest', beta: '2.0' });
const ID = 'my-app';
const PACKAGES = [
  { name: 'alpha', version: '1.0', files: [{ path: 'images/a', data: noise(300_000) }] },
  { name: 'beta', version: '2.0', files: [{ path: 'images/b', data: noise(400_000, 2) }] },
];

async function scene(
  signal: AbortSignal,
): Promise<{ readonly box: Tree; readonly store: Awaited<ReturnType<typeof publishTestPackages>> }> {
  const box = await tree();
  const store = await publishTestPackages(box, PACKAGES, signal);
  await keepSpec(box, ID, SPEC);
  return { box, store };
}

async function bytesOf(answer: Response): Promise<Buffer> {
  return Buffer.from(await answer.arrayBuffer());
}

test('a bundle, and a package named without its version, have what a channel of the release says', async ({
  signal,
}) => {
  await using box = await tree();
  await mkdir(box.at('store'));
  const store = createFolderStore(box.at('store'));
  const files = [
    await madePackage(box, 'kubernetes', '1.31.2', 'k'),
    await madePackage(box, 'weave', '2.8.1', 'old'),
    await madePackage(box, 'weave', '2.9.0', 'new'),
  ];
  // The latest version is not the greatest one.
  const orders = new Map([['weave', ['2.8.1', '2.9.0']]]);
  await publishAs(store, 'r1', files, signal, { channels: ['stable'], orders });
  await keepSpec(box, ID, specOf({ kubernetes: '1.31.x', weave: 'channel:stable' }));
  await using server = await serveStore(store);
  for (const path of [`${ID}.tar.gz`, `${ID}/packages/weave.tar.gz`]) {
    const answer = await fetch(`${server.url}/bundle/${path}`);
    assert.is(answer.status, 200, path);
    const { entries } = await readIndex(memorySource('bundle', await bytesOf(answer)), { signal });
    const folders = entries.flatMap(({ path: entry }) => /^addons\/weave\/[^/]+/.exec(entry) ?? []);
    assert.equal([...new Set(folders)], ['addons/weave/2.9.0']);
  }
  const channel = await fetch(`${server.url}/dist/channels/stable.yaml`);
  assert.is(channel.headers.get('content-type'), 'application/yaml');
  assert.match(await channel.text(), /name: "weave"/);
});

test('a bundle is whole, has a length and an etag before its first byte, and is the same after a restart', async ({
  signal,
}) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  const seen: (string | null)[] = [];
  for (let round = 0; round < 2; round += 1) {
    await using server = await serveStore(store);
    const answer = await fetch(`${server.url}/bundle/${ID}.tar.gz`);
    assert.is(answer.status, 200);
    const bytes = await bytesOf(answer);
    assert.is(Number(answer.headers.get('content-length')), bytes.byteLength);
    assert.match(answer.headers.get('content-disposition') ?? '', 'my-app.tar.gz');
    const source = memorySource('bundle', bytes);
    await verifyArchive(source, { signal });
    const { entries } = await readIndex(source, { signal });
    for (const path of ['install.sh', 'bin/curlew', 'installer.yaml', 'bundle.json', 'addons/alpha/1.0/images/a']) {
      assert.ok(
        entries.some((entry) => entry.path === path),
        path,
      );
    }
    seen.push(answer.headers.get('etag'));
  }
  assert.match(seen[0] ?? '', /^"[0-9a-f]{64}"$/);
  assert.is(seen[0], seen[1]);
});

test('bundles of kept specs are planned before they are asked for, whatever else is among them', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  for (const [id, text] of [
    ['a-wrong', 'kind: ['],
    ['b-unknown', specOf({ gamma: '1.0' })],
  ] as const) {
    await keepSpec(box, id, text);
  }
  let reads = 0;
  const get: Store['get'] = async (key, options) => {
    reads += 1;
    return store.get(key, options);
  };
  await using server = await serveStore({ ...store, get });
  await server.warm();
  const before = reads;
  assert.ok(before > 0);
  assert.is((await fetch(`${server.url}/bundle/${ID}.tar.gz`, { method: 'HEAD' })).status, 200);
  assert.is(reads, before);
  await using unlisted = await serveStore({
    ...store,
    list: () => ({ [Symbol.asyncIterator]: () => ({ next: refusing }) }),
  });
  await unlisted.warm();
  await using empty = await serveStore(createFolderStore(box.path));
  await assert.rejectsWith(empty.warm(), 'NOT_FOUND', /no release/);
});

test('specs whose names are words of addresses are named when the server starts', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  for (const id of ['installer', 'validate', 'Shop']) await keepSpec(box, id, specOf({ alpha: '1.0' }));
  const warnings: string[] = [];
  await using server = await serveStore(store, { site: { warn: (text) => warnings.push(text) } });
  await server.warm();
  assert.is(warnings.length, 1);
  const keys = 'installers/Shop.yaml, installers/installer.yaml, installers/validate.yaml';
  assert.match(warnings[0] ?? '', `no address leads to ${keys}: name specs NAME.yaml`);
});

async function refusing(): Promise<never> {
  throw new CurlewError('UNSUPPORTED', 'it does not list what it has');
}

test('the catalog is read once for a plan', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  let reads = 0;
  const read: Store['read'] = async (key, options) => {
    if (key === storeKey.catalog('r1')) reads += 1;
    return store.read(key, options);
  };
  await using server = await serveStore({ ...store, read });
  assert.is((await fetch(`${server.url}/bundle/${ID}.tar.gz`, { method: 'HEAD' })).status, 200);
  assert.is(reads, 1);
});

test('ranges of a bundle are the bytes of the whole, wherever they begin', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const address = `${server.url}/bundle/${ID}.tar.gz`;
  const whole = await bytesOf(await fetch(address));
  for (const [first, last] of [
    [0, 0],
    [0, 999],
    [100_000, 450_000],
    [whole.byteLength - 51, whole.byteLength - 1],
  ] as const) {
    const answer = await fetch(address, { headers: { range: `bytes=${first}-${last}` } });
    assert.is(answer.status, 206);
    assert.is(answer.headers.get('content-range'), `bytes ${first}-${last}/${whole.byteLength}`);
    assert.ok((await bytesOf(answer)).equals(whole.subarray(first, last + 1)), `${first}-${last}`);
  }
});

test('only named packages are sent without the root of a bundle, as kURL asks for them', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store);
  for (const names of ['beta-2.0,alpha-1.0', 'beta,alpha', 'beta-2.0,beta,alpha-1.0']) {
    const answer = await fetch(`${server.url}/bundle/version/r1/${ID}/packages/${names}.tar.gz`);
    assert.is(answer.status, 200);
    const source = memorySource('packages', await bytesOf(answer));
    await verifyArchive(source, { signal });
    const { entries } = await readIndex(source, { signal });
    assert.equal(
      entries.map(({ path }) => path),
      [
        'addons/alpha/1.0/addon.json',
        'addons/alpha/1.0/images/a',
        'addons/beta/2.0/addon.json',
        'addons/beta/2.0/images/b',
      ],
    );
  }
});

test('an unknown spec is 404; an add-on or a version that the release lacks is 422 and names what is near', async ({
  signal,
}) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await keepSpec(box, 'typo', specOf({ alhpa: '1.0' }));
  await keepSpec(box, 'old', specOf({ alpha: '0.9' }));
  await keepSpec(box, 'broken', 'kind: [');
  await using server = await serveStore(store);
  const ask = async (path: string): Promise<readonly [number, string]> => {
    const answer = await fetch(server.url + path);
    return [answer.status, await answer.text()];
  };
  assert.is((await ask('/bundle/abcdef0.tar.gz'))[0], 404);
  for (const [path, what] of [
    ['/bundle/typo.tar.gz', /did you mean alpha/],
    ['/bundle/old.tar.gz', /0\.9/],
    ['/bundle/broken.tar.gz', /not a valid installer spec/],
    ['/bundle/my-app/packages/alhpa-1.0.tar.gz', /did you mean alpha-1\.0/],
  ] as const) {
    const [status, text] = await ask(path);
    assert.is(status, 422, path);
    assert.match(text, what);
  }
  const [, many] = await ask(`/bundle/my-app/packages/${Array.from({ length: 40 }).fill('alhpa').join(',')}.tar.gz`);
  assert.match(many, /did you mean alpha, alpha, alpha\?/);
  assert.is((await ask('/bundle/version/r9/my-app.tar.gz'))[0], 404);
});

test('a store that a newer curlew wrote is said to need one, in the answer and in the log', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  const catalog = box.at('store', storeKey.catalog('r1'));
  await writeFile(catalog, (await readFile(catalog, 'utf8')).replace('"format":1', '"format":9'));
  await using server = await serveStore(store);
  const answer = await fetch(`${server.url}/bundle/${ID}.tar.gz`);
  assert.is(answer.status, 502);
  const text = await answer.text();
  assert.match(text, 'it may need a newer curlew');
  assert.not.match(text, /damaged|index\.json/);
  assert.match(server.log[0]?.error ?? '', /catalog format 9 is not supported \(a newer curlew wrote it; /);
});

test('a bundle for an architecture that there is not is answered with those that there are', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store);
  for (const path of [
    `bundle/${ID}.tar.gz?arch=s390x`,
    'tool/curlew-linux-s390x.tar.gz',
    'bundle.tar.gz?_arch=s390x',
  ]) {
    const answer = await fetch(`${server.url}/${path}`);
    assert.equal([answer.status, await answer.text()], [404, 'no architecture "s390x": there are amd64 and arm64\n']);
  }
});

test('a client is told to ask for another architecture in the address, not on a command line', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store);
  for (const path of [`bundle/${ID}.tar.gz?arch=arm64`, 'bundle.tar.gz?_arch=arm64&alpha=1.0']) {
    const answer = await fetch(`${server.url}/${path}`);
    const text = await answer.text();
    assert.is(answer.status, 422, text);
    assert.match(text, 'for amd64: write arch=amd64 into the query of the address, or _arch=amd64 where it chooses');
    assert.not.match(text, /curlew bundle/);
  }
});

test('a spec in a file of another id is refused, and nobody outside learns where the store lies', async ({
  signal,
}) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await keepSpec(box, 'abcdef0', SPEC);
  await using server = await serveStore(store);
  const answer = await fetch(`${server.url}/bundle/abcdef0.tar.gz`);
  assert.is(answer.status, 502);
  assert.not.match(await answer.text(), box.path);
  assert.match(server.log[0]?.error ?? '', /its id is/);
  const { installer } = parseInstaller('x', SPEC);
  const id = installer === undefined ? '' : installerId(installer);
  await keepSpec(box, id, SPEC);
  assert.is((await fetch(`${server.url}/bundle/${id}.tar.gz`, { method: 'HEAD' })).status, 200);
});

test('a package that is replaced is never sent as part of an older plan', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const address = `${server.url}/bundle/${ID}.tar.gz`;
  assert.is((await fetch(address, { method: 'HEAD' })).status, 200);
  await writePackage(box.at('store/r1/alpha-1.0.tar.gz'), 'alpha', '1.0', [
    { path: 'images/a', data: noise(300_000, 7) },
  ]);
  const answer = await fetch(address);
  assert.is(answer.status, 502);
  assert.match(server.log.at(-1)?.error ?? '', /DIGEST_MISMATCH/);
});

test('a package that changes while it is sent cuts the connection, also for a client that is believed too long', async ({
  signal,
}) => {
  const box = await tree();
  await using _ = box;
  const store = await publishTestPackages(
    box,
    [{ name: 'alpha', version: '1.0', files: [{ path: 'images/a', data: noise(9_000_000) }] }],
    signal,
  );
  await keepSpec(box, 'big', specOf({ alpha: '1.0' }));
  await using server = await serveStore(store, { site: { freshMs: 60_000 } });
  const address = `${server.url}/bundle/big.tar.gz`;
  assert.is((await fetch(address, { method: 'HEAD' })).status, 200);
  const other = [{ path: 'images/a', data: noise(9_000_000, 5) }];
  await writePackage(box.at('store/r1/alpha-1.0.tar.gz'), 'alpha', '1.0', other);
  // The root files come first and are sent before the change is found.
  const cut = await fetch(address).then(
    async (answer) =>
      answer.arrayBuffer().then(
        () => 'whole',
        () => 'cut',
      ),
    () => 'cut',
  );
  assert.is(cut, 'cut');
  assert.is(server.log.at(-1)?.cut, true);
  assert.match(server.log.at(-1)?.error ?? '', /STORE_CONFLICT/);
});

test('plans are made once for all who ask at the same time', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  let lists = 0;
  const counting = {
    ...store,
    read: async (...args: Parameters<typeof store.read>) => {
      if (args[0] === 'r1/index.json') lists += 1;
      return store.read(...args);
    },
  };
  await using server = await serveStore(counting);
  const answers = await Promise.all(Array.from({ length: 50 }, async () => fetch(`${server.url}/bundle/${ID}.tar.gz`)));
  const bodies = await Promise.all(answers.map(bytesOf));
  for (const body of bodies) assert.ok(body.equals(bodies[0] ?? Buffer.alloc(0)));
  assert.ok(lists <= 2, `${lists} readings of the catalog`);
});

test('what serve sends is what bundle would have written', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store);
  const sent = await bytesOf(await fetch(`${server.url}/bundle/${ID}.tar.gz`));
  const { installer } = parseInstaller('x', SPEC);
  if (installer === undefined) throw new Error('the spec is not valid');
  const executable = async () => ({
    source: memorySource('the tool', TOOL.bytes),
    index: TOOL.plan.index,
    [Symbol.asyncDispose]: async () => undefined,
  });
  await using plan = await planFrom(store, installer, {
    spec: Buffer.from(SPEC),
    catalog: await readCatalog(store, { release: undefined, signal }),
    arch: 'amd64',
    tool: '1.2.3',
    executable,
    signal,
  });
  const options = { force: false, verify: true, report: noReport, signal };
  await writeBundleFile(plan.plan, plan.sources, box.at('bundle.tar.gz'), options);
  assert.ok((await readFile(box.at('bundle.tar.gz'))).equals(sent));
  await using file = await openFileSource(box.at('bundle.tar.gz'));
  await verifyArchive(file, { signal });
});

test.run();
