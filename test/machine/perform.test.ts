import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { HostFacts } from '../../src/machine/facts.ts';
import type { WrittenCluster, WrittenHost } from '../../src/machine/run/cluster-file.ts';
import { lookAt, type ClusterLook } from '../../src/machine/run/look.ts';
import { perform, recordBirths } from '../../src/machine/run/perform.ts';
import { createKeyedMutex } from '../../src/platform/limit/keyed-mutex.ts';
import type { Ssh } from '../../src/machine/ssh/ssh.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('steps of a plan on hosts');
const NONE = { runs: 0, unknown: new Map<string, number>() };

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
    const scene = {
      cluster,
      look,
      remote,
      turns: createKeyedMutex(),
      ignore: [],
      passed: NONE,
      file,
      move: async () => undefined,
      report: noReport,
    };
    await perform(scene, { host: 'cp1', phase: 'mark', reason: '', waits: [] });
    return ran;
  };
  assert.equal(await remove({ cp1: digest, cp2: digest }), ['cp2 remove']);
  assert.equal((await remove({ cp1: digest })).slice(-2), ['cp2 unpack', 'cp2 remove']);
});

test('the settings of a control plane that joins may take as long as kubeadm needs to upload the certificates', async () => {
  const machines = ['cp1', 'cp2'].map((name) => {
    return { name, role: 'control-plane', ssh: { name, address: name, hostKey: 'x' }, machine: {} } as WrittenHost;
  });
  const limits: (number | undefined)[] = [];
  const run: Ssh['run'] = async (_, { script, limitMs }) => {
    if (!script.includes('join-token')) return '';
    limits.push(limitMs);
    return 'spec:\n  kubernetes:\n    kubeadmToken: secret\n';
  };
  const scene = {
    cluster: { name: 'paris', machines, installer: {} },
    look: { hosts: machines.map((host) => ({ host })), extras: [], speaker: machines[0], seen: { machines: [] } },
    remote: { ssh: { run } as Ssh, signal: never },
    turns: createKeyedMutex(),
    ignore: [],
    passed: NONE,
    report: noReport,
  } as unknown as Parameters<typeof perform>[0];
  await perform(scene, { host: 'cp2', phase: 'join', reason: '', waits: [] });
  assert.equal(limits, [5 * 60_000]);
});

function verdict(outdated?: string): string {
  return JSON.stringify({
    apiVersion: 'provider.curlew.dev/v1',
    machines: [{ uid: 'paris/w1', address: '10.0.0.1', ssh: { hostKey: `SHA256:${'A'.repeat(43)}` }, outdated }],
    machine: { uid: 'paris/w1' },
  });
}

interface Lab extends Tree {
  readonly ssh: Ssh;
  /** Machines with this configuration, of a provider that says `answer`. */
  readonly clusterWith: (config: object) => WrittenCluster;
  /** Creates the machine; `exists`: its provider has it already. */
  readonly create: (exists?: boolean) => Promise<boolean>;
  readonly seen: (cluster: WrittenCluster) => Promise<readonly unknown[]>;
}

/** Its machine has the folder `there` for what curlew keeps on it. */
async function lab(): Promise<Lab> {
  const box = await tree({ lab: '#!/bin/sh\ncat >/dev/null; cat "$(dirname "$0")/answer"\n' });
  const run: Ssh['run'] = async (_, { script, operands: [, ...words] = [] }) => {
    if (script.includes('rm -f "$1/born"'))
      return execFileSync('sh', ['-c', script, 'sh', box.at('there'), ...words], { encoding: 'utf8' });
    const [mark] = (await readFile(box.at('there/born'), 'utf8').catch(() => '')).split(' ');
    const born = mark === '' ? [] : [`born=${mark} 1790000000`];
    return ['hostname=w1', 'machineId=1', 'arch=x86_64', ...born, ''].join('\n');
  };
  const ssh = { run } as Ssh;
  const by = { name: 'lab', program: box.at('lab'), env: {} };
  const clusterWith = (config: object): WrittenCluster => {
    const wanted = { uid: 'paris/w1', name: 'w1', role: 'worker', config };
    const host = { name: 'w1', role: 'worker', ssh: { name: 'w1' }, machine: {}, provided: { by, wanted } };
    return { name: 'paris', machines: [host], kubeconfig: box.at('conf') } as unknown as WrittenCluster;
  };
  const small = clusterWith({ size: 'small' });
  const context = { signal: never, report: noReport, env: {}, cwd: box.path };
  const create = async (exists = false): Promise<boolean> => {
    const look = { hosts: small.machines.map((host) => ({ host, exists })), extras: [], seen: { machines: [] } };
    const scene = { cluster: small, look, remote: { ssh, signal: never }, ignore: [], passed: NONE, report: noReport };
    return perform(scene as unknown as Parameters<typeof perform>[0], {
      host: 'w1',
      phase: 'create',
      reason: '',
      waits: [],
    });
  };
  const seen = async (cluster: WrittenCluster) => {
    const { seen: now, held } = await lookAt(cluster, { ssh, bundle: undefined }, context);
    return [now.machines[0]?.outdated, held.map(({ host, reason }) => `${host}: ${reason}`)];
  };
  return { ...box, ssh, clusterWith, create, seen };
}

/** What is seen of a machine that is outdated since it was new. */
function kept(box: Tree): readonly unknown[] {
  const reason = `the provider lab still calls it outdated after it was made new at 2026-09-21T14:13:20.000Z: old image: correct ${box.at('lab')}`;
  return [undefined, [`w1: ${reason}`]];
}

test('a machine that its provider calls outdated from the first moment on is replaced once', async () => {
  await using box = await lab();
  const { clusterWith, create, seen } = box;
  const small = clusterWith({ size: 'small' });
  await writeFile(box.at('answer'), verdict());
  assert.ok(await create());
  await mkdir(box.at('there'));
  await writeFile(box.at('answer'), verdict('old image'));
  assert.equal(await seen(small), ['old image', []]);
  // It was only stopped.
  assert.not.ok(await create(true));
  assert.equal(await seen(small), ['old image', []]);
  assert.ok(await create());
  assert.equal(await seen(small), kept(box));
  // It was told something else since, or says something else.
  assert.equal(await seen(clusterWith({ size: 'large' })), ['old image', []]);
  await writeFile(box.at('answer'), verdict('old disk'));
  assert.equal(await seen(small), ['old disk', []]);
});

test('a machine whose creation was cut before it had an address is new, and what its provider says then is recorded', async () => {
  await using box = await lab();
  await writeFile(box.at('answer'), verdict('old image'));
  assert.ok(await box.create(true));
  assert.equal(await box.seen(box.clusterWith({ size: 'small' })), kept(box));
  await writeFile(box.at('answer'), verdict('old disk'));
  assert.not.ok(await box.create(true));
});

test('what a provider says of a new machine only after it has joined is not recorded as from its beginning', async () => {
  await using box = await lab();
  await writeFile(box.at('answer'), verdict());
  await box.create();
  await writeFile(box.at('answer'), verdict('old image'));
  const cluster = box.clusterWith({ size: 'small' });
  const look = await lookAt(
    cluster,
    { ssh: box.ssh, bundle: undefined },
    { signal: never, report: noReport, env: {}, cwd: box.path },
  );
  const record = async (joined: boolean): Promise<void> => {
    const machines = look.seen.machines.map((one) => ({ ...one, joined }));
    await recordBirths(
      { ssh: box.ssh, signal: never },
      { ...look, seen: { ...look.seen, machines } },
      { born: new Set(['w1']), report: noReport },
    );
  };
  await record(true);
  assert.equal(await box.seen(cluster), ['old image', []]);
  await record(false);
  assert.equal(await box.seen(cluster), kept(box));
});

test.run();
