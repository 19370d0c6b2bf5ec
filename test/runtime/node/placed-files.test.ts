import { lstat, readFile, truncate, utimes, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import type { ProgressEvent } from '../../../src/core/events.ts';
import type { PackageFile } from '../../../src/core/package.ts';
import { compareFiles, markFiles } from '../../../src/runtime/node/placed-files.ts';
import { fileMark } from '../../../src/platform/files/file-mark.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('runtime/placed-files');
const signal = never;

async function fileOf(at: (path: string) => string, path: string): Promise<PackageFile> {
  const data = await readFile(at(path));
  return { path, mode: 0o644, size: data.byteLength, digest: digestOf(data) };
}

test('a large file is believed by its mark and not read, a script is read whatever its mark says', async () => {
  await using box = await tree({ 'images/layer': 'layer', 'rhel-9/archives/a.rpm': 'rpm', 'install.sh': 'a() { :; }' });
  const wrong = digestOf('something else');
  const rows = [];
  for (const path of ['images/layer', 'rhel-9/archives/a.rpm', 'install.sh']) {
    const mark = fileMark(await lstat(box.at(path), { bigint: true }));
    rows.push({ ...(await fileOf(box.at, path)), digest: wrong, mark });
  }
  const known = new Map(rows.map((row) => [row.path, row]));
  const { differences } = await compareFiles(box.path, rows, { known, thorough: true, signal });
  assert.equal(
    differences.map(({ path, what }) => [path, what]),
    [['install.sh', ['digest']]],
  );
});

test('how far a large file has been read is reported while it is read', async () => {
  await using box = await tree({ 'images/layer': '' });
  const size = 300 << 20;
  await truncate(box.at('images/layer'), size);
  const told: ProgressEvent[] = [];
  const progress = { report: (event: ProgressEvent) => void told.push(event), title: 'prove' };
  const file = { path: 'images/layer', mode: 0o644, size, digest: digestOf('') } as const;
  await compareFiles(box.path, [file], { thorough: true, progress, signal });
  const bytes = told.flatMap((event) => (event.type === 'step-progress' ? [event.bytes] : []));
  assert.ok(bytes.length > 100, `${bytes.length} reports`);
  assert.is(bytes.at(-1), size);
});

test('times that were put back do not make a file believed', async () => {
  await using box = await tree({ 'images/layer': 'right' });
  const file = await fileOf(box.at, 'images/layer');
  const { atime, mtime } = await lstat(box.at('images/layer'));
  const [placed] = await markFiles(box.path, [file], { signal });
  if (placed?.mark === undefined) throw new Error('a mark');
  await writeFile(box.at('images/layer'), 'wrong');
  await utimes(box.at('images/layer'), atime, mtime);
  const known = new Map([[file.path, placed]]);
  const { differences } = await compareFiles(box.path, [file], { known, thorough: false, signal });
  assert.equal(
    differences.map(({ what }) => what),
    [['digest']],
  );
});

test('bytes that were proved within the grain of the clock are proved again the next time', async () => {
  await using box = await tree({ 'images/layer': 'right' });
  const file = await fileOf(box.at, 'images/layer');
  const { differences, files } = await compareFiles(box.path, [file], { thorough: false, signal });
  assert.equal([differences, files.map(({ mark }) => mark)], [[], [undefined]]);
});

test.run();
