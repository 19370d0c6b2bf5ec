/** Parts on media of their own: small file systems, with the room that they have. */
import { execFile } from 'node:child_process';
import { readdir, readFile, statfs, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { joinParts } from '../../src/ship/bundle/parts/join-parts.ts';
import { writeParts, type Whole } from '../../src/ship/bundle/parts/split-write.ts';
import { memorySource } from '../../src/formats/archive/read.ts';
import { partsPath } from '../../src/core/parts.ts';
import { formatBytes } from '../../src/core/units.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { archiveOf, noise } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('components/media');
const run = promisify(execFile);
const MIB = 1 << 20;

/** Media of these sizes, in MiB, mounted below the box. */
async function media(
  box: Tree,
  sizes: readonly number[],
): Promise<{ readonly folders: readonly string[] } & AsyncDisposable> {
  const folders = sizes.map((_, n) => box.at(`medium-${n + 1}`));
  for (const [n, folder] of folders.entries()) {
    await run('mkdir', [folder]);
    await run('mount', ['-t', 'tmpfs', '-o', `size=${sizes[n] ?? 0}m`, 'tmpfs', folder]);
  }
  return {
    folders,
    [Symbol.asyncDispose]: async () => {
      for (const folder of folders) await run('umount', [folder]).catch(() => undefined);
    },
  };
}

function wholeOf(size: number): Whole & { readonly bytes: Buffer } {
  const { bytes, plan } = archiveOf([{ path: 'blob.gz', data: noise(size) }]);
  return { name: 'b.tar.gz', bytes, source: memorySource('b.tar.gz', bytes), index: plan.index };
}

if (process.getuid?.() !== 0) {
  test.skip('media with little room', 'mounting small file systems needs root');
} else {
  test('a bundle larger than each medium is spread over them, and joined from all', async ({ signal }) => {
    await using box = await tree();
    const whole = wholeOf(8 * MIB);
    await using mounted = await media(box, [6, 3, 8]);
    const { folders } = mounted;
    const options = { folders, limit: undefined, force: false, verify: true, report: noReport, signal };
    const written = await writeParts(whole, options);
    assert.equal(
      written.media.map(({ medium, parts }) => [medium.type, parts.map(({ size }) => size >> 20)]),
      [
        ['tmpfs', [4]],
        ['tmpfs', [1]],
        ['tmpfs', [3]],
      ],
    );
    for (const { path } of written.media) assert.match(await readFile(path, 'utf8'), '"name":"b.tar.gz"');
    for (const folder of folders)
      await run('sha256sum', ['--check', '--strict', partsPath.sums('b.tar.gz')], { cwd: folder });
    const head = written.media[1]?.path ?? '';
    await joinParts(head, box.at('joined'), { folders, force: false, report: noReport, signal });
    assert.ok((await readFile(box.at('joined'))).equals(whole.bytes));
  });

  test('a lack of room is named before anything is written', async ({ signal }) => {
    await using box = await tree();
    const whole = wholeOf(8 * MIB);
    await using mounted = await media(box, [4, 5]);
    const { folders } = mounted;
    const options = { folders, limit: undefined, force: false, verify: false, report: noReport, signal };
    const error = await assert.rejectsWith(writeParts(whole, options), 'NO_SPACE');
    const lacking = whole.index.size - (2 + 3) * MIB;
    assert.match(
      error.message,
      `it needs ${formatBytes(whole.index.size)}, ${formatBytes(lacking)} more than available`,
    );
    for (const folder of folders) assert.equal(await readdir(folder), []);
  });

  test('a medium that fills up meanwhile ends it, and with room again it goes on', async ({ signal }) => {
    await using box = await tree();
    const whole = wholeOf(6 * MIB);
    await using mounted = await media(box, [10]);
    const [folder = ''] = mounted.folders;
    let filled = false;
    const source: Whole['source'] = {
      ...whole.source,
      async *read(...range) {
        if (range[0] >= 4 * MIB && !filled) {
          filled = true;
          const { bavail, bsize } = await statfs(folder);
          await writeFile(`${folder}/other`, Buffer.alloc(bavail * bsize - MIB));
        }
        yield* whole.source.read(...range);
      },
    };
    const options = { folders: [folder], limit: 2 * MIB, force: false, verify: false, report: noReport, signal };
    await assert.rejectsWith(writeParts({ ...whole, source }, options), 'NO_SPACE');
    assert.equal(
      (await readdir(folder)).filter((name) => name.startsWith('.curlew')),
      [],
    );
    await run('rm', [`${folder}/other`]);
    assert.is((await writeParts(whole, options)).kept, 2);
    const joining = { folders: [folder], force: false, report: noReport, signal };
    await joinParts(`${folder}/b.tar.gz.parts.json`, box.at('joined'), joining);
    assert.ok((await readFile(box.at('joined'))).equals(whole.bytes));
  });

  test('a set is replaced on a medium that has no room for both', async ({ signal }) => {
    await using box = await tree();
    await using mounted = await media(box, [7]);
    const { folders } = mounted;
    const options = { folders, limit: undefined, verify: false, report: noReport, signal };
    await writeParts(wholeOf(3 * MIB), { ...options, force: false });
    const whole = wholeOf(4 * MIB);
    await writeParts(whole, { ...options, force: true });
    const head = `${folders[0] ?? ''}/b.tar.gz.parts.json`;
    await joinParts(head, box.at('joined'), { folders, force: false, report: noReport, signal });
    assert.ok((await readFile(box.at('joined'))).equals(whole.bytes));
  });

  test('a disk without room for the whole is told before it is joined', async ({ signal }) => {
    await using box = await tree({ 'parts/.keep': '' });
    const whole = wholeOf(4 * MIB);
    const common = { force: false, report: noReport, signal };
    await writeParts(whole, { ...common, folders: [box.at('parts')], limit: MIB, verify: false });
    await using mounted = await media(box, [3]);
    const [folder = ''] = mounted.folders;
    const joining = joinParts(box.at('parts/b.tar.gz.parts.json'), `${folder}/b.tar.gz`, {
      ...common,
      folders: [box.at('parts')],
    });
    await assert.rejectsWith(joining, 'NO_SPACE', new RegExp(`${formatBytes(whole.index.size)} are needed`));
    assert.equal(await readdir(folder), []);
  });
}

test.run();
