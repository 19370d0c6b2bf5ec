/** A real API server takes the kinds of a hub, refuses objects that break their rules, and shows them to kubectl. */
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import * as assert from '../support/assert.ts';
import { hubAddon, hubChannel, hubChart, hubCluster, hubClusterAddon } from '../support/hub-objects.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/hub-manifests', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

const WINDOW = { cron: '0 22 * * 1-5', duration: '4h' };
const GROUPS = [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }];
const HASH = `sha256:${'0'.repeat(64)}`;
const ENTRY = { name: 'net', version: '1.0.0', manifest: 'https://example.com/net.yaml', hash: HASH };
const REPOSITORY = { repoURL: 'https://charts.example.com', name: 'web' };

const GOOD: readonly (readonly [string, object])[] = [
  ['a cluster', hubCluster('paris', { env: 'prod' }, { paused: true, windows: [WINDOW] })],
  ['a cluster with its kubeconfig', hubCluster('rome', {}, { access: { kubeconfigSecret: 'rome-kubeconfig' } })],
  ['a chart', hubAddon('web')],
  ['what is adopted', hubAddon('own', { adopt: true, drift: 'Revert' })],
  ['a manifest', hubAddon('net', { source: { manifest: 'https://example.com/net.yaml', hash: HASH } })],
  ['a package', hubAddon('node', { source: { package: { name: 'node', version: '1.0.0', hash: HASH } } })],
  [
    'a whole rollout',
    hubAddon('all', {
      config: { default: { a: { b: 1 } }, groups: [{ selector: { matchLabels: { a: 'b' } }, values: { c: [1] } }] },
      rollout: {
        type: 'Progressive',
        groups: GROUPS,
        mandatoryDecisionGroups: [{ groupName: 'canary' }],
        approval: ['canary'],
        maxConcurrency: '25%',
        maxFailures: 2,
        minSuccessTime: '10m',
      },
      remove: { onFailure: 'Orphan', timeout: '10m' },
    }),
  ],
  ['values of a Secret', hubAddon('w', { valuesSecret: { name: 'web', key: 'values' } })],
  [
    'values of each cluster, of both kinds of objects',
    hubAddon('y', {
      valuesConfigMap: { name: 'web', perCluster: true },
      valuesSecret: { name: 'web', perCluster: true },
    }),
  ],
  [
    'a channel',
    hubChannel('stable', [
      { ...ENTRY, kubernetesVersion: '>=1.30.0 <1.33.0' },
      { name: 'web', version: '1.4.0', chart: REPOSITORY },
      { name: 'node', version: '2.8.1', package: 'node-2.8.1.tar.gz', hash: HASH },
    ]),
  ],
  [
    'a channel of a thousand entries',
    hubChannel(
      'large',
      Array.from({ length: 1000 }, () => ENTRY),
    ),
  ],
  [
    'values of a Secret for charts of a channel',
    hubAddon('v', { source: { channel: { name: 'stable' } }, valuesSecret: { name: 'web' } }),
  ],
  ['an entry of a channel', hubAddon('from', { source: { channel: { name: 'stable', addon: 'net' } } })],
  ['what a cluster gets', hubClusterAddon('web', 'paris')],
];

const BAD: readonly (readonly [string, object, RegExp])[] = [
  ['no source', hubAddon('x', { source: {} }), /exactly one of manifest, chart, package, template and channel/],
  [
    'two sources',
    hubAddon('x', { source: { ...hubChart(), manifest: 'https://example.com/x', hash: HASH } }),
    /exactly one of/,
  ],
  [
    'a manifest without digest',
    hubAddon('x', { source: { manifest: 'https://example.com/x' } }),
    /a manifest needs its hash/,
  ],
  [
    'a manifest over http',
    hubAddon('x', { source: { manifest: 'http://example.com/x', hash: HASH } }),
    /source.manifest/,
  ],
  [
    'a chart in two places',
    hubAddon('x', { source: { chart: { repoURL: 'https://a.io/', oci: 'oci://a.io/b', name: 'c', version: '1' } } }),
    /write repoURL and name, or oci/,
  ],
  [
    'values of a Secret for what is no chart',
    hubAddon('x', { source: { manifest: 'https://example.com/x', hash: HASH }, valuesSecret: { name: 'x' } }),
    /valuesSecret is for a chart/,
  ],
  [
    'values of a ConfigMap for what is no chart',
    hubAddon('x', { source: { manifest: 'https://example.com/x', hash: HASH }, valuesConfigMap: { name: 'x' } }),
    /valuesConfigMap is for a chart/,
  ],
  [
    'a channel with a digest',
    hubAddon('x', { source: { channel: { name: 'stable' }, hash: HASH } }),
    /the hash of an entry is in its Channel/,
  ],
  [
    'more entries than a channel may have',
    hubChannel(
      'x',
      Array.from({ length: 1001 }, () => ENTRY),
    ),
    /at most 1000 items/,
  ],
  ['an entry without digest', hubChannel('x', [{ ...ENTRY, hash: undefined }]), /need their hash/],
  [
    'an archive of a chart without digest',
    hubChannel('x', [{ name: 'x', version: '1.0.0', chart: { package: 'https://example.com/x.tgz' } }]),
    /need their hash/,
  ],
  ['an entry with two contents', hubChannel('x', [{ ...ENTRY, chart: REPOSITORY }]), /exactly one of manifest, chart/],
  ['a path in a channel', hubChannel('x', [{ ...ENTRY, manifest: 'net.yaml' }]), /addons\[0\].manifest/],
  ['a version that is none', hubChannel('x', [{ ...ENTRY, version: 'latest' }]), /addons\[0\].version/],
  [
    'a package of another version',
    hubChannel('x', [{ name: 'x', version: '1.0.0', package: 'x-1.0.1.tar.gz', hash: HASH }]),
    /a package is named by the version of its entry/,
  ],
  [
    'a field that only files have',
    hubChannel('x', [{ ...ENTRY, prune: 'auto' }]),
    /unknown field "spec.addons\[0\].prune"/,
  ],
  ['an empty selector', hubAddon('x', { clusterSelector: {} }), /would select every cluster/],
  [
    'an operator without values',
    hubAddon('x', { clusterSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } }),
    /In and NotIn need values/,
  ],
  [
    'an unknown mandatory group',
    hubAddon('x', { rollout: { groups: GROUPS, mandatoryDecisionGroups: [{ groupName: 'first' }] } }),
    /mandatoryDecisionGroups names a group that groups does not have/,
  ],
  ['an approval of nothing', hubAddon('x', { rollout: { approval: ['first'] } }), /approval names a group/],
  ['a size that is none', hubAddon('x', { rollout: { maxConcurrency: 'all' } }), /maxConcurrency/],
  ['a time that is none', hubAddon('x', { rollout: { minSuccessTime: '5 min' } }), /minSuccessTime/],
  ['a name that is too long', hubAddon('x'.repeat(54)), /metadata.name/],
  ['a kubeconfig', hubCluster('rome', {}, { access: { kubeconfig: 'rome' } }), /spec.access/],
  ['an unknown field', hubAddon('x', { rollouts: {} }), /unknown field "spec.rollouts"/],
  ['an action that is none', hubClusterAddon('x', 'paris', { action: 'Purge' }), /action/],
  [
    'removal options of an installation',
    hubClusterAddon('x', 'paris', { remove: { timeout: '5m' } }),
    /only for action/,
  ],
];

if (reason === undefined) {
  let server: ApiServer;
  const create = async (object: object, verb = 'create'): Promise<string> =>
    server.kubectl([verb, '-f', '-'], JSON.stringify(object));
  const failure = async (object: object, verb?: string): Promise<string> =>
    create(object, verb).then(
      () => 'accepted',
      (error: unknown) => String(error),
    );

  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
    for (const object of hubManifests({ image: 'registry.example.com/curlew:1' })) await create(object, 'apply');
    await server.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
    for (const name of ['paris', 'rome']) await server.kubectl(['create', 'namespace', `fleet-${name}`]);
  });
  test.after(opened.close);

  for (const [title, object] of GOOD)
    test(`${title} is accepted`, async () => assert.match(await create(object), /created/));

  for (const [title, object, message] of BAD)
    test(`${title} is refused`, async () => assert.match(await failure(object), message));

  test('a revision only grows, and other content needs a new one', async () => {
    const changed = { specHash: 'b2' };
    assert.match(await failure(hubClusterAddon('web', 'paris', changed), 'apply'), /needs a new revision/);
    assert.match(await create(hubClusterAddon('web', 'paris', { ...changed, revision: 3 }), 'apply'), /configured/);
    assert.match(await failure(hubClusterAddon('web', 'paris', { revision: 2 }), 'apply'), /only grows/);
  });

  test('kubectl shows add-ons of clusters with version, action and state, and waits for their conditions', async () => {
    const status = {
      applied: { revision: 3, hash: 'b2' },
      state: 'Failed',
      reason: 'HelmFailed',
      since: '2026-01-02T03:04:05Z',
      conditions: [
        { type: 'Available', status: 'True', reason: 'Healthy', lastTransitionTime: '2026-01-02T03:04:05Z' },
      ],
    };
    const at = ['clusteraddons', 'web', '-n', 'fleet-paris'];
    await server.kubectl(['patch', ...at, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })]);
    const [head = '', first = ''] = (await server.kubectl(['get', 'clusteraddons', '-A'])).split('\n');
    assert.match(head, /^NAMESPACE +NAME +VERSION +REVISION +APPLIED +ACTION +STATE +REASON +SINCE +AGE$/);
    assert.match(first, /^fleet-paris +web +1\.2\.3 +3 +3 +Install +Failed +HelmFailed +\S+ +\S+$/);
    await server.kubectl(['wait', '--for=condition=Available', ...at, '--timeout=10s']);
    assert.match(await server.kubectl(['get', 'fleet', '-A']), /fleetaddon.fleet.curlew.dev\/web/);
    assert.match(await server.kubectl(['explain', 'fleetaddon.spec.rollout.maxRemovals']), /Most removals without/);
  });
} else test.skip('kinds of a hub', reason);

test.run();
