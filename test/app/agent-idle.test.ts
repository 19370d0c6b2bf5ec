/** What an agent asks of its hub while there is nothing to do: hours, whose timers the test drives. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter, setMaxListeners } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { mock } from 'node:test';
import { openAgentScene } from '../support/agent-scene.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/agent-idle', { timeoutMs: 240_000 });
const STEP_MS = 5000;

interface DrivenTime extends Disposable {
  /** Lets the time pass in steps; what is asked in one is answered before the next one. */
  readonly pass: (minutes: number) => Promise<void>;
}

/** Timers, dates and the clock of this process from now on. */
function driveTime(): DrivenTime {
  const now = performance.now.bind(performance);
  const wait = globalThis.setTimeout;
  const began = now();
  let passed = 0;
  let open = 0;
  const start = (): void => void (open += 1);
  const end = (): void => void (open -= 1);
  // The mock keeps the listeners of waits that are over.
  const { defaultMaxListeners } = EventEmitter;
  setMaxListeners(0);
  subscribe('http.client.request.start', start);
  subscribe('http.client.response.finish', end);
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: Date.now() });
  syncBuiltinESMExports();
  performance.now = () => began + passed;
  const [driven, clear] = [globalThis.setTimeout, globalThis.clearTimeout];
  const renewed = new Map<unknown, NodeJS.Timeout>();
  const cleared = (timer: NodeJS.Timeout | undefined): void => clear(renewed.get(timer) ?? timer);
  // Timers of Node can be begun again and disposed of, and those of its mock cannot.
  const whole = (...args: Parameters<typeof setTimeout>): NodeJS.Timeout => {
    const timer = driven(...args);
    const refresh = (): NodeJS.Timeout => {
      cleared(timer);
      renewed.set(timer, driven(...args));
      return timer;
    };
    return Object.assign(timer, { refresh, [Symbol.dispose]: () => cleared(timer) });
  };
  globalThis.setTimeout = whole as typeof setTimeout;
  globalThis.clearTimeout = cleared as typeof clearTimeout;
  // An answer that is read, and a file, take real time: nothing may be under way when time passes.
  const rest = async (): Promise<void> => {
    const until = now() + 5000;
    for (let quiet = 0; quiet < 3 && now() < until; quiet += 1) {
      await new Promise((resolve) => void wait(resolve, 1));
      if (open > 0 || process.getActiveResourcesInfo().some((one) => one.includes('Req'))) quiet = 0;
    }
  };
  return {
    pass: async (minutes) => {
      await rest();
      for (let ms = 0; ms < minutes * 60_000; ms += STEP_MS) {
        passed += STEP_MS;
        mock.timers.tick(STEP_MS);
        await rest();
      }
    },
    [Symbol.dispose]: () => {
      unsubscribe('http.client.request.start', start);
      unsubscribe('http.client.response.finish', end);
      globalThis.setTimeout = driven;
      globalThis.clearTimeout = clear;
      mock.timers.reset();
      syncBuiltinESMExports();
      performance.now = now;
      setMaxListeners(defaultMaxListeners);
    },
  };
}

test('an idle agent sends at most a hundred requests an hour to its hub, also those with which it watches', async () => {
  await using scene = await openAgentScene();
  await scene.order({ source: scene.manifest('1') });
  const first = await scene.start();
  await scene.becomes('1 Succeeded');
  await first.stop();
  using time = driveTime();
  const agent = await scene.start();
  await time.pass(2);
  const before = scene.requests.length;
  await time.pass(60);
  const sent = scene.requests.slice(before);
  await agent.stop();
  const count = (pattern: RegExp): number => sent.filter((one) => pattern.test(one)).length;
  assert.ok(sent.length <= 100, `${sent.length} requests:\n${sent.join('\n')}`);
  // The time has passed: it has renewed its Lease, watched again, and said when it was there last.
  assert.ok(count(/^PUT .*leases\/curlew-agent$/) >= 45, sent.join('\n'));
  assert.ok(count(/watch=true/) >= 4, sent.join('\n'));
  assert.ok(count(/^PATCH .*clusters\/oslo\/status/) >= 8, sent.join('\n'));
  assert.is(count(/clusteraddons\/web/), 0, sent.join('\n'));
});

test.run();
