import { readFile, writeFile } from 'node:fs/promises';
import { parseLock } from '../../src/manifest/lock.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { addon, buildAll, outdatedAll } from '../support/builds.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { noise } from '../support/packages.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';

const test = suite('locked builds');

const before = makeImage([makeLayer({ a: noise(2_000_000, 1) })], 'oci', 'before');
const after = makeImage([makeLayer({ a: noise(2_000_000, 2) })], 'oci', 'after');
const LOCK = 'addons/a/1.0/Manifest.lock';
const IMAGE = 'image one images.example/team/one:1\n';

test('--update-lock writes what everything resolved to, once', async () => {
  await using registry = await startRegistry({ 'team/one:1': before });
  await using web = await serveFiles({ tool: 'x'.repeat(1000) });
  await using box = await tree(addon('a', `${IMAGE}asset tool ${web.url}/tool\napt24 jq\n`));
  const given = { root: box.path, registry: registry.host };
  const events: ProgressEvent[] = [];
  const [built] = await buildAll({ ...given, lock: 'update', events });
  const text = await readFile(box.at(LOCK), 'utf8');
  const lock = parseLock(text, 'test');
  assert.equal(lock, built?.lock);
  assert.equal([lock.images[0]?.digest, lock.assets[0]?.size], [before.manifest.digest, 1000]);
  assert.equal(lock.hostPackages[0]?.required, ['jq']);
  assert.ok(events.some((event) => event.type === 'note' && /Manifest\.lock written/.test(event.text)));
  const again: ProgressEvent[] = [];
  const [unchanged] = await buildAll({ ...given, lock: 'update', events: again });
  assert.is(unchanged?.outcome, 'unchanged');
  assert.not(again.some((event) => event.type === 'note'));
});

test('--locked builds what the lock says, and refuses a tag that has moved before a layer is fetched', async () => {
  await using box = await tree(addon('a', IMAGE));
  {
    await using registry = await startRegistry({ 'team/one:1': before });
    await buildAll({ root: box.path, registry: registry.host, lock: 'update', out: 'first' });
    const [built] = await buildAll({ root: box.path, registry: registry.host, lock: 'require' });
    assert.is(built?.outcome, 'built');
    const [again] = await buildAll({ root: box.path, registry: registry.host, lock: 'require' });
    assert.is(again?.outcome, 'unchanged');
  }
  await using registry = await startRegistry({ 'team/one:1': after });
  const error = await assert.rejectsWith(
    buildAll({ root: box.path, registry: registry.host, lock: 'require' }),
    'LOCK_MISMATCH',
    /^a-1\.0: 1 entry differs from Manifest\.lock:\n {2}image one: locked .*, now /,
  );
  assert.match(error.message, before.manifest.digest);
  assert.match(error.message, after.manifest.digest);
  assert.match(error.hint ?? '', '--update-lock');
  assert.equal(
    registry.blobRequests().filter(({ path }) => after.layers.some(({ digest }) => path.endsWith(digest))),
    [],
  );
});

test('--locked refuses an asset that has other bytes now', async () => {
  await using box = await tree(addon('a', 'asset data ./data\n', { data: 'one' }));
  await buildAll({ root: box.path, lock: 'update' });
  await writeFile(box.at('addons/a/1.0/data'), 'two');
  await assert.rejectsWith(buildAll({ root: box.path, lock: 'require' }), 'LOCK_MISMATCH', /asset data: locked/);
  const [package_] = await buildAll({ root: box.path, lock: 'update' });
  assert.is(package_?.outcome, 'built');
  await buildAll({ root: box.path, lock: 'require' });
});

test('--locked refuses a package that was built from other things than the lock says', async () => {
  await using box = await tree(addon('a', 'asset data ./data\n', { data: 'one' }));
  await buildAll({ root: box.path, lock: 'update' });
  const text = await readFile(box.at(LOCK), 'utf8');
  await writeFile(box.at('addons/a/1.0/data'), 'two');
  await buildAll({ root: box.path });
  assert.is(await readFile(box.at(LOCK), 'utf8'), text, 'a build without flags leaves the lock alone');
  await assert.rejectsWith(buildAll({ root: box.path, lock: 'require' }), 'LOCK_MISMATCH', /asset data/);
});

for (const [title, lock, message] of [
  ['none', undefined, /a\/1\.0 has no Manifest\.lock/],
  ['one that is not JSON', '{', /Manifest\.lock: not JSON/],
  ['one of another format', '{"format":7}', /not a lock of format 1/],
] as const) {
  test(`--locked needs a lock that can be read: ${title}`, async () => {
    await using box = await tree(addon('a', '', lock === undefined ? {} : { 'Manifest.lock': lock }));
    await assert.rejectsWith(buildAll({ root: box.path, lock: 'require' }), 'LOCK_MISMATCH', message);
    await buildAll({ root: box.path, lock: 'update' });
    await buildAll({ root: box.path, lock: 'require' });
  });
}

test('a build without flags says what differs from the lock', async () => {
  await using box = await tree(addon('a', 'asset data ./data\n', { data: 'one' }));
  await buildAll({ root: box.path, lock: 'update' });
  await writeFile(box.at('addons/a/1.0/data'), 'two');
  const events: ProgressEvent[] = [];
  const [built] = await buildAll({ root: box.path, events });
  assert.is(built?.outcome, 'built');
  const notes = events.flatMap((event) => (event.type === 'note' ? [event.text] : []));
  assert.equal(notes, ['a-1.0 differs from its Manifest.lock: asset data']);
});

test('outdated shows both sides, changes nothing, and fetches no layer', async () => {
  await using web = await serveFiles({ tool: 'x' });
  await using box = await tree({
    ...addon('a', `${IMAGE}asset tool ${web.url}/tool\n`),
    ...addon('b', 'asset data ./data\n', { data: 'one' }),
    ...addon('c', ''),
  });
  {
    await using registry = await startRegistry({ 'team/one:1': before });
    await buildAll({ root: box.path, registry: registry.host, lock: 'update' });
  }
  await writeFile(box.at('addons/b/1.0/Manifest'), 'asset data ./data\nasset more ./data\n');
  await using registry = await startRegistry({ 'team/one:1': after });
  const found = await outdatedAll({ root: box.path, registry: registry.host });
  assert.equal(
    found.map(({ ref, lockedBy, changes }) => [ref.name, lockedBy, changes.map(({ kind, name }) => [kind, name])]),
    [
      ['a', 'committed lock', [['image', 'one']]],
      ['b', 'committed lock', [['asset', 'more']]],
      ['c', 'committed lock', []],
    ],
  );
  assert.match(found[0]?.changes[0]?.now ?? '', after.manifest.digest);
  assert.equal(
    registry.blobRequests().filter(({ path }) => after.layers.some(({ digest }) => path.endsWith(digest))),
    [],
  );
});

test('outdated lists an add-on whose asset is not the one of the Manifest, and compares the others', async () => {
  const files = { tool: 'x', gone: 'z' };
  await using web = await serveFiles(files);
  await using box = await tree({
    ...addon('a', `asset tool ${web.url}/tool#${digestOf('x').replace(':', '=')}\n`),
    ...addon('b', 'asset data ./data\n', { data: 'one' }),
    ...addon('c', `asset gone ${web.url}/gone\n`),
  });
  await buildAll({ root: box.path, lock: 'update' });
  files.tool = 'y';
  Reflect.deleteProperty(files, 'gone');
  await writeFile(box.at('addons/b/1.0/data'), 'two');
  const found = await outdatedAll({ root: box.path });
  assert.equal(
    found.map(({ ref, changes, problem }) => [ref.name, changes.length, problem?.code, problem?.message]),
    [
      [
        'a',
        0,
        'DIGEST_MISMATCH',
        `cannot fetch asset tool: ${web.url}/tool has the digest ${digestOf('y')}, not ${digestOf('x')}`,
      ],
      ['b', 1, undefined, undefined],
      ['c', 0, 'NOT_FOUND', `cannot fetch asset gone: ${web.url}/gone returned 404 (no such file)`],
    ],
  );
});

test('outdated compares with the package when no lock is committed, and says when there is neither', async () => {
  await using box = await tree({ ...addon('a', 'asset data ./data\n', { data: 'one' }) });
  assert.is((await outdatedAll({ root: box.path }))[0]?.lockedBy, undefined);
  await buildAll({ root: box.path });
  await writeFile(box.at('addons/a/1.0/data'), 'two');
  const [found] = await outdatedAll({ root: box.path });
  assert.equal([found?.lockedBy, found?.changes.length], ['package', 1]);
});

test.run();
