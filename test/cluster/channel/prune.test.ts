import { isBare, parseSelector, protection, prune } from '../../../src/cluster/channel/prune.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/prune');

const KIND = { group: '', kind: 'ConfigMap', namespaces: [], labelSelector: '', fieldSelector: '' };
const object = (
  kind: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
  namespace = 'kube-system',
) => ({
  apiVersion: 'v1',
  kind,
  namespace,
  name,
  labels,
});

test('a label selector means what it means to Kubernetes', () => {
  const labels = { app: 'web', tier: '' };
  const matches = (selector: string): boolean | undefined => parseSelector(selector)?.every((one) => one(labels));
  for (const selector of [
    'app=web',
    'app == web',
    'app!=db',
    'app in (db, web)',
    'app notin (db)',
    'app',
    '!zone',
    'tier=',
    'zone!=a',
    'app=web,!zone',
    'example.com/a notin (b)',
    ' ',
  ]) {
    assert.is(matches(selector), true, selector);
  }
  for (const selector of ['app=db', 'app!=web', 'app notin (web)', '!app', 'zone', 'zone in (a,b)', 'app=web,zone']) {
    assert.is(matches(selector), false, selector);
  }
  for (const selector of ['app=a b', 'app in web', ',', 'app=web,', '=web', 'a>1', `a=${'b'.repeat(9000)}`]) {
    assert.is(matches(selector), undefined, selector);
  }
});

test('only a kind without any selector and namespace selects the whole cluster', () => {
  assert.equal(
    [isBare(KIND), isBare({ ...KIND, labelSelector: 'app' }), isBare({ ...KIND, namespaces: ['web'] })],
    [true, false, false],
  );
});

test('records of curlew and of Helm, and what Kubernetes itself creates, are never pruned', () => {
  const kept = [
    object('ConfigMap', 'curlew-addons'),
    object('Lease', 'curlew-addons'),
    object('ConfigMap', 'curlew-records', {}, 'kurl'),
    object('Namespace', 'kurl'),
    object('Secret', 'sh.helm.release.v1.web.v3'),
    object('ConfigMap', 'web.v3', { owner: 'helm' }),
    object('ConfigMap', 'kube-root-ca.crt', {}, 'web'),
    object('ClusterRole', 'edit', { 'kubernetes.io/bootstrapping': 'rbac-defaults' }),
  ];
  assert.equal(
    kept.map(protection).filter((why) => why === undefined),
    [],
  );
  const kinds = [...new Set(kept.map(({ kind }) => kind))].map((kind) => ({ ...KIND, kind }));
  const old = object('ConfigMap', 'old');
  assert.equal(prune({ kinds, keptKeys: new Set() }, [...kept, old, object('ConfigMap', 'curlew-addons', {}, 'web')]), [
    object('ConfigMap', 'curlew-addons', {}, 'web'),
    old,
  ]);
});

test('a selector that cannot be read selects nothing', () => {
  assert.equal(
    prune({ kinds: [{ ...KIND, labelSelector: 'a b' }], keptKeys: new Set() }, [object('ConfigMap', 'old')]),
    [],
  );
});

test.run();
