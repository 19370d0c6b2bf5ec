import {
  actionId,
  actionMarker,
  hookActionId,
  hookMarker,
  LOOK_UP,
  parseActionId,
} from '../../../src/runtime/plan/action-id.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ids of actions');

test('an id is parsed into the kind and the object that it was made from', () => {
  const rows = [
    ['fetch', 'ekco-0.28.7'],
    ['extract', 'packages-host-1.0.0'],
    ['stage', 'ekco-0.28.7'],
    ['images', 'kubernetes'],
    ['hook', 'containerd_install'],
    ['cluster', 'last'],
  ] as const;
  for (const [kind, object] of rows) assert.equal(parseActionId(actionId(kind, object)), { kind, object });
});

test('ids that journals of earlier versions have stay the same', () => {
  assert.equal(actionId('fetch', 'ekco-0.28.7'), 'fetch ekco-0.28.7');
  assert.equal(hookActionId('containerd', 'install'), 'hook containerd_install');
  assert.equal(hookActionId('ekco', 'install'), 'hook ekco');
  assert.equal(hookActionId('ekco', 'pre_init'), 'hook ekco_pre_init');
  assert.equal(actionId('cluster', 'current'), 'cluster current');
  assert.equal(LOOK_UP, 'look-up');
});

test('an unknown id has no kind', () => {
  for (const id of ['', LOOK_UP, 'hook', 'hooks ekco', ' ekco', 'Hook ekco'])
    assert.equal(parseActionId(id), undefined);
});

test('only hooks and the function lookup mark processes that can survive a run', () => {
  const run = '20261121T101500Z-3f2a';
  assert.equal(actionMarker(run, hookActionId('ekco', 'outro')), hookMarker(run, 'ekco_outro'));
  assert.equal(actionMarker(run, LOOK_UP), `CURLEW_HOOK=${run}/look-up`);
  assert.equal(actionMarker(run, 'images ekco'), undefined);
  assert.equal(actionMarker(run, 'fetch ekco-0.28.7'), undefined);
});

test.run();
