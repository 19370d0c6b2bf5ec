/** What the controller does about an add-on on a cluster that it delivers to, by what the cluster says. */
import type { LiveState } from '../../../src/cluster/channel/pass.ts';
import { recordKey, type AddonRecord } from '../../../src/cluster/channel/record.ts';
import type { Reply } from '../../../src/fleet/fleet.ts';
import type { Window } from '../../../src/fleet/rollout/windows.ts';
import { readClusterAddon, readFleetAddon, type Live } from '../../../src/fleet/hub/observe.ts';
import { jobOrReport } from '../../../src/fleet/hub/push.ts';
import * as assert from '../../support/assert.ts';
import { hubAddon, hubClusterAddon } from '../../support/hub-objects.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/push');
const SINCE = '2026-01-02T03:04:05Z';

function live(object: object, annotations: Waits['annotations'] = {}): Live {
  const { metadata, ...others } = object as { readonly metadata: { readonly name: string } };
  const base = { labels: {}, annotations, finalizers: [], uid: 'u', resourceVersion: '1', generation: 1 };
  return { ...others, metadata: { ...base, ...metadata } };
}

interface Waits {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly rollout?: object;
  readonly windows?: readonly Window[];
}

/** The add-on `web`, settled on `oslo`, and what a look makes of it whose records are `names` and whose objects are in this state. */
function settled(drift?: string, { annotations = {}, ...waits }: Waits = {}) {
  const spec = { ...(drift !== undefined && { drift }), ...(waits.rollout && { rollout: waits.rollout }) };
  const from = readFleetAddon(live(hubAddon('web', spec), annotations));
  const object = hubClusterAddon('web', 'oslo') as { readonly spec: { readonly specHash: string } };
  const applied = { revision: 1, hash: object.spec.specHash };
  const own = readClusterAddon(live({ ...object, status: { applied, state: 'Succeeded', since: SINCE } }))?.record;
  const release = { namespace: 'web', name: 'web' };
  const recordOf = (name: string): AddonRecord => {
    const fields = { addon: name, namespace: 'kube-system', owner: `fleet:${name}`, reason: '', history: [] };
    return { ...fields, state: 'Succeeded', since: SINCE, release, applied: { id: applied.hash } };
  };
  return (state: LiveState, ...names: readonly string[]): unknown => {
    const records = new Map(names.map((name) => [name, recordOf(name)]));
    const facts = { annotations: new Map(), records, installer: new Set<string>() };
    const seen = new Map([[recordKey('kube-system', 'web'), state]]);
    const look: Reply = { server: '', kubernetes: 'v1.34.1', facts, live: seen, warnings: [] };
    return own && jobOrReport(own, look, from, { now: 0, windows: waits.windows });
  };
}

test('a release that passes to another add-on is neither restored nor called changed', () => {
  const look = settled('Revert');
  const changed: LiveState = { missing: [], changed: ['ConfigMap a'] };
  assert.is((look(changed, 'web') as { readonly act: string }).act, 'restore');
  assert.equal(look(changed, 'web', 'next'), { state: 'Succeeded', orphans: [] });
});

test('what is to return waits for the end of a pause, and for the windows of the add-on and the cluster, and says so', () => {
  const missing: LiveState = { missing: ['ConfigMap a'], changed: [] };
  const closed = { windows: [{ cron: '0 3 * * *', duration: '1h' }] };
  const waits = (reason: string, message: string): object => ({ state: 'Succeeded', reason, message, orphans: [] });
  const paused = settled('Revert', { annotations: { 'fleet.curlew.dev/pause': 'true' } });
  assert.equal(paused(missing, 'web'), waits('Paused', 'missing: ConfigMap a'));
  const why = 'no maintenance window is open';
  assert.equal(settled(undefined, closed)(missing, 'web'), waits('Window', `missing: ConfigMap a; ${why}`));
  const changed: LiveState = { missing: [], changed: ['ConfigMap a'] };
  assert.equal(
    settled('Revert', { rollout: closed })(changed, 'web'),
    waits('Window', `changed by others: ConfigMap a; ${why}`),
  );
  const open = { windows: [{ cron: '0 0 * * *', duration: '1h' }] };
  assert.is((settled('Revert', { ...open, rollout: open })(changed, 'web') as { readonly act: string }).act, 'restore');
});

test('what others have added and a restoration leaves is said, and no failure', () => {
  const port = 'Service web/web: port 81 of kubectl-patch';
  const added = { missing: [], changed: [], added: [port] };
  const message = `added by others, and stays: ${port}`;
  assert.equal(settled('Revert')(added, 'web'), { state: 'Succeeded', reason: 'Added', message, orphans: [] });
  assert.equal(settled()(added, 'web'), { state: 'Succeeded', orphans: [] });
  const changed = settled('Revert')({ ...added, changed: ['ConfigMap a'] }, 'web');
  assert.is((changed as { readonly act: string }).act, 'restore');
});

test.run();
