import { parseRange } from '../../../src/cluster/channel/range.ts';
import { Contents, Memo, mergeValues, revisionOf } from '../../../src/fleet/rollout/content.ts';
import type { Cluster, ClusterAddon, FleetAddon, Values } from '../../../src/fleet/rollout/fleet.ts';
import { specHash } from '../../../src/fleet/rollout/spec-hash.ts';
import * as assert from '../../support/assert.ts';
import { addon, cluster } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/content');

test('a later layer wins in each field of a map, replaces lists, and keeps null, by which helm deletes a default', () => {
  const layers = [
    { mtu: 1350, dns: { servers: ['a', 'b'], cache: 1 }, probe: { port: 1 } },
    { dns: { servers: ['c'], cache: null }, probe: null, log: { level: null } },
    { mtu: 1400, probe: { path: '/' } },
  ];
  assert.equal(mergeValues(layers), {
    mtu: 1400,
    dns: { servers: ['c'], cache: null },
    probe: { path: '/' },
    log: { level: null },
  });
});

test('null in any layer is content: a change to it is an update, and begins a rollout', () => {
  const content = (config: FleetAddon['config'], own?: Values) => {
    const web = addon('web', { valuesTemplate: 'b: null', ...(config && { config }) });
    const record = own && ({ config: own, spec: {} } as ClusterAddon);
    return new Contents(web, new Memo()).contentOf(cluster('lyon'), record);
  };
  const groups = (values: Values) => ({ groups: [{ selector: {}, values }] });
  const layered = content({ default: { a: null }, ...groups({ c: { d: null } }) }, { e: null });
  assert.equal(typeof layered === 'string' ? layered : layered.values, { a: null, c: { d: null }, b: null, e: null });
  const hashes = [content(undefined), content({ default: { a: null } }), content(groups({ a: { b: null } }))];
  assert.is(new Set(hashes.map((one) => (typeof one === 'string' ? one : one.specHash))).size, 3);
  const revisions = [{ default: {} }, { default: { a: null } }].map((config) => revisionOf(addon('web', { config })));
  assert.is(new Set(revisions).size, 2);
});

/** Values of a template on a cluster with these fields, or why there are none. */
function rendered(valuesTemplate: string, more: Partial<Cluster> = {}, compat?: FleetAddon['compat']) {
  const web = addon('web', { valuesTemplate, ...(compat && { compat }) });
  const content = new Contents(web, new Memo()).contentOf(cluster('lyon', more), undefined);
  return typeof content === 'string' ? content : content.values;
}

test('labels and annotations that a cluster lacks are no error in a template, and other names are', () => {
  const object = { metadata: { name: 'lyon', labels: { tier: '1' } }, spec: { clusterNetwork: {} } };
  const template = `size: {{ .Cluster.metadata.labels.size | default "small" }}
{{ with .Cluster.metadata.labels }}tier: {{ .tier }}{{ .Zone }}{{ end }}
foo: {{ if .Cluster.metadata.annotations.foo }}1{{ else }}2{{ end }}
own: {{ .Cluster.labels.own }}
`;
  const values = { size: 'small', tier: '1<no value>', foo: 2, own: '<no value>' };
  assert.equal(rendered(template, { object }), values);
  const start = 'cannot render the values: unknown field';
  assert.is(rendered('a: {{ .Cluster.metadata.lables.a }}', { object }), `${start} .lables: did you mean .labels?`);
  assert.is(rendered('a: {{ .Cluster.spec.clusterNetwork.pods }}', { object }), `${start} .pods`);
});

test('by the rules of the Helm add-on provider no name of an object must be there', () => {
  const object = { metadata: { name: 'lyon' }, spec: { clusterNetwork: {} } };
  const template = 'a: {{ .Cluster.spec.clusterNetwork.pods.cidrBlocks }}\nb: {{ .Cluster.status | default "none" }}';
  assert.equal(rendered(template, { object }, 'caaph'), { a: '<no value>', b: 'none' });
  const without = rendered('a: {{ .ControlPlane.spec.replicas }}', { object }, 'caaph');
  assert.match(typeof without === 'string' ? without : '', 'unknown field .ControlPlane');
});

test('names of fields as Go has them are refused, with those of YAML', () => {
  const object = { metadata: { name: 'lyon' }, spec: { clusterNetwork: { pods: { cidrBlocks: ['10.0.0.0/8'] } } } };
  const why = 'cannot render the values: unknown field .Spec: names are as in YAML:';
  for (const compat of ['native', 'caaph'] as const) {
    assert.is(
      rendered('a: {{ index .Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks 0 }}', { object }, compat),
      `${why} .Cluster.spec.clusterNetwork.pods.cidrBlocks`,
    );
    assert.is(rendered('{{ with .Cluster }}a: {{ .Spec.APIURL }}{{ end }}', { object }, compat), `${why} .spec.apiurl`);
  }
});

test('keys that every JavaScript object has are values like others', () => {
  const hostile = JSON.parse('{"__proto__": {"a": 1}, "constructor": {"b": 2}}') as Record<string, unknown>;
  const merged = mergeValues([{}, hostile]);
  assert.equal(Object.keys(merged), ['__proto__', 'constructor']);
  assert.is((merged as { readonly a?: number }).a, undefined);
});

test('the hash does not depend on the order of keys, and has all digits of large numbers', () => {
  assert.is(specHash({ spec: { a: 1, b: 2 } }), specHash({ status: {}, spec: { b: 2, a: 1 } }));
  // The text is {"spec":{"10":1,"9":2}}. JavaScript itself puts such keys in the order of their numbers.
  assert.is(specHash({ spec: { 9: 2, 10: 1 } }), '8427a3e159a77cd82a833497a68e506dbaa5315947030af465d368c61d2f66ce');
  assert.not(specHash({ spec: 9007199254740993n }) === specHash({ spec: 9007199254740992n }));
});

test('the revision of a channel has its ranges as text, so that another parser begins no rollout', () => {
  const revision = (text: string, isRead: boolean): string => {
    const range = isRead ? parseRange(text, 'native').range : undefined;
    const entry = { name: 'net', version: '1.0.0', kubernetesVersion: text, range, content: { manifest: 'a' } };
    return revisionOf(addon('net', { source: { channel: [entry], addon: 'net' } }));
  };
  const text = '>=1.30.0 <1.32.0';
  assert.is(revision(text, true), revision(text, false));
  assert.is(revision('1.31.x || >=1.30.0 <1.31.7', true), revision(text, true));
  assert.not(revision('>=1.30.0 <1.33.0', true) === revision(text, true));
});

test.run();
