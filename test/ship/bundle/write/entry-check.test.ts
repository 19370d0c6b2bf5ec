import { createEntryCheck } from '../../../../src/ship/bundle/write/entry-check.ts';
import { digestOf } from '../../../../src/core/digest.ts';
import * as assert from '../../../support/assert.ts';
import { archiveOf, noise } from '../../../support/packages.ts';
import { suite } from '../../../support/suite.ts';

const test = suite('ship/bundle/entry-check');

const { bytes, plan } = archiveOf([
  { path: 'a/install.sh', data: 'a() { :; }\n'.repeat(20), mode: 0o755 },
  { path: 'a/empty', data: '' },
  { path: 'a/blob.gz', data: noise(3000) },
  { path: 'a/whole', data: noise(512) },
]);

async function pushAll(data: Buffer, piece: number, signal: AbortSignal, index = plan.index): Promise<void> {
  const check = createEntryCheck(index, () => 'b.tar.gz', { signal });
  for (let at = 0; at < data.byteLength; at += piece) await check.push(data.subarray(at, at + piece));
  await check.finish();
}

for (const piece of [1, 9, 511, 4096, bytes.byteLength]) {
  test(`an archive is proved when it passes by in pieces of ${piece} bytes, and one flipped byte is found`, async ({
    signal,
  }) => {
    await pushAll(bytes, piece, signal);
    for (let at = 0; at < plan.index.tocOffset; at += 97) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 2;
      const found = await pushAll(damaged, piece, signal).then(
        () => undefined,
        (error: unknown) => error,
      );
      assert.match(String(found), /^CurlewError: b\.tar\.gz: a\//, `byte ${at}`);
    }
  });
}

test('a payload that was deflated in another way than the table of contents says is found', async ({ signal }) => {
  const other = digestOf('deflated by another program');
  const entries = plan.index.entries.map((entry) =>
    entry.packedDigest === undefined ? entry : { ...entry, packedDigest: other },
  );
  const found = pushAll(bytes, 512, signal, { ...plan.index, entries });
  await assert.rejectsWith(found, 'PACKAGE_INVALID', /a\/install\.sh: its packed bytes differ/);
});

test('an archive that ends too early is no proof', async ({ signal }) => {
  const cut = pushAll(bytes.subarray(0, plan.index.tocOffset - 600), 512, signal);
  assert.match(String(await cut.catch((error: unknown) => error)), /ended before its last entry|ends too early/);
});

test.run();
