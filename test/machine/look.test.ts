import type { WrittenCluster, WrittenHost } from '../../src/machine/run/cluster-file.ts';
import { lookAt } from '../../src/machine/run/look.ts';
import type { Ssh } from '../../src/machine/ssh/ssh.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('what is seen of a cluster');

test('nodes that a control plane lists in another form are not read, and the field is named', async () => {
  await using box = await tree();
  const host = { name: 'cp1', role: 'control-plane', ssh: { name: 'cp1' }, machine: {} } as unknown as WrittenHost;
  const cluster = { name: 'paris', machines: [host], kubeconfig: box.at('conf') } as unknown as WrittenCluster;
  const facts = [
    'hostname=cp1',
    'machineId=1',
    'arch=x86_64',
    'memory=4000000',
    'part=kubelet.conf',
    'part=admin.conf',
  ];
  const more = [`authority=${'a'.repeat(64)}`, 'cluster=paris', 'bundle=sha256:b', ''];
  const seen = async (nodes: unknown) => {
    const run: Ssh['run'] = async (_, { script }) =>
      script.includes('--json') ? JSON.stringify(nodes) : [...facts, ...more].join('\n');
    const context = { signal: never, report: noReport, env: {}, cwd: box.path };
    return lookAt(cluster, { ssh: { run } as Ssh, bundle: undefined }, context);
  };
  const cp1 = { name: 'cp1', answers: true, joined: true, ready: true, role: 'control-plane', kubelet: 'v1.34.4' };
  const well = await seen({ machines: [{ ...cp1, later: 1 }], members: [{ name: 'cp1', healthy: true }] });
  assert.equal([well.refused, well.speaker?.name, well.seen.members], [[], 'cp1', [{ name: 'cp1', healthy: true }]]);
  for (const [nodes, problem] of [
    [{ machines: [{ ...cp1, kubelet: 5 }] }, 'machines[0].kubelet: not a string'],
    [{ machines: [cp1, null] }, 'machines[1]: not an object'],
    [{ machines: [cp1], members: [{ healthy: true }] }, 'members[0].name: missing'],
    [undefined, ''],
  ] as const) {
    const { held, speaker, seen: found } = await seen(nodes);
    assert.equal([speaker, found.complete], [undefined, false]);
    const said = 'it does not list the nodes of the cluster as this version reads them: ';
    assert.ok(held[0]?.reason.includes(`${said}${problem}`), held[0]?.reason);
  }
});

test.run();
