import { writeFile } from 'node:fs/promises';
import type { HostFacts } from '../../src/machine/facts.ts';
import type { WrittenCluster, WrittenHost } from '../../src/machine/run/cluster-file.ts';
import type { ClusterLook } from '../../src/machine/run/look.ts';
import { perform } from '../../src/machine/run/perform.ts';
import { createKeyedMutex } from '../../src/platform/limit/keyed-mutex.ts';
import type { Ssh } from '../../src/ssh/ssh.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('steps of a plan on hosts');

test('a control plane without curlew gets the bundle before it removes the one that spoke', async () => {
  await using box = await tree();
  await writeFile(box.at('b.tar.gz'), '0123456789');
  const machines = ['cp1', 'cp2'].map((name) => {
    return { name, role: 'control-plane', ssh: { name, address: name, hostKey: 'x' }, machine: {} } as WrittenHost;
  });
  const cluster = { name: 'paris', machines } as unknown as WrittenCluster;
  const digest = `sha256:${'a'.repeat(64)}` as const;
  const remove = async (bundles: Readonly<Record<string, string>>): Promise<readonly string[]> => {
    const ran: string[] = [];
    const run: Ssh['run'] = async ({ name }, { script, operands = [] }) => {
      ran.push(
        `${name} ${script.includes('tar -xzf') ? 'unpack' : operands.includes('remove') ? 'remove' : ''}`.trim(),
      );
      return '';
    };
    const hosts = machines.map((host) => {
      return { host, facts: { isControlPlane: true, bundle: bundles[host.name] } as HostFacts };
    });
    const look = {
      hosts,
      extras: [],
      speaker: machines[0],
      seen: { complete: true, machines: [] },
    } as unknown as ClusterLook;
    const file = async () => ({ path: box.at('b.tar.gz'), digest, size: 10, whole: digest });
    const remote = { ssh: { run } as Ssh, signal: never };
    const scene = { cluster, look, remote, turns: createKeyedMutex(), ignore: [], file, report: noReport };
    await perform(scene, { host: 'cp1', phase: 'mark', reason: '', waits: [] });
    return ran;
  };
  assert.equal(await remove({ cp1: digest, cp2: digest }), ['cp2 remove']);
  assert.equal((await remove({ cp1: digest })).slice(-2), ['cp2 unpack', 'cp2 remove']);
});

test.run();
