import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import {
  isRunId,
  NO_RECORDS,
  readRecords,
  settingsDigest,
  writeRecords,
  type Records,
} from '../../src/runtime/records.ts';
import { newRunId } from '../../src/runtime/run-folder.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('records');

const RECORDS: Records = {
  format: 1,
  lastRun: '20261121T101500Z-3f2a',
  extracted: [{ tree: 'addons', name: 'demo', version: '1.0', digest: digestOf('x') }],
  applied: {
    demo: {
      version: '1.0',
      digest: digestOf('x'),
      settings: settingsDigest({}),
      run: '20261121T101500Z-3f2a',
      finished: true,
    },
  },
};

test('records come back as they were written; nothing else is left', async () => {
  await using box = await tree();
  await writeRecords(box.path, RECORDS);
  assert.equal(await readRecords(box.path), RECORDS);
  assert.equal(await readdir(box.path), ['records.json']);
  assert.is((await stat(box.at('records.json'))).mode & 0o777, 0o600);
});

test('no records mean that nothing is installed', async () => {
  await using box = await tree();
  assert.equal(await readRecords(box.path), NO_RECORDS);
});

const text = JSON.stringify(RECORDS);
for (const [title, damaged] of [
  ['cut short', text.slice(0, 40)],
  ['emptied', ''],
  ['of another kind', '[]'],
  ['with another format', text.replace('"format":1', '"format":2')],
  ['with a digest changed by hand', text.replaceAll(/sha256:[0-9a-f]{4}/g, 'sha256:zzzz')],
  ['with a name that is a path', text.replace('"demo":', '"../../etc":')],
  ['with a path as version', text.replaceAll('"version":"1.0"', '"version":"../1"')],
  ['with a run that is a path', text.replace('20261121T101500Z-3f2a', '../../etc')],
  ['with finished as a text', text.replace('"finished":true', '"finished":"yes"')],
] as const) {
  test(`records ${title} are refused in plain words, and left as they are`, async () => {
    await using box = await tree({ 'records.json': damaged });
    const error = await assert.rejectsWith(readRecords(box.path), 'FILE_UNUSABLE', /records\.json: damaged/);
    assert.match(error.hint ?? '', 'move it away');
    assert.is(await readFile(box.at('records.json'), 'utf8'), damaged);
  });
}

test('records larger than any are refused before they are read', async () => {
  await using box = await tree();
  await writeFile(box.at('records.json'), Buffer.alloc((16 << 20) + 1));
  await assert.rejectsWith(readRecords(box.path), 'FILE_UNUSABLE', /larger than/);
});

test('ids of runs sort as the runs began, within a second too', () => {
  const times = ['10:15:00.007', '10:15:00.070', '10:15:00.700', '10:15:01.000'].map((time) => `2026-11-21T${time}Z`);
  const ids = times.map((time) => newRunId(new Date(time)));
  assert.ok(ids.every(isRunId));
  assert.equal(ids.toSorted(), ids);
  assert.ok(isRunId('20261121T101500Z-3f2a'));
  assert.not(isRunId('../x'));
});

test.run();
