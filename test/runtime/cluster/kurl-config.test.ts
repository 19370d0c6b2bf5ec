import { parseClusterRecords, withRecords } from '../../../src/runtime/cluster/cluster-records.ts';
import { adoptKurl, encodeEntry, withFacts } from '../../../src/runtime/cluster/kurl-config.ts';
import { settingsDigest } from '../../../src/runtime/plan/records.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('runtime/cluster: what ConfigMaps say');

const base64 = (text: string): string => Buffer.from(text).toString('base64');

test('an entry of the spec is written as kURL does: sorted, in one line, with the escapes of Go', () => {
  assert.is(encodeEntry({ version: 'latest' }), base64('{"version":"latest"}'));
  const entry = { version: '1', b: '<&>\u2028', a: { z: [1, true], y: 'ü' } };
  assert.is(
    encodeEntry(entry),
    base64('{"a":{"y":"ü","z":[1,true]},"b":"\\u003c\\u0026\\u003e\\u2028","version":"1"}'),
  );
});

test('of kURL is taken over what can be read, the newer word first, without secrets', () => {
  const { applied, adopted } = adoptKurl({
    current: { 'kurl-version': 'v1', 'addons-a': base64('{"version":"2","x":1}'), 'addons-b': 'no base64 of JSON' },
    last: {
      'addons-a': base64('{"version":"1"}'),
      'addons-c': base64('{"version":"3","s3Override":"https://u:p@h"}'),
      'addons-../x': base64('{"version":"3"}'),
      'addons-d': base64('{"version":"../3"}'),
      other: base64('{"version":"3"}'),
    },
    config: {
      pod_cidr: '10.0.0.0/20',
      bootstrap_token: 'x',
      bootstrap_token_expiration: 'x',
      cert_key: 'x',
      ca_hash: 'h',
    },
  });
  assert.equal(Object.keys(applied), ['a', 'c']);
  assert.equal(applied['a'], {
    version: '2',
    settings: settingsDigest({ x: 1 }),
    run: '00000000T000000Z-0000',
    finished: true,
  });
  assert.is(applied['c']?.settings, settingsDigest({}));
  assert.equal(adopted, { kurlVersion: 'v1', facts: { pod_cidr: '10.0.0.0/20', ca_hash: 'h' } });
});

test('facts stand in for variables that the spec leaves empty', () => {
  const facts = {
    pod_cidr: '10.0.0.0/20',
    service_cidr: '10.1.0.0/22',
    ha: 'true',
    kubernetes_cis_compliance: 'false',
  };
  const variables = [
    ['SERVICE_CIDR', '10.9.0.0/22'],
    ['HA_CLUSTER', ''],
    ['KUBERNETES_CIS_COMPLIANCE', ''],
  ] as const;
  assert.equal(Object.fromEntries(withFacts(variables, { kurlVersion: undefined, facts })), {
    SERVICE_CIDR: '10.9.0.0/22',
    HA_CLUSTER: '1',
    KUBERNETES_CIS_COMPLIANCE: '',
    POD_CIDR: '10.0.0.0/20',
  });
});

test('records come back as they were written; those of another cluster do not', () => {
  const record = { version: '1', settings: settingsDigest({}), run: '20261121T101500Z-3f2a', finished: true };
  const data = withRecords({ mine: 'kept', cluster: 'u' }, 'u', {
    applied: { a: record, b: record },
    loadBalancer: '10.0.0.9',
  });
  assert.is(data['mine'], 'kept');
  assert.equal(parseClusterRecords(data, 'u'), {
    applied: { a: record, b: record },
    adopted: undefined,
    loadBalancer: '10.0.0.9',
  });
  assert.is(parseClusterRecords(data, 'v'), undefined);
  const moved = withRecords(data, 'v', { applied: { c: record }, adopted: { kurlVersion: 'v1', facts: {} } });
  assert.equal(Object.keys(moved).toSorted(), ['addon.c', 'adopted', 'cluster', 'format']);
  const less = withRecords(data, 'u', { applied: { a: undefined } });
  assert.equal(Object.keys(parseClusterRecords(less, 'u')?.applied ?? {}), ['b']);
});

for (const [title, data] of [
  ['no format', { cluster: 'u' }],
  ['a value without end', { format: '1', cluster: 'u', 'addon.a': ' '.repeat(70_000) }],
  ['facts that are no texts', { format: '1', cluster: 'u', adopted: '{"facts":{"a":1}}' }],
] as const) {
  test(`${title} is damage`, () => {
    assert.throwsWith(() => parseClusterRecords(data, 'u'), 'CLUSTER_FAILED', /damaged/);
  });
}

test.run();
