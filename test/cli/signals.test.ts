import { listenForSignals } from '../../src/cli/signals.ts';
import { eachLimited } from '../../src/platform/limit/each.ts';
import { createSemaphore } from '../../src/platform/limit/semaphore.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

// own process: listens for signals as long as it lives
const test = suite('cli/signals');

test('systems that wait for their turn, and for one signal, are no leak to Node, however many', async () => {
  const said: string[] = [];
  const listen = ({ message }: Error): number => said.push(message);
  process.on('warning', listen);
  const signal = await listenForSignals(new AbortController().signal);
  const semaphore = createSemaphore(1);
  const systems = Array.from({ length: 40 }, (_, at) => at);
  let done = 0;
  // Both outdated and build look at them within one add-on, side by side.
  const look = async (_system: number, within: { readonly signal: AbortSignal }): Promise<void> =>
    semaphore.run(async () => {
      // Node warns in a later turn.
      await new Promise((resolve) => setImmediate(resolve));
      done += 1;
    }, within);
  await eachLimited(systems, look, { width: systems.length, signal });
  process.off('warning', listen);
  assert.equal([done, said], [40, []]);
});

test.run();
