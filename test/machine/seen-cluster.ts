/** Clusters as they are desired and seen, for tests of plans. */
import type { DesiredCluster, Policy, SeenCluster, SeenMachine } from '../../src/machine/cluster.ts';
import { planCluster, type ClusterPlan } from '../../src/machine/plan.ts';

export const OLD = 'v1.30.2';
export const NEW = 'v1.31.4';

export function machine(name: string, more: Partial<SeenMachine> = {}): SeenMachine {
  const isControl = name.startsWith('cp');
  const role = isControl ? 'control-plane' : 'worker';
  const server = isControl ? { apiServer: OLD } : {};
  return { name, answers: true, joined: true, ready: true, cluster: 'shop', role, kubelet: OLD, ...server, ...more };
}

export function desired(names: readonly string[], more: Partial<DesiredCluster> = {}): DesiredCluster {
  const machines = names.map((name) => ({ name, role: name.startsWith('cp') ? 'control-plane' : 'worker' }) as const);
  return { name: 'shop', version: NEW, machines, ...more };
}

export function seen(machines: readonly SeenMachine[], more: Partial<SeenCluster> = {}): SeenCluster {
  const members = machines.filter(({ role }) => role === 'control-plane').map(({ name }) => ({ name, healthy: true }));
  return { complete: true, machines, members, ...more };
}

export function plan(names: string, machines: readonly SeenMachine[], policy: Policy = {}): ClusterPlan {
  return planCluster(desired(names.split(' ')), seen(machines), policy);
}

export function titles({ steps }: ClusterPlan): readonly string[] {
  return steps.map(({ phase, host, addon, to }) =>
    [phase, addon ?? host, to].filter((part) => part !== undefined).join(' '),
  );
}

export function reasons(found: ClusterPlan['held']): readonly string[] {
  return found.map(({ host, reason }) => (host === undefined ? reason : `${host}: ${reason}`));
}

export const THREE = ['cp0', 'cp1', 'cp2'].map((name) => machine(name));
