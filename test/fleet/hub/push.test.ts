/** What the controller does about an add-on on a cluster that it delivers to, by what the cluster says. */
import { recordKey, type AddonRecord } from '../../../src/cluster/channel/record.ts';
import type { Reply } from '../../../src/fleet/fleet.ts';
import { readClusterAddon, readFleetAddon, type Live } from '../../../src/fleet/hub/observe.ts';
import { jobOrReport } from '../../../src/fleet/hub/push.ts';
import * as assert from '../../support/assert.ts';
import { hubAddon, hubClusterAddon } from '../../support/hub-objects.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/push');
const SINCE = '2026-01-02T03:04:05Z';

function live(object: object): Live {
  const { metadata, ...others } = object as { readonly metadata: { readonly name: string } };
  const base = { labels: {}, annotations: {}, finalizers: [], uid: 'u', resourceVersion: '1', generation: 1 };
  return { ...others, metadata: { ...base, ...metadata } };
}

test('a release that passes to another add-on is neither restored nor called changed', () => {
  const { addon, drift, origin } = readFleetAddon(live(hubAddon('web', { drift: 'Revert' })));
  const object = hubClusterAddon('web', 'oslo') as { readonly spec: { readonly specHash: string } };
  const applied = { revision: 1, hash: object.spec.specHash };
  const own = readClusterAddon(live({ ...object, status: { applied, state: 'Succeeded', since: SINCE } }))?.record;
  const release = { namespace: 'web', name: 'web' };
  const recordOf = (name: string): AddonRecord => {
    const fields = { addon: name, namespace: 'kube-system', owner: `fleet:${name}`, reason: '', history: [] };
    return { ...fields, state: 'Succeeded', since: SINCE, release, applied: { id: applied.hash } };
  };
  const need = (...names: readonly string[]): unknown => {
    const records = new Map(names.map((name) => [name, recordOf(name)]));
    const facts = { annotations: new Map(), records, installer: new Set<string>() };
    const changed = new Map([[recordKey('kube-system', 'web'), { missing: [], changed: ['ConfigMap a'] }]]);
    const look: Reply = { server: '', kubernetes: 'v1.34.1', facts, live: changed, warnings: [] };
    return own && jobOrReport(own, look, { addon, drift, origin }, 0);
  };
  assert.is((need('web') as { readonly act: string }).act, 'restore');
  assert.equal(need('web', 'next'), { state: 'Succeeded', orphans: [] });
});

test.run();
