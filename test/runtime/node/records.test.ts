import { execa } from 'execa';
import { chmod, chown, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import { readRecords, writeRecords } from '../../../src/runtime/node/records.ts';
import { isRunId, NO_RECORDS, settingsDigest, type Records } from '../../../src/runtime/plan/records.ts';
import { newRunId, runsOf } from '../../../src/runtime/prepare/run-folder.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('records');

const DEMO = {
  version: '1.0',
  digest: digestOf('x'),
  settings: settingsDigest({}),
  run: '20261121T101500Z-3f2a',
  finished: true,
};
const RECORDS: Records = {
  format: 1,
  lastRun: '20261121T101500Z-3f2a',
  extracted: [{ tree: 'addons', name: 'demo', version: '1.0', digest: digestOf('x') }],
  applied: { demo: DEMO },
};

test('records come back as they were written; nothing else is left', async () => {
  await using box = await tree();
  await writeRecords(box.path, RECORDS);
  assert.equal(await readRecords(box.path), RECORDS);
  assert.equal(await readdir(box.path), ['records.json']);
  assert.is((await stat(box.at('records.json'))).mode & 0o777, 0o600);
});

test('records of the same add-ons are the same bytes, in whichever order they came', async () => {
  await using box = await tree();
  const texts: string[] = [];
  for (const applied of [
    { aaa: DEMO, bbb: DEMO },
    { bbb: DEMO, aaa: DEMO },
  ]) {
    await writeRecords(box.path, { ...RECORDS, applied });
    texts.push(await readFile(box.at('records.json'), 'utf8'));
  }
  assert.is(texts[0], texts[1]);
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

/** Values that none of the fields may have. */
const WRONG: readonly unknown[] = [null, 7, 'x y/../z', '', [[]], { x: 1 }, true, 'a'.repeat(2000)];
const REMOVABLE = ['/lastRun', '/cluster', '/applied/demo', '/applied/demo/previous', '/applied/demo/digest'];

function* fieldsOf(value: unknown, at = ''): Generator<string> {
  if (at !== '') yield at;
  if (typeof value !== 'object' || value === null) return;
  for (const [key, part] of Object.entries(value)) yield* fieldsOf(part, `${at}/${key}`);
}

/** A copy in which the part at this place is another one; undefined takes it away. */
function changed(value: unknown, [key = '', ...rest]: readonly string[], part: unknown): unknown {
  const copy: Record<string, unknown> = { ...(value as object) };
  copy[key] = rest.length === 0 ? part : changed(copy[key], rest, part);
  return Array.isArray(value) ? Object.values(copy) : copy;
}

test('any field with a value that it cannot have, or without one, is refused: nothing of it is believed', async () => {
  await using box = await tree();
  const { finished: _finished, ...previous } = DEMO;
  const whole = { ...RECORDS, cluster: 'u-1', applied: { demo: { ...DEMO, finished: false, previous } } };
  await writeFile(box.at('records.json'), JSON.stringify(whole));
  assert.equal(await readRecords(box.path), whole);
  for (const field of fieldsOf(whole)) {
    for (const wrong of [undefined, ...WRONG]) {
      if (wrong === undefined && REMOVABLE.includes(field)) continue;
      if (wrong === true && field === '/applied/demo/finished') continue;
      const text = JSON.stringify(changed(whole, field.slice(1).split('/'), wrong));
      await writeFile(box.at('records.json'), text);
      const error = await assert.rejectsWith(readRecords(box.path), 'FILE_UNUSABLE', /records\.json: damaged/);
      assert.match(error.hint ?? '', 'move it away', `${field} ${String(wrong)}`);
    }
  }
});

test('what stands in a file that is no records file is not repeated', async () => {
  await using box = await tree({ 'records.json': 'root:topsecret:1::' });
  const error = await assert.rejectsWith(readRecords(box.path), 'FILE_UNUSABLE', /damaged: not JSON/);
  assert.not.match(`${error.message}${error.hint ?? ''}`, 'topsecret');
});

test('records that others can change, or that are somewhere else, are not believed', async () => {
  await using box = await tree();
  const path = box.at('records.json');
  const refused = async (what: RegExp): Promise<void> => {
    const error = await assert.rejectsWith(readRecords(box.path), 'FILE_UNUSABLE', what);
    assert.match(error.message, path);
    assert.match(error.hint ?? '', /^find out (?:who put it there|what changed it)/);
  };
  await writeRecords(box.path, RECORDS);
  for (const mode of [0o620, 0o602]) {
    await chmod(path, mode);
    await refused(/other users can write to it/);
  }
  await chmod(path, 0o644);
  assert.equal(await readRecords(box.path), RECORDS);
  if (process.geteuid?.() === 0) {
    await chown(path, 65_534, 0);
    await refused(/belongs to user 65534/);
    await chown(path, 0, 0);
  }
  await rename(path, box.at('elsewhere.json'));
  await symlink('elsewhere.json', path);
  await refused(/a symbolic link/);
  await rename(path, box.at('link'));
  await execa('mkfifo', [path]);
  await refused(/not a regular file/);
});

test('records larger than any are refused before they are read', async () => {
  await using box = await tree();
  await writeFile(box.at('records.json'), Buffer.alloc((16 << 20) + 1));
  await assert.rejectsWith(readRecords(box.path), 'FILE_UNUSABLE', /larger than/);
});

test('ids of runs sort as the runs began, within a second too', () => {
  const times = ['10:15:00.007', '10:15:00.070', '10:15:00.700', '10:15:01.000'].map((time) => `2026-11-21T${time}Z`);
  const ids = times.map((time) => newRunId(new Date(time), undefined));
  assert.ok(ids.every(isRunId));
  assert.equal(ids.toSorted(), ids);
  assert.ok(isRunId('20261121T101500Z-3f2a'));
});

test('with a clock that was set back, the id of a new run follows on the latest all the same', () => {
  const now = new Date('2026-11-21T10:15:00.007Z');
  for (const [latest, expected] of [
    ['29991231T235959Z-3e60', '29991231T235959Z-3e7'],
    ['29991231T235959Z-3e7f', '30000101T000000Z-000'],
    ['20261121T101500Z-007f', '20261121T101500Z-008'],
    ['20251121T101500Z-3e70', '20261121T101500Z-007'],
    ['99991231T235959Z-3e70', '20261121T101500Z-007'],
    ['99999999T999999Z-0000', '20261121T101500Z-007'],
  ] as const) {
    const id = newRunId(now, latest);
    assert.ok(isRunId(id), id);
    assert.is(id.slice(0, -1), expected);
  }
  assert.not(isRunId('../x'));
});

test('a file in the place of the folder of runs is reported', async () => {
  await using box = await tree({ runs: '' });
  await assert.rejectsWith(runsOf(box.path), 'FILE_UNUSABLE', /list \S+\/runs: /);
});

test.run();
