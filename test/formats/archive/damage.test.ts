/** A sample of the bytes of a package, and of a bundle with a hard link, each damaged in turn. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchiveIndex } from '../../../src/formats/archive/entry.ts';
import { extractEntries } from '../../../src/formats/archive/extract.ts';
import { memorySource, readIndex } from '../../../src/formats/archive/read.ts';
import { planSplice } from '../../../src/formats/archive/splice.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { renameIntoPlace, stagePackage } from '../../../src/runtime/node/put-in-place.ts';
import { archivePackages } from '../../../src/runtime/node/source.ts';
import * as assert from '../../support/assert.ts';
import { noise, packageOf, type TestFile } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { sampleOf } from '../../support/sweep.ts';
import { tree } from '../../support/tree.ts';

// soak: damage to each byte
const test = suite('archive/damage', { timeoutMs: 240_000 });
const signal = new AbortController().signal;

/** One of so many bytes is tried in a run where it costs no file operations. */
const READ_SHARE = 8;

const shared: TestFile = { path: 'assets/blob', data: noise(4096) };
const alpha = packageOf('alpha', '1', [
  { path: 'install.sh', data: 'alpha() { :; }\n'.repeat(9), mode: 0o755 },
  { path: 'empty', data: '' },
  shared,
]);
const beta = packageOf('beta', '1', [shared]);

function bundleOf(): Buffer {
  const { segments } = planSplice([
    { kind: 'file', path: 'install.sh', mode: 0o755, data: Buffer.from('#!/bin/sh\n') },
    { kind: 'archive', source: 0, index: alpha.plan.index },
    { kind: 'archive', source: 1, index: beta.plan.index },
  ]);
  const sources = [alpha.bytes, beta.bytes];
  const parts = segments.map((segment) =>
    segment.kind === 'bytes'
      ? segment.data
      : (sources[segment.source] ?? Buffer.alloc(0)).subarray(segment.offset, segment.offset + segment.length),
  );
  return Buffer.concat(parts);
}

const ARCHIVES = [
  ['a package', alpha.bytes],
  ['a bundle with a hard link', bundleOf()],
] as const;

function flipped(bytes: Buffer, at: number): Buffer {
  const damaged = Buffer.from(bytes);
  damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8));
  return damaged;
}

/** What the work threw; anything but one of the two errors for damage is a bug. */
async function damageFoundBy(work: () => Promise<unknown>): Promise<CurlewError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof CurlewError && ['PACKAGE_INVALID', 'DIGEST_MISMATCH'].includes(error.code)) return error;
    throw error;
  }
}

/** Paths, modes and bytes of all files below a folder. */
async function printOf(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const hash = createHash('sha256');
  for (const path of files.toSorted()) hash.update(path.slice(folder.length)).update(await readFile(path));
  return hash.digest('hex');
}

for (const [what, bytes] of ARCHIVES) {
  test(`${what} is whole before it is damaged`, async () => {
    const { entries } = await verifyArchive(memorySource('m', bytes), { signal });
    assert.is(entries.filter(({ linkTo }) => linkTo !== undefined).length, what === 'a package' ? 0 : 1);
  });

  test(`a flipped bit in any byte of ${what} is found by verify`, async () => {
    for (const at of sampleOf([...bytes.keys()], READ_SHARE)) {
      const source = memorySource('m', flipped(bytes, at));
      const found = await damageFoundBy(async () => verifyArchive(source, { signal }));
      assert.ok(found !== undefined, `byte ${at} of ${bytes.byteLength}`);
    }
  });

  test(`${what} that ends too early, anywhere, is found by verify and has no index`, async () => {
    for (const length of sampleOf([...bytes.keys()], READ_SHARE)) {
      const source = memorySource('m', bytes.subarray(0, length));
      assert.ok((await damageFoundBy(async () => verifyArchive(source, { signal }))) !== undefined, `${length} bytes`);
      assert.ok((await damageFoundBy(async () => readIndex(source, { signal }))) !== undefined, `${length} bytes`);
    }
  });

  test(`wherever ${what} is damaged, extraction gives the right files or an error`, async () => {
    await using box = await tree();
    const extract = async (from: Buffer, into: string): Promise<void> => {
      const source = memorySource('m', from);
      const index: ArchiveIndex = await readIndex(source, { signal });
      await extractEntries(source, index, { into, signal });
    };
    await extract(bytes, box.at('right'));
    const right = await printOf(box.at('right'));
    let refused = 0;
    const places = sampleOf([...bytes.keys()]);
    for (const at of places) {
      const found = await damageFoundBy(async () => extract(flipped(bytes, at), box.at('out')));
      if (found === undefined) assert.is(await printOf(box.at('out')), right, `byte ${at}`);
      else refused += 1;
      await rm(box.at('out'), { recursive: true, force: true });
    }
    assert.ok(refused > places.length / 4);
  });

  test(`nothing of ${what} appears under its name on a node when a payload or the end is damaged`, async () => {
    await using box = await tree();
    const { entries, tocOffset } = await readIndex(memorySource('m', bytes), { signal });
    const payloads = entries.flatMap(({ offset, packed }) => [offset, offset + Math.floor(packed / 2)]).filter(Boolean);
    for (const at of [...payloads, tocOffset, tocOffset + 700, bytes.byteLength - 1]) {
      const source = memorySource('m', flipped(bytes, at));
      await mkdir(box.at('node'));
      const found = await damageFoundBy(async () => {
        const packages = await archivePackages(source, await readIndex(source, { signal }), { signal });
        for (const one of packages) await stagePackage(one, { directory: box.at('node'), run: 'r', signal });
        for (const { ref } of packages)
          await renameIntoPlace(ref, { directory: box.at('node'), run: 'r', keep: false });
      });
      const inRoot = entries.some(({ path, offset, packed }) => {
        return !path.startsWith('addons/') && at >= offset && at < offset + packed;
      });
      assert.is(found === undefined, inRoot, `byte ${at}`);
      if (!inRoot)
        assert.equal(
          (await readdir(box.at('node'))).filter((name) => name !== '.new-r'),
          [],
          `byte ${at}`,
        );
      await rm(box.at('node'), { recursive: true, force: true });
    }
  });
}

test.run();
