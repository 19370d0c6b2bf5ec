/** What an agent does about its orders: each case is a record, what the hub has, and what follows. */
import { compareText } from '../../src/core/ref.ts';
import {
  afterJob,
  clusterStatus,
  decide,
  NO_RECORD,
  readOrder,
  statusOf,
  type AgentDone,
  type AgentRecord,
  type Decided,
  type Order,
} from '../../src/hub/agent.ts';
import * as assert from '../support/assert.ts';
import { hubClusterAddon } from '../support/hub-objects.ts';
import { suite } from '../support/suite.ts';

const test = suite('hub/agent');
const HUB = 'hub-1';
const DONE: AgentDone = { result: 'done', reason: '', message: '' };
const FAILED: AgentDone = { result: 'failed', reason: 'DeliveryFailed', message: 'no' };

function order(spec: object = {}, name = 'web', status?: object): Order {
  const { metadata, ...object } = hubClusterAddon(name, 'oslo', { hub: HUB, ...spec }) as { readonly metadata: object };
  const more = { uid: 'u', resourceVersion: '1', labels: {}, annotations: {}, finalizers: [] };
  return readOrder({ metadata: { name, ...metadata, ...more }, ...object, ...(status && { status }) });
}

function all(...orders: readonly Order[]): ReadonlyMap<string, Order> {
  return new Map(orders.map((one) => [one.at.name, one]));
}

/** Does all jobs with these results. */
function pass(
  orders: ReadonlyMap<string, Order> | undefined,
  record: AgentRecord,
  {
    now = 1000,
    acceptOlder = false,
    done = DONE,
  }: { readonly now?: number; readonly acceptOlder?: boolean; readonly done?: AgentDone } = {},
): AgentRecord & { readonly decided: Decided; readonly said: string } {
  const decided = decide(orders, record, { now, hub: HUB, acceptOlder });
  const after = decided.jobs.reduce((known, job) => afterJob(known, job, done, now), decided.record);
  const jobs = decided.jobs.map(({ addon, act, spec, takesOver, keepGoing }) => {
    return [act, addon, spec.specHash, takesOver ? 'over' : '', keepGoing ? 'on' : '']
      .filter((one) => one !== '')
      .join(' ');
  });
  const refused = [...decided.refused].map(([name, { reason }]) => `${name} ${reason}`);
  const detached = decided.detached.map((name) => `${name} detached`);
  return { ...after, decided, said: [...jobs, ...refused, ...detached].toSorted(compareText).join(', ') };
}

/** How an add-on is reported. */
function shown(one: Order, { decided, ...record }: ReturnType<typeof pass>, now = 1000): string {
  const [name] = [one.at.name];
  const status = statusOf(one, record.addons[name], { refusal: decided.refused.get(name), health: undefined, now });
  const {
    applied,
    state,
    reason = '-',
  } = status as { applied: { revision: number; hash: string }; state: string; reason?: string };
  return `${applied.revision} ${applied.hash || '-'} ${state} ${reason}`;
}

test('an add-on is installed once, and what is done is not done again', () => {
  const orders = all(order());
  const first = pass(orders, NO_RECORD);
  assert.is(first.said, 'install web a1');
  assert.is(shown(order(), first), '1 a1 Succeeded -');
  assert.is(pass(orders, first).said, '');
});

test('what was obeyed is continued while the hub is away, also by an agent that begins then', () => {
  const begun = decide(all(order()), NO_RECORD, { now: 1000, hub: HUB, acceptOlder: false }).record;
  assert.is(pass(undefined, begun).said, 'install web a1');
});

/** Revision, hash and version of what was obeyed and is healthy, of what comes next, and what follows. */
const NEXT: readonly (readonly [was: string, next: string, expected: string])[] = [
  ['3 a1 1.2.3', '4 b2 1.3.0', 'install web b2'],
  ['3 a1 1.2.3', '3 a1 1.2.3', ''],
  ['3 a1 1.2.3', '4 a1 1.2.3', 'install web a1'],
  ['3 a1 1.2.3', '2 a0 1.2.2', 'web OlderRevision'],
  ['3 a1 1.2.3', '2 a1 1.2.3', 'web OlderRevision'],
  ['3 a1 1.2.3', '3 b2 1.2.3', 'web ChangedRevision'],
  ['3 a1 1.2.3', '4 a0 1.2.2', 'web Downgrade'],
  ['3 a1 1.2.3', '4 a0 1.2.3-rc.1', 'web Downgrade'],
];
const spec = (text: string): object => {
  const [revision = '', specHash, version] = text.split(' ');
  return { revision: Number(revision), specHash, version };
};
for (const [was, next, expected] of NEXT) {
  test(`after revision ${was}, revision ${next} leads to: ${expected || 'nothing'}`, () => {
    const before = pass(all(order(spec(was))), NO_RECORD);
    assert.is(pass(all(order(spec(next))), before).said, expected);
  });
}

test('with --accept-older, lower revisions and versions are obeyed, but no revision that has changed', () => {
  const before = pass(all(order(spec('3 a1 1.2.3'))), NO_RECORD);
  const now = (text: string): string => pass(all(order(spec(text))), before, { acceptOlder: true }).said;
  assert.is(now('2 a0 1.2.2'), 'install web a0');
  assert.is(now('4 a0 1.2.2'), 'install web a0');
  assert.is(now('3 b2 1.2.3'), 'web ChangedRevision');
});

test('a cluster goes back to what its own record knows as healthy before, and to no other lower version', () => {
  let record: AgentRecord = NO_RECORD;
  for (const text of ['1 a1 1.1.0', '2 a2 1.2.0', '3 a3 1.3.0']) record = pass(all(order(spec(text))), record);
  assert.is(pass(all(order(spec('4 a1 1.1.0'))), record).said, 'web Downgrade');
  const back = pass(all(order(spec('4 a2 1.2.0'))), record);
  assert.is(back.said, 'install web a2');
  // A version that never became healthy is not what was there before.
  const bad = pass(all(order(spec('4 a4 1.4.0'))), record, { done: FAILED });
  assert.is(pass(all(order(spec('5 a2 1.2.0'))), bad).said, 'web Downgrade');
  assert.is(pass(all(order(spec('5 a3 1.3.0'))), bad).said, 'install web a3');
});

test('one hub is obeyed', () => {
  assert.is(pass(all(order({ hub: 'hub-2' })), NO_RECORD).said, 'web AnotherHub');
  const before = pass(all(order()), NO_RECORD);
  const other = order({ hub: 'hub-2', revision: 9, specHash: 'b2' });
  const after = pass(all(other), before);
  assert.is(after.said, 'web AnotherHub');
  assert.is(shown(other, after), '1 a1 Succeeded AnotherHub');
});

test('an order that cannot be read is reported, and what was obeyed stays', () => {
  const before = pass(all(order()), NO_RECORD);
  const strange = order({ revision: 2, action: 'Dance' });
  const after = pass(all(strange), before);
  assert.is(after.said, 'web Unreadable');
  assert.is(shown(strange, after), '1 a1 Succeeded Unreadable');
});

test('a refused revision says what is there, a lower version that it has failed', () => {
  const before = pass(all(order(spec('3 a1 1.2.3'))), NO_RECORD);
  const older = order(spec('2 a0 1.2.2'));
  assert.is(shown(older, pass(all(older), before)), '3 a1 Succeeded OlderRevision');
  const lower = order(spec('4 a0 1.2.2'));
  assert.is(shown(lower, pass(all(lower), before)), '4 a0 Failed Downgrade');
});

test('a failure is reported at once, tried again twice, and then left until the next revision', () => {
  const orders = all(order());
  let record: ReturnType<typeof pass> = pass(orders, NO_RECORD, { done: FAILED });
  assert.is(shown(order(), record), '1 a1 Failed DeliveryFailed');
  assert.is(pass(orders, record, { now: 1059 }).said, '');
  record = pass(orders, record, { now: 1060, done: FAILED });
  assert.is(record.said, 'install web a1');
  record = pass(orders, record, { now: 1360, done: FAILED });
  assert.is(record.said, 'install web a1');
  assert.is(pass(orders, record, { now: 1e9 }).said, '');
  assert.is(pass(all(order({ revision: 2 })), record, { now: 1361 }).said, 'install web a1');
});

test('what could not begin is tried again without end, and has not failed', () => {
  const later = { result: 'later', reason: 'Waiting', message: 'busy' } as const;
  let record: ReturnType<typeof pass> = pass(all(order()), NO_RECORD, { done: later });
  for (const now of [1015, 1030, 1045, 1060]) {
    assert.is(shown(order(), record, now), '1 a1 Progressing Waiting');
    record = pass(all(order()), record, { now, done: later });
    assert.is(record.said, 'install web a1');
  }
});

test('a ClusterAddon that vanishes leaves the add-on, and one that returns is continued', () => {
  const before = pass(all(order()), NO_RECORD);
  const gone = pass(all(), before);
  assert.is(gone.said, 'web detached');
  assert.is(pass(undefined, before).said, '');
  assert.is(pass(all(order({ revision: 2, specHash: 'b2' })), gone).said, 'install web b2');
});

test('a removal is reported, and forgotten with its ClusterAddon', () => {
  const remove = order({ revision: 2, action: 'Remove' });
  const removed = pass(all(remove), pass(all(order()), NO_RECORD));
  assert.is(removed.said, 'remove web a1');
  assert.is(shown(remove, removed), '2 a1 Succeeded -');
  const gone = pass(all(), removed);
  assert.equal(gone.addons, {});
  // A new one begins with its first revision.
  assert.is(pass(all(order()), gone).said, 'install web a1');
});

/** Policy, times of passes that fail, and what is done and reported in the end. */
const REMOVALS: readonly (readonly [policy: string | undefined, now: readonly number[], acts: string, end: string])[] =
  [
    [undefined, [1000, 1060, 1360], 'remove; remove; remove', '2 a1 Failed RemovalFailed'],
    ['Block', [1000, 1100, 3000], 'remove; remove; remove', '2 a1 TimedOut RemovalFailed'],
    ['Orphan', [1000, 1060, 1360], 'remove; remove; remove', '2 a1 Removing RemovalFailed'],
    ['Skip', [1000, 1060, 1360], 'remove; remove on; remove on', '2 a1 Removing RemovalFailed'],
  ];
for (const [onFailure, times, acts, end] of REMOVALS) {
  test(`a removal that fails, ${onFailure ?? 'by default'}: ${acts}, then ${end}`, () => {
    const remove = order({ revision: 2, action: 'Remove', ...(onFailure && { remove: { onFailure } }) });
    let record: ReturnType<typeof pass> = pass(all(order()), NO_RECORD);
    const said: string[] = [];
    for (const now of times) {
      record = pass(all(remove), record, { now, done: { ...FAILED, reason: 'RemovalFailed' } });
      said.push(record.said.replace(' web a1', ''));
    }
    assert.is(said.join('; '), acts);
    assert.is(shown(remove, record), end);
    const after = pass(all(remove), record, {
      now: times.at(-1) ?? 0,
      done: { ...DONE, orphans: ['ConfigMap default/page'] },
    });
    const isKept = onFailure === undefined || onFailure === 'Block';
    assert.is(after.said, isKept ? '' : 'forget web a1');
    if (!isKept) assert.is(shown(remove, after), '2 a1 Succeeded Orphaned');
  });
}

test('a removal ends at its deadline, by its policy', () => {
  const remove = order({ revision: 2, action: 'Remove', remove: { onFailure: 'Orphan', timeout: '10m' } });
  const record = pass(all(remove), pass(all(order()), NO_RECORD), { done: FAILED });
  assert.is(pass(all(remove), record, { now: 1599, done: FAILED }).said, 'remove web a1');
  assert.is(pass(all(remove), record, { now: 1600 }).said, 'forget web a1');
});

test('a release that moves to another add-on of the fleet is handed over, and never removed', () => {
  const before = pass(all(order()), NO_RECORD);
  const next = pass(all(order({ specHash: 'b2' }, 'portal')), before);
  assert.is(next.said, 'forget web a1, install portal b2 over');
  assert.equal(Object.keys(next.addons), ['portal']);
});

test('an add-on that is not healthy for five minutes has failed, until it is healthy again', () => {
  const record = pass(all(order()), NO_RECORD);
  const status = (is: 'True' | 'False', now: number) =>
    statusOf(order(), record.addons['web'], { refusal: undefined, health: { is, why: 'gone', since: 2000 }, now });
  assert.is(status('False', 2299)?.['state'], 'Succeeded');
  const ill = status('False', 2300);
  assert.is(
    `${String(ill?.['state'])} ${String(ill?.['reason'])} ${String(ill?.['health'])}`,
    'Failed Unhealthy False',
  );
  assert.is(status('True', 2400)?.['state'], 'Succeeded');
});

test('a status that is stored is not written again', () => {
  const record = pass(all(order()), NO_RECORD);
  const now = 1000;
  const first = statusOf(order(), record.addons['web'], { refusal: undefined, health: undefined, now });
  assert.is(
    statusOf(order({}, 'web', first), record.addons['web'], { refusal: undefined, health: undefined, now: 2000 }),
    undefined,
  );
});

test('the status of a cluster has its facts, and the times at which its conditions changed', () => {
  const { decided } = pass(all(order()), NO_RECORD);
  const facts = { version: 'v1.34.1', nodes: 3 };
  const status = clusterStatus({ facts, problem: '', ahead: 0 }, decided, undefined, 1000);
  const conditions = (value: unknown): string =>
    (
      value as { conditions: readonly { type: string; status: string; reason: string; lastTransitionTime: string }[] }
    ).conditions
      .map((one) => `${one.type} ${one.status} ${one.reason} ${one.lastTransitionTime.slice(11, 19)}`)
      .join(', ');
  assert.is(
    conditions(status),
    'Available True Answers 00:16:40, Degraded False AsExpected 00:16:40, ClockSynced True AsTheHub 00:16:40',
  );
  const gone = pass(all(), decided.record);
  const later = clusterStatus({ facts: undefined, problem: 'no route', ahead: 3600 }, gone.decided, status, 2000);
  assert.is(
    conditions(later),
    'Available False Unreachable 00:33:20, Degraded True AddonsDetached 00:33:20, ClockSynced False Differs 00:33:20',
  );
  assert.equal(later['facts'], facts);
});

test.run();
