import { rmSync } from 'node:fs';
import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { CurlewError } from '../../src/core/errors.ts';
import { digestOf, hexOf } from '../../src/core/digest.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import * as assert from '../support/assert.ts';
import { addon, buildAll } from '../support/builds.ts';
import { resetsAtHalf } from '../support/faults.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { noise } from '../support/packages.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';

const test = suite('build/assets');

test('an asset of another digest than the Manifest says is refused, and asked for again the next time', async () => {
  await using web = await serveFiles({ tool: 'changed' });
  await using box = await tree(addon('a', `asset tool ${web.url}/tool#sha256=${'0'.repeat(64)}\n`));
  await assert.rejectsWith(
    buildAll({ root: box.path }),
    'DIGEST_MISMATCH',
    /cannot fetch asset tool: .* has the digest sha256:/,
  );
  assert.equal(await readdir(box.at('out')), []);
});

test('a local asset that is not there is named', async () => {
  await using box = await tree(addon('a', 'asset tool ./tool\n'));
  await assert.rejectsWith(
    buildAll({ root: box.path }),
    'NOT_FOUND',
    /a-1\.0: cannot fetch asset tool: .*does not exist/,
  );
});

test('a folder in the place of an asset is named, with what to do', async () => {
  await using box = await tree(addon('a', 'asset tool ./tool\n', { 'tool/x': 'x' }));
  const failed = buildAll({ root: box.path });
  const { hint } = await assert.rejectsWith(failed, 'FILE_UNUSABLE', /cannot fetch asset tool: \S+tool is a folder$/);
  assert.is(hint, 'name a file in it, or pack it into one, such as a tar archive');
});

test('an asset whose server resets at half goes on there in the next run', async () => {
  const body = noise(2_000_000);
  let failing = true;
  const resets = resetsAtHalf({ path: /tool/ });
  await using web = await serveFiles(
    { 'tool.tgz': body },
    { faults: [(asked, regular) => (failing && asked.method === 'GET' ? resets(asked, regular) : undefined)] },
  );
  await using box = await tree(addon('a', `asset tool.tgz ${web.url}/tool.tgz\n`));
  await assert.rejectsWith(
    buildAll({ root: box.path }),
    'FETCH_FAILED',
    /a-1\.0: cannot fetch asset tool\.tgz: .* ended after/,
  );
  failing = false;
  const before = web.log.length;
  await buildAll({ root: box.path });
  const [first] = web.log.slice(before).filter(({ method }) => method === 'GET');
  assert.match(String(first?.headers['range']), /^bytes=[1-9]\d+-$/);
});

test('an asset that an older version left unfinished is resumed by its digest, and starts over without one', async () => {
  const body = noise(300_000);
  await using web = await serveFiles({ tool: body });
  const address = `${web.url}/tool`;
  const named = `cache/assets/${hexOf(digestOf(address))}`;
  for (const [suffix, left, range] of [
    ['', noise(100_000, 9), undefined],
    [`#${digestOf(body).replace(':', '=')}`, body.subarray(0, 100_000), 'bytes=100000-'],
  ] as const) {
    await using box = await tree({
      ...addon('a', `asset tool ${address}${suffix}\n`),
      [`${named}.partial`]: left,
      [`${named}.begun`]: JSON.stringify({ size: 0, digest: digestOf(''), etag: '"300000-tool"' }),
    });
    const before = web.log.length;
    await buildAll({ root: box.path });
    const gets = web.log.slice(before).filter(({ method }) => method === 'GET');
    assert.equal(
      gets.map(({ headers }) => headers['range']),
      [range],
    );
    assert.equal(
      (await readdir(box.at('cache/assets'))).filter((name) => !name.endsWith('.json')),
      [],
    );
    const made = await readFile(box.at('out/a-1.0.tar.gz'));
    // Stored blocks end every 64 KiB.
    for (const at of [0, 70_000, 290_000]) assert.ok(made.includes(body.subarray(at, at + 10_000)), `bytes at ${at}`);
  }
});

test('what assets come to is told as soon as their servers say it', async () => {
  await using web = await serveFiles({ tool: noise(300_000), page: noise(50_000) });
  await using box = await tree(addon('a', `asset tool ${web.url}/tool\nasset page ${web.url}/page\n`));
  const events: ProgressEvent[] = [];
  await buildAll({ root: box.path, events });
  const told = events.filter((event) => event.type === 'step-progress');
  assert.is(told.at(-1)?.total, 350_000);
  assert.is(told.at(-1)?.bytes, 350_000);
});

test('an asset that is cancelled in the middle leaves nothing behind', async () => {
  const stop = new AbortController();
  await using web = await serveFiles(
    { tool: noise(2_000_000) },
    {
      faults: [
        (asked, regular) => {
          if (asked.method !== 'GET') return undefined;
          setImmediate(() => stop.abort(new CurlewError('CANCELLED', 'cancelled')));
          return { ...regular, sending: 'never' };
        },
      ],
    },
  );
  await using box = await tree(addon('a', `asset tool ${web.url}/tool\n`));
  await assert.rejectsWith(buildAll({ root: box.path, signal: stop.signal }), 'CANCELLED');
  assert.equal(await readdir(box.at('cache/assets')), []);
});

test('an asset that another build has taken from the cache meanwhile is fetched again', async () => {
  await using web = await serveFiles({ tool: 'x'.repeat(1000) });
  await using box = await tree({
    ...addon('a', `asset tool ${web.url}/tool\n`),
    ...addon('b', `image i images.example/i:1\nasset tool ${web.url}/tool\n`),
  });
  const body = box.at('cache/assets', `${hexOf(digestOf(`${web.url}/tool`))}.body`);
  await using registry = await startRegistry(
    { 'i:1': makeImage([makeLayer({ i: 'i' })]) },
    {
      faults: [
        () => {
          rmSync(body, { force: true });
          return undefined;
        },
      ],
    },
  );
  const built = await buildAll({ root: box.path, registry: registry.host, jobs: 1 });
  assert.equal(
    built.map(({ outcome }) => outcome),
    ['built', 'built'],
  );
});

const MONTH_AGO = new Date(Date.now() - 31 * 86_400_000);

test('what no build has used for a month leaves the cache, and nothing else does', async () => {
  await using web = await serveFiles({ tool: 'x'.repeat(1000) });
  await using box = await tree(addon('a', `asset tool ${web.url}/tool\n`));
  await buildAll({ root: box.path });
  const [note = ''] = await readdir(box.at('cache/assets'));
  const other = 'f'.repeat(64);
  await writeTree(box.at('cache'), {
    [`assets/${other}.json`]: '{}',
    [`assets/.${other}.body.claim`]: '1',
    'assets/notes.txt': 'not ours',
    'unfinished/a-1.0-x1Y2z3/0.member': 'left by a crash',
    'unfinished/mine/file': 'not ours',
  });
  const old = [`assets/${note}`, `assets/${other}.json`, `assets/.${other}.body.claim`, 'assets/notes.txt'];
  for (const path of [...old, 'unfinished/a-1.0-x1Y2z3', 'unfinished/mine']) {
    await utimes(box.at('cache', path), MONTH_AGO, MONTH_AGO);
  }
  await buildAll({ root: box.path });
  assert.is((await readdir(box.at('cache/assets'))).length, 4, 'a run that builds nothing removes nothing');
  await writeFile(box.at('addons/a/1.0/install.sh'), 'a() { echo new; }\n');
  await buildAll({ root: box.path });
  assert.equal((await readdir(box.at('cache/assets'))).toSorted(), [note, 'notes.txt'].toSorted());
  assert.equal(await readdir(box.at('cache/unfinished')), ['mine']);
});

test.run();
