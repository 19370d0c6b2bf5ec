import { readdir, readFile, stat } from 'node:fs/promises';
import { NO_STATE } from '../../../src/fleet/state.ts';
import { StateFolder } from '../../../src/fleet/run/state.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('fleet/run/state');

test('an order that is given before a pass belongs to the state that follows it', async () => {
  await using box = await tree();
  const folder = new StateFolder('state', { cwd: box.path });
  await folder.order('web', () => ({ paused: true }));
  assert.equal((await folder.readOrders()).addons, { web: { paused: true } });
  await folder.read();
  await folder.write(NO_STATE);
  const { id } = await folder.read();
  assert.is((await folder.readOrders()).state, id);
});

test('a state that has not changed is not written again', async () => {
  await using box = await tree();
  const folder = new StateFolder('.', { cwd: box.path });
  await (await folder.claim())[Symbol.asyncDispose]();
  await folder.write(NO_STATE);
  const { ino } = await stat(box.at('state.json'));
  await folder.write(NO_STATE);
  assert.is((await stat(box.at('state.json'))).ino, ino);
});

test('one pass at a time works from a folder, which Git does not take', async () => {
  await using box = await tree();
  const [one, other] = [1, 2].map(() => new StateFolder('.', { cwd: box.path }));
  assert.ok(one && other);
  await using _claim = await one.claim();
  await assert.rejectsWith(other.claim(), 'BUSY');
  assert.match(await readFile(box.at('.gitignore'), 'utf8'), '/state.json');
});

test('files that no kept content has are deleted', async () => {
  await using box = await tree({ 'files/old': '', 'files/kept': '' });
  const folder = new StateFolder('.', { cwd: box.path });
  const kept = [{ revision: '1', addon: {}, entries: [{ hash: 'kept' }] }];
  await folder.sweep({ ...NO_STATE, addons: { web: { failures: {}, removing: {}, kept } } } as never);
  assert.equal(await readdir(box.at('files')), ['kept']);
});

test.run();
