/** Which jobs of a cluster begin when. */
import type { Job } from '../../../src/fleet/pass.ts';
import { readClusterAddon } from '../../../src/fleet/hub/observe.ts';
import { eachOrdered, type Ordered } from '../../../src/fleet/hub/run/ordered-jobs.ts';
import { readObject } from '../../../src/cluster/kube/objects.ts';
import { Wake } from '../../../src/platform/limit/wake.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { hubClusterAddon } from '../../support/hub-objects.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/turn');
const MANIFEST = { manifest: 'https://example.com/page.yaml', hash: `sha256:${'0'.repeat(64)}` };

/** The job of a chart, or of another source. */
function ordered(name: string, act: Job['act'] = 'install', spec: object = {}): Ordered {
  const value = hubClusterAddon(name, 'oslo', { identity: `release:web/${name}`, ...spec }) as {
    readonly metadata: object;
  };
  const metadata = { ...value.metadata, uid: name, resourceVersion: '1' };
  const object = readClusterAddon(readObject({ ...value, metadata }, 'test'));
  if (object?.record === undefined) throw new Error(`${name} cannot be read`);
  const job = { cluster: 'oslo', addon: name, act, hash: 'hash', takesOver: false, isNew: true };
  return [job, { object, record: object.record, addon: undefined, order: JSON.stringify([job, object.record.spec]) }];
}

/** A turn whose jobs end when they are told to, and what has begun so far. All that was ordered stays in what is found. */
function turnOf(first: readonly Ordered[], until = Infinity) {
  const more = new Wake();
  const all = [...first];
  const followed = new Set(first.map(([, { order }]) => order));
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const work = async ({ addon }: Job): Promise<void> => {
    begun.push(addon);
    await new Promise<void>((resolve) => ends.set(addon, resolve));
  };
  const ended = eachOrdered(first, work, { more, find: () => all, followed, until, signal: never });
  const settled = async (): Promise<string> => {
    await new Promise((resolve) => setImmediate(resolve));
    return begun.join(' ');
  };
  return {
    begun: settled,
    ended,
    end: async (name: string) => {
      ends.get(name)?.();
      return settled();
    },
    arrive: async (...jobs: readonly Ordered[]) => {
      all.push(...jobs);
      more.set();
      return settled();
    },
  };
}

test('what goes is first, releases go two at a time, and all else alone', async () => {
  const manifest = ordered('page', 'install', { source: MANIFEST, identity: 'default:page' });
  const heir = ordered('d', 'install', { identity: 'release:web/old' });
  const turn = turnOf([ordered('a'), ordered('b'), ordered('c'), manifest, heir, ordered('old', 'remove')]);
  assert.is(await turn.begun(), 'old');
  assert.is(await turn.end('old'), 'old a b');
  assert.is(await turn.end('b'), 'old a b c');
  assert.is(await turn.end('c'), 'old a b c');
  assert.is(await turn.end('a'), 'old a b c page');
  assert.is(await turn.end('page'), 'old a b c page d');
  await turn.end('d');
  await turn.ended;
});

test('releases that are ordered during a turn of releases join it, each once', async () => {
  const turn = turnOf([ordered('a')]);
  assert.is(await turn.begun(), 'a');
  assert.is(await turn.arrive(ordered('b'), ordered('c')), 'a b');
  assert.is(await turn.end('a'), 'a b c');
  assert.is(await turn.arrive(ordered('d')), 'a b c');
  await turn.end('b');
  await turn.end('c');
  assert.is(await turn.end('d'), 'a b c d');
  await turn.ended;
});

test('an order that cannot join a turn is not held up by those that could', async () => {
  const manifest = { source: MANIFEST, identity: 'default:page' };
  const others: readonly Ordered[] = [
    ordered('a', 'update', { revision: 7 }),
    ordered('another', 'install', { identity: 'release:web/a' }),
    ordered('page', 'install', manifest),
    ordered('gone', 'remove'),
  ];
  for (const other of others) {
    const turn = turnOf([ordered('a')]);
    assert.is(await turn.arrive(ordered('b')), 'a b');
    assert.is(await turn.arrive(ordered('c'), other), 'a b');
    assert.is(await turn.end('a'), 'a b');
    assert.is(await turn.arrive(ordered('d')), 'a b');
    assert.is(await turn.end('b'), 'a b');
    await turn.ended;
  }
});

test('nothing joins a turn after its time', async () => {
  const turn = turnOf([ordered('a'), ordered('b')], performance.now());
  assert.is(await turn.arrive(ordered('c')), 'a b');
  await turn.end('a');
  assert.is(await turn.end('b'), 'a b');
  await turn.ended;
});

test('of two add-ons of one release, a turn takes one', async () => {
  const twin = { identity: 'release:web/a' };
  const turn = turnOf([ordered('a'), ordered('b', 'install', twin)]);
  assert.is(await turn.begun(), 'a');
  const late = { identity: 'release:web/late' };
  assert.is(await turn.arrive(ordered('c', 'install', late), ordered('d', 'install', late)), 'a c');
  await turn.end('a');
  assert.is(await turn.end('c'), 'a c');
  await turn.ended;
});

test('nothing joins a turn that also has something else than releases', async () => {
  const turn = turnOf([ordered('page', 'install', { source: MANIFEST, identity: 'default:page' }), ordered('a')]);
  assert.is(await turn.arrive(ordered('b')), 'page');
  assert.is(await turn.end('page'), 'page a');
  await turn.end('a');
  await turn.ended;
});

test('a job that fails ends the turn when the others have ended', async () => {
  const more = new Wake();
  const begun: string[] = [];
  const work = async ({ addon }: Job): Promise<void> => {
    begun.push(addon);
    if (addon === 'a') throw new Error('lost');
  };
  const parts = { more, find: () => [], followed: new Set<string>(), until: Infinity, signal: never };
  const turn = eachOrdered([ordered('a'), ordered('b'), ordered('c')], work, parts);
  const error = await turn.then(() => undefined, String);
  assert.is(error, 'Error: lost');
  assert.not.ok(begun.includes('c'));
});

test.run();
