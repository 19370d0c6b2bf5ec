/** Which jobs of a cluster begin when. */
import type { Job } from '../../src/fleet/pass.ts';
import { readClusterAddon } from '../../src/hub/observe.ts';
import { eachOrdered, type Ordered } from '../../src/hub/run/turn.ts';
import { readObject } from '../../src/kube/objects.ts';
import { Wake } from '../../src/platform/limit/wake.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { hubClusterAddon } from '../support/hub-objects.ts';
import { suite } from '../support/suite.ts';

const test = suite('hub/turn');
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
  return [job, { object, record: object.record, addon: undefined }];
}

/** A turn whose jobs end when they are told to, and what has begun so far. */
function turnOf(first: readonly Ordered[], arriving: Ordered[] = []) {
  const more = new Wake();
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const work = async ({ addon }: Job): Promise<void> => {
    begun.push(addon);
    await new Promise<void>((resolve) => ends.set(addon, resolve));
  };
  const find = (taken: ReadonlySet<string>): readonly Ordered[] =>
    arriving.filter(([, { record }]) => !taken.has(record.addon) && !taken.has(record.spec.identity));
  const ended = eachOrdered(first, work, { more, find, signal: never });
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
      arriving.push(...jobs);
      more.set();
      return settled();
    },
  };
}

test('what goes is first, releases go two at a time, and all else alone', async () => {
  const manifest = ordered('page', 'install', { source: MANIFEST, identity: 'default:page' });
  const turn = turnOf([ordered('a'), ordered('b'), ordered('c'), manifest, ordered('d'), ordered('old', 'remove')]);
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
  // Neither another content of the same add-on, nor what takes over its release, nor what is no release.
  const another = ordered('another', 'install', { identity: 'release:web/a' });
  const manifest = ordered('page', 'install', { source: MANIFEST, identity: 'default:page' });
  assert.is(await turn.arrive(ordered('a', 'update'), another, manifest, ordered('gone', 'remove')), 'a');
  assert.is(await turn.arrive(ordered('b'), ordered('c')), 'a b');
  assert.is(await turn.end('a'), 'a b c');
  assert.is(await turn.arrive(ordered('d')), 'a b c');
  await turn.end('b');
  await turn.end('c');
  assert.is(await turn.end('d'), 'a b c d');
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
  const turn = eachOrdered([ordered('a'), ordered('b'), ordered('c')], work, { more, find: () => [], signal: never });
  const error = await turn.then(() => undefined, String);
  assert.is(error, 'Error: lost');
  assert.not.ok(begun.includes('c'));
});

test.run();
