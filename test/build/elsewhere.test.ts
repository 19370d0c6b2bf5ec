import { hexOf } from '../../src/core/digest.ts';
/** Wrong bytes at a mirror: the other places are asked. */
import { readdir } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { addon, buildAll } from '../support/builds.ts';
import { sendsOtherBytes } from '../support/faults.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { noise } from '../support/packages.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tarOf } from '../support/tar-file.ts';
import { tree } from '../support/tree.ts';
import type { Fault } from '../support/web-server.ts';

const test = suite('build/elsewhere');

const base = makeLayer({ 'usr/lib/base': noise(3_000_000, 1) });
const one = makeImage([base, makeLayer({ 'bin/one': noise(200_000, 2) })]);
const images = { 'team/one:1': one };

const toBase = { path: new RegExp(base.digest) };
/** Wrong bytes from a server that also breaks each time: the rest is asked for elsewhere. */
const wrongAndBroken: Fault = (asked, regular) => {
  if (!toBase.path.test(asked.path)) return undefined;
  const body = Buffer.from(regular.body ?? '').fill(0x20);
  return { ...regular, body, sending: { resetAt: Math.floor(body.byteLength / 2) } };
};

for (const imageFormat of ['oci', 'docker-archive'] as const) {
  for (const [what, fault, asked] of [
    ['has wrong', sendsOtherBytes(toBase), 1],
    ['has wrong, and only some of them', wrongAndBroken, 2],
  ] as const) {
    test(`bytes that a mirror ${what} are fetched from the registry itself (${imageFormat})`, async () => {
      await using origin = await startRegistry(images);
      await using mirror = await startRegistry(images, { faults: [fault] });
      await using box = await tree(addon('a', `image one ${origin.host}/team/one:1\n`));
      const mirrors = new Map([[origin.host, [mirror.host]]]);
      const [built] = await buildAll({ root: box.path, mirrors, imageFormat });
      assert.is(built?.addon.images[0]?.digest, one.manifest.digest);
      assert.is(origin.blobRequests().length, asked);
    });
  }

  test(`wrong bytes at the last place, too, are the error (${imageFormat})`, async () => {
    await using origin = await startRegistry(images, { faults: [sendsOtherBytes(toBase)] });
    await using mirror = await startRegistry(images, { faults: [sendsOtherBytes(toBase)] });
    await using box = await tree(addon('a', `image one ${origin.host}/team/one:1\n`));
    const failed = buildAll({ root: box.path, mirrors: new Map([[origin.host, [mirror.host]]]), imageFormat });
    const error = await assert.rejectsWith(failed, 'DIGEST_MISMATCH', /^a-1\.0: image 127\S+: .*got sha256:/);
    assert.match(error.hint ?? '', 'the registry or a proxy modifies them');
    assert.equal(
      [origin, mirror].map((server) => server.log.filter(({ path }) => toBase.path.test(path)).length),
      [1, 1],
    );
    assert.equal(await readdir(box.at('out')), []);
  });

  test(`wrong bytes in an archive are not the fault of a registry (${imageFormat})`, async () => {
    const { manifest, config, layers } = one;
    const annotations = { 'org.opencontainers.image.ref.name': 'team/one:1' };
    const entry = { mediaType: one.manifestType, digest: manifest.digest, size: manifest.data.byteLength, annotations };
    const damaged = layers.map(({ digest, data }) => ({ digest, data: Buffer.alloc(data.byteLength, 'x') }));
    const saved = tarOf([
      { path: 'oci-layout', data: '{"imageLayoutVersion":"1.0.0"}' },
      { path: 'index.json', data: JSON.stringify({ schemaVersion: 2, manifests: [entry] }) },
      ...[manifest, config, ...damaged].map(({ digest, data }) => ({ path: `blobs/sha256/${hexOf(digest)}`, data })),
    ]);
    await using box = await tree(addon('a', 'image one ./one.tar\n', { 'one.tar': saved }));
    const error = await assert.rejectsWith(buildAll({ root: box.path, imageFormat }), 'DIGEST_MISMATCH', /got sha256:/);
    assert.match(error.hint ?? '', /one\.tar is damaged: save the image again$/);
  });
}

test.run();
