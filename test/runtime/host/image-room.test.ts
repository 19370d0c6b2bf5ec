import { requireImageRoom } from '../../../src/runtime/host/host-plan.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('the room for images that are loaded alone');

test('images that leave less than 15 % of their disk free are refused before the load', async () => {
  await using box = await tree();
  const root = box.at('containerd/not there yet');
  const load = async (bytes: number): Promise<void> =>
    requireImageRoom({ root, missing: new Map([['demo-1.0', bytes]]) }, { signal: never });
  const { message } = await assert.rejectsWith(load(1e17), 'NO_SPACE');
  assert.match(message, /the run needs 350000000000 MB, and \d+ MB \(15% of \d+ MB\) must stay free/);
  // With nothing to load, a full disk is no reason to refuse.
  await load(0);
});

test.run();
