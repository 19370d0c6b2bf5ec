/** What an agent does about its orders: each case is a record, what the hub has, and what follows. */
import { afterJob, obey, readOrder, type AgentDone, type Decided, type Order } from '../../../src/fleet/hub/agent.ts';
import { keptOf, NO_RECORD, type AgentRecord } from '../../../src/fleet/hub/agent-record.ts';
import { degradedOf, agentStatus } from '../../../src/fleet/hub/agent-status.ts';
import { hubClusterStatus } from '../../../src/fleet/hub/cluster-status.ts';
import * as assert from '../../support/assert.ts';
import { hubChart, hubClusterAddon } from '../../support/hub-objects.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/agent');
const HUB = 'hub-1';
const DONE: AgentDone = { result: 'done', reason: '', message: '' };
const FAILED: AgentDone = { result: 'failed', reason: 'DeliveryFailed', message: 'no' };

/** Short names of contents, by their hash. */
const labels = new Map<string, string>();

/** `content`: a short name of what it has; `version`: that of its chart. */
function order(spec: object = {}, name = 'web', status?: object): Order {
  const { content = 'a1', version = '1.2.3', ...others } = spec as { content?: string; version?: string };
  const own = { hub: HUB, source: hubChart(version), values: { content }, ...others };
  const { metadata, ...object } = hubClusterAddon(name, 'oslo', own) as {
    readonly metadata: object;
    readonly spec: { readonly specHash: string };
  };
  labels.set(object.spec.specHash, content);
  const more = { uid: 'u', resourceVersion: '1', labels: {}, annotations: {}, finalizers: [] };
  return readOrder({ metadata: { name, ...metadata, ...more }, ...object, ...(status && { status }) });
}

function all(...orders: readonly Order[]): ReadonlyMap<string, Order> {
  return new Map(orders.map((one) => [one.at.name, one]));
}

/** Does one job after the other with this result, and decides again after each, as the loop does. */
function pass(
  orders: ReadonlyMap<string, Order> | undefined,
  record: AgentRecord,
  {
    now = 1000,
    acceptOlder = false,
    hub = HUB,
    most = 9,
    done = DONE,
  }: {
    readonly now?: number;
    readonly acceptOlder?: boolean;
    readonly hub?: string;
    readonly most?: number;
    readonly done?: AgentDone;
  } = {},
): AgentRecord & { readonly decided: Decided; readonly said: string } {
  const jobs: string[] = [];
  let decided = obey(orders, record, { now, hub, acceptOlder });
  for (let [job] = decided.jobs; job !== undefined && jobs.length < most; [job] = decided.jobs) {
    const { addon, act, spec: of, takesOver, keepGoing } = job;
    const parts = [act, addon, labels.get(of.specHash) ?? '?', takesOver && `from ${takesOver}`, keepGoing && 'on'];
    jobs.push(parts.filter(Boolean).join(' '));
    const after = afterJob(decided.record, job, done, { now, random: 0.5 });
    decided = obey(orders, after, { now, hub, acceptOlder: false });
  }
  const refused = [...decided.refused].map(([name, { reason }]) => `${name} ${reason}`);
  const detached = decided.detached.map((name) => `${name} detached`);
  const said = [...jobs, ...refused, ...detached].join(', ');
  return { ...decided.record, decided, said };
}

/** How an add-on is reported. */
function shown(one: Order, { decided, ...record }: ReturnType<typeof pass>, now = 1000): string {
  const { name } = one.at;
  const status = agentStatus(one, keptOf(record, name), { refusal: decided.refused.get(name), health: undefined, now });
  const {
    applied,
    state,
    reason = '-',
  } = status as { applied: { revision: number; hash: string }; state: string; reason?: string };
  return `${applied.revision} ${labels.get(applied.hash) ?? '-'} ${state} ${reason}`;
}

test('an add-on is installed once, and what is done is not done again', () => {
  const orders = all(order());
  const first = pass(orders, NO_RECORD);
  assert.is(first.said, 'install web a1');
  assert.is(shown(order(), first), '1 a1 Succeeded -');
  assert.is(pass(orders, first).said, '');
});

test('what was obeyed is continued while the hub is away, also by an agent that begins then', () => {
  const begun = obey(all(order()), NO_RECORD, { now: 1000, hub: HUB, acceptOlder: false }).record;
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
  const [revision = '', content, version] = text.split(' ');
  return { revision: Number(revision), content, version };
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
  const other = order({ hub: 'hub-2', revision: 9, content: 'b2' });
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

test('a failure is tried again twice before it counts, and then left until the next revision', () => {
  const orders = all(order());
  let record: ReturnType<typeof pass> = pass(orders, NO_RECORD, { done: FAILED });
  assert.is(shown(order(), record), '1 a1 Progressing DeliveryFailed');
  assert.is(pass(orders, record, { now: 1059 }).said, '');
  record = pass(orders, record, { now: 1060, done: FAILED });
  assert.is(record.said, 'install web a1');
  assert.is(shown(order(), record), '1 a1 Progressing DeliveryFailed');
  record = pass(orders, record, { now: 1360, done: FAILED });
  assert.is(record.said, 'install web a1');
  assert.is(shown(order(), record), '1 a1 Failed DeliveryFailed');
  assert.is(pass(orders, record, { now: 1e9 }).said, '');
  assert.is(pass(all(order({ revision: 2 })), record, { now: 1361 }).said, 'install web a1');
});

test('content that is bad has failed at once, and is tried again', () => {
  const orders = all(order());
  const record = pass(orders, NO_RECORD, { done: { ...FAILED, result: 'bad' } });
  assert.is(shown(order(), record), '1 a1 Failed DeliveryFailed');
  const again = pass(orders, record, { now: 1060, done: FAILED });
  assert.is(again.said, 'install web a1');
  assert.is(shown(order(), again), '1 a1 Failed DeliveryFailed');
});

test('what could not begin is tried again without end, and has not failed', () => {
  const later = { result: 'later', reason: 'Waiting', message: 'busy' } as const;
  let record: ReturnType<typeof pass> = pass(all(order()), NO_RECORD, { done: later });
  for (const now of [1015, 1030, 1045, 1068, 1102]) {
    assert.is(pass(all(order()), record, { now: now - 1, done: later }).said, '');
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
  assert.is(pass(all(order({ revision: 2, content: 'b2' })), gone).said, 'install web b2');
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
      record = pass(all(remove), record, { now, most: 1, done: { ...FAILED, reason: 'RemovalFailed' } });
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
  const next = pass(all(order({ content: 'b2' }, 'portal')), before);
  assert.is(next.said, 'forget web a1, install portal b2 from web');
  assert.equal(Object.keys(next.addons), ['portal']);
});

test('an add-on that is not healthy for five minutes has failed, until it is healthy again', () => {
  const record = pass(all(order()), NO_RECORD);
  const status = (is: 'True' | 'False', now: number, since = 2000) =>
    agentStatus(order(), record.addons['web'], { refusal: undefined, health: { is, why: 'gone', since }, now });
  // It is here since 1000: what was seen before is about another content.
  assert.is(status('False', 1299, 500)?.['state'], 'Succeeded');
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
  const first = agentStatus(order(), record.addons['web'], { refusal: undefined, health: undefined, now });
  assert.is(
    agentStatus(order({}, 'web', first), record.addons['web'], { refusal: undefined, health: undefined, now: 2000 }),
    undefined,
  );
});

test('the status of a cluster has its facts, and the times at which its conditions changed', () => {
  const { decided } = pass(all(order()), NO_RECORD);
  const facts = { version: 'v1.34.1', nodes: 3 };
  const status = hubClusterStatus({ facts, problem: '', ahead: 0 }, [degradedOf(decided, undefined)], undefined, 1000);
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
  const away = { facts: undefined, problem: 'no route', ahead: 3600 };
  const later = hubClusterStatus(away, [degradedOf(gone.decided, undefined)], status, 2000);
  assert.is(
    conditions(later),
    'Available False Unreachable 00:33:20, Degraded True AddonsDetached 00:33:20, ClockSynced False Differs 00:33:20',
  );
  assert.equal(later['facts'], facts);
});

const own = (record: AgentRecord, name: string) => keptOf(record, name);

test('what cannot be forgotten waits, and holds no other', () => {
  const before = pass(all(order()), NO_RECORD);
  const orders = all(order({ content: 'b2' }, 'portal'));
  const later = { result: 'later', reason: 'Waiting', message: 'busy' } as const;
  const first = pass(orders, before, { done: later });
  assert.is(first.said, 'forget web a1, install portal b2 from web');
  assert.is(pass(orders, first, { now: 1001 }).said, '');
  assert.is(pass(orders, first, { now: 1015 }).said, 'forget web a1, install portal b2 from web');
});

test('an order whose hash or version is not that of its source cannot be read', () => {
  const other = (more: object): string => pass(all(order(more)), NO_RECORD).said;
  assert.is(other({ specHash: 'a1' }), 'web Unreadable');
  const page = { package: { name: 'page', version: '0.9.0', hash: `sha256:${'0'.repeat(64)}` } };
  const [chart, packed] = [order({ source: hubChart('0.9.0') }), order({ source: page })];
  for (const { spec: read } of [chart, packed]) assert.is(read?.version, '0.9.0');
  for (const source of [hubChart('0.9.0'), page]) {
    const { spec: read } = order({ source });
    const at = { name: 'web', namespace: 'fleet-oslo', uid: 'u', resourceVersion: '1' };
    const metadata = { ...at, labels: {}, annotations: {}, finalizers: [] };
    assert.is(readOrder({ metadata, spec: { ...read, version: '9.9.9' } }).spec, undefined);
  }
});

test('a removal is no way to an older version than was healthy', () => {
  const remove = order({ revision: 2, action: 'Remove' });
  const gone = pass(all(), pass(all(remove), pass(all(order()), NO_RECORD)));
  const older = order({ content: 'a0', version: '1.2.2' });
  const refused = pass(all(older), gone);
  assert.is(refused.said, 'web Downgrade');
  assert.is(shown(older, refused), '1 a0 Failed Downgrade');
  assert.is(pass(all(older), gone, { acceptOlder: true }).said, 'install web a0');
  assert.is(pass(all(order({ version: '1.3.0' })), gone).said, 'install web a1');
  // Nor is one that names an older version itself.
  const lie = order({ content: 'a0', version: '1.2.2', revision: 2, action: 'Remove' });
  const removing = pass(all(lie), pass(all(order()), NO_RECORD));
  assert.is(pass(all(order({ content: 'a0', version: '1.2.2', revision: 3 })), removing).said, 'web Downgrade');
  assert.is(pass(all(older), pass(all(), removing)).said, 'web Downgrade');
  // What never was healthy is no reason.
  const failed = pass(all(order()), NO_RECORD, { done: FAILED });
  assert.is(pass(all(older), pass(all(), pass(all(remove), failed))).said, 'install web a0');
});

test('the first order of another hub is obeyed, whatever the hub before has ordered', () => {
  const before = pass(all(order(spec('3 a1 1.2.3'))), NO_RECORD);
  for (const text of ['1 a0 1.2.2', '3 b2 1.2.2']) {
    const next = order({ ...spec(text), hub: 'hub-2' });
    const after = pass(all(next), before, { hub: 'hub-2' });
    assert.is(after.said, `install web ${text.split(' ')[1]}`);
    const lower = order({ ...spec('4 a9 1.2.1'), hub: 'hub-2' });
    assert.is(pass(all(lower), after, { hub: 'hub-2' }).said, 'web Downgrade');
  }
});

test('an add-on can have the name of what every object has', () => {
  const one = order({}, 'constructor');
  const record = pass(all(one), NO_RECORD);
  assert.is(record.said, 'install constructor a1');
  assert.is(own(NO_RECORD, 'constructor'), undefined);
  assert.is(order({}, '__proto__').spec, undefined);
});

test('nothing waits for the time that it was before the clock was set back', () => {
  const orders = all(order());
  const failed = pass(orders, NO_RECORD, { now: 1e9, done: FAILED });
  assert.is(pass(orders, failed, { now: 1000 }).said, 'install web a1');
  const remove = all(order({ revision: 2, action: 'Remove', remove: { onFailure: 'Orphan' } }));
  const removing = pass(remove, pass(orders, NO_RECORD), { now: 1e9, done: FAILED });
  const back = pass(remove, removing, { now: 1000, done: FAILED });
  assert.is(back.said, 'remove web a1');
  assert.is(own(back, 'web')?.since, 1000);
});

test('a clock that was set forward ends no removal before its first try', () => {
  const remove = all(order({ revision: 2, action: 'Remove', remove: { onFailure: 'Orphan' } }));
  const begun = obey(remove, pass(all(order()), NO_RECORD), { now: 1000, hub: HUB, acceptOlder: false }).record;
  assert.is(pass(remove, begun, { now: 1e9 }).said, 'remove web a1');
});

test.run();
