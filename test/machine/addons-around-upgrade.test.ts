/** Add-ons that do not fit the next version of Kubernetes, in plans of a cluster of a file. */
import type { SeenAddon } from '../../src/machine/cluster.ts';
import type { WrittenCluster, WrittenHost } from '../../src/machine/run/cluster-file.ts';
import type { BundleFacts, ClusterLook } from '../../src/machine/run/look.ts';
import { planOf } from '../../src/machine/run/planned-cluster.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('add-ons around an upgrade');
const [OLD, NEW] = ['v1.36.3', 'v1.37.2'] as const;
const bundle: BundleFacts = { digest: 'sha256:b', size: 1, arch: 'x86_64', kubernetes: NEW };

const ssh = { name: 'cp1', address: '10.0.0.1', hostKey: 'x' };
const machine: WrittenHost = {
  name: 'cp1',
  role: 'control-plane',
  address: '10.0.0.1',
  ssh,
  machine: { name: 'cp1', role: 'control-plane', address: '10.0.0.1', ssh: { hostKey: 'x' } },
};
const cluster: WrittenCluster = {
  name: 'paris',
  version: NEW,
  machines: [machine],
  file: '/paris.yaml',
  kubeconfig: '/paris.conf',
  installer: {},
};

/** The only machine of the cluster, with add-ons of channels. */
function look(version: string, addons: Readonly<Record<string, SeenAddon>> = {}): ClusterLook {
  const seen = {
    name: 'cp1',
    role: 'control-plane',
    answers: true,
    joined: true,
    ready: true,
    kubelet: version,
    apiServer: version,
    cluster: 'paris',
    images: [NEW],
  } as const;
  return {
    hosts: [{ host: machine }],
    extras: [],
    held: [],
    seen: {
      complete: true,
      machines: [seen],
      members: [{ name: 'cp1', healthy: true }],
      addons: new Map(Object.entries(addons)),
    },
    refused: [],
    isListed: true,
    speaker: machine,
    silent: undefined,
    busy: [],
    unasked: [],
  };
}

test('a package of the bundle that is not for its Kubernetes is refused by its range, before anything is sent', () => {
  const ranges = [
    { name: 'flannel', version: '0.28.10', range: '>=1.30.0' },
    { name: 'dns', version: '1.0.0', range: '<1.37.0' },
  ];
  const { steps, refused } = planOf(cluster, look(OLD), { ...bundle, ranges });
  assert.equal(steps, []);
  assert.equal(refused, [
    {
      reason:
        'the bundle has dns 1.0.0, which is for Kubernetes <1.37.0, and not for v1.37.2: use one with a version of dns that is',
    },
  ]);
});

test('add-ons of channels that nobody has named are said to be unchecked, where a minor version is passed', () => {
  const addons = { dns: { version: '1.0.0', channel: 'https://addons.example/stable.yaml' } };
  const { steps, held } = planOf(cluster, look(OLD, addons), bundle);
  assert.ok(steps.some(({ phase }) => phase === 'upgrade'));
  assert.equal(held, [
    {
      reason:
        'dns 1.0.0 may not be for v1.37.2: --channel https://addons.example/stable.yaml checks it, and moves it where it must',
    },
  ]);
  assert.equal(planOf(cluster, look(OLD, addons), bundle, { channels: { entries: [] } }).held, []);
  assert.equal(planOf(cluster, look('v1.37.1', addons), bundle).held, []);
  assert.equal(planOf(cluster, look(NEW, addons), bundle).held, []);
});

test.run();
