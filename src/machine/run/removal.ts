/** Takes a node out of its cluster: no new pods, its pods elsewhere, its member of etcd, its Node. */
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Etcd } from '../../cluster/kube/etcd.ts';
import { deleteObject } from '../../cluster/kube/objects.ts';
import type { Phase, SeenMachine } from '../cluster.ts';
import { quorumAfter, survived, type EtcdMember } from '../etcd.ts';
import { removalTurns } from '../removal.ts';
import { EMPTY_TURN } from '../plan-state.ts';
import { drainNode, leftToDrain } from './drain.ts';
import { requireName } from './require-name.ts';
import { markLeaving, nodesAndMembers, uncordonNode, type NodeApi } from './nodes.ts';
import { NODES } from '../../cluster/kube/core-kinds.ts';

export interface NodeRemoval {
  readonly node: string;
  /** The steps that were done, or without `yes` would be. */
  readonly steps: readonly { readonly phase: Phase; readonly reason: string }[];
  /** Nothing is left to do. */
  readonly isDone: boolean;
  /** Names of the other nodes. */
  readonly others: readonly string[];
  readonly notes: readonly string[];
}

interface RemovalOptions {
  readonly yes: boolean;
  /** Time limit of the drain, in milliseconds. */
  readonly limitMs: number;
}

const TEXTS: Partial<Record<Phase, string>> = {
  mark: 'no new pods, also if this ends early: run it again, or kubectl uncordon',
  drain: 'evicting its pods',
  'remove-member': 'removing its member of etcd',
  'delete-node': 'deleting its Node',
};

/** Looks before each step, so that it continues whatever an attempt before it has left. `NOT_FOUND` if neither a Node nor a member of etcd has the name. */
export async function removeFrom(
  cluster: NodeApi & { readonly etcd: Etcd | undefined },
  node: string,
  { yes, limitMs }: RemovalOptions,
  { report, signal }: Pick<Context, 'report' | 'signal'>,
): Promise<NodeRemoval> {
  const { api, call, etcd } = cluster;
  const doing = `remove ${node}`;
  let first: SeenMachine | undefined;
  const perform = async (phase: Phase, ids: readonly string[]): Promise<void> => {
    if (phase === 'mark') await markLeaving(call, node, api.now());
    // A cordon of before stays, be it that of a person or of an attempt that has evicted pods.
    const release = first?.cordon === undefined ? async () => uncordonNode(call, node) : undefined;
    if (phase === 'drain') await drainNode(cluster, node, { limitMs, release, report, signal });
    if (phase === 'remove-member') for (const id of ids) await etcd?.remove(id);
    if (phase === 'delete-node') await deleteObject(call, NODES, { name: node });
  };
  const done: NodeRemoval['steps'][number][] = [];
  for (;;) {
    const { members, lost, ...seen } = await look(cluster, node);
    first ??= seen.machines.find(({ name }) => name === node);
    const isGone = done.some(({ phase }) => phase === 'delete-node');
    const { chains, held } = isGone ? EMPTY_TURN : removalTurns({ ...seen, members }, node);
    if (held[0] !== undefined) {
      const hint =
        members === undefined
          ? 'run it on a control plane, where kubeadm has made a member of etcd'
          : 'curlew reset removes the last control plane; repair or remove the others that are not healthy first';
      throw new CurlewError('CLUSTER_FAILED', `cannot ${doing}: ${held[0].reason}`, { hint });
    }
    // A step may leave something behind, such as a pod that tolerates everything: the next one does not wait for it.
    const remaining = (chains[0] ?? []).filter(({ phase }) => done.every((one) => one.phase !== phase));
    const steps = [...done, ...remaining.map(({ phase, reason }) => ({ phase, reason }))];
    const [next] = remaining;
    if (steps.length === 0) {
      const names = [...seen.machines, ...(members ?? [])].flatMap(({ name }) => (name === '' ? [] : [name]));
      requireName(node, [...new Set(names)], { doing, missing: 'the cluster has no such node' });
    }
    if (next === undefined || !yes) {
      const others = seen.machines.filter(({ name }) => name !== node);
      return {
        node,
        steps,
        isDone: next === undefined,
        others: others.map(({ name }) => name),
        notes: [...notesOf(first, members), ...(next === undefined ? [] : lost.map((text) => `will be lost: ${text}`))],
      };
    }
    const undo = next.phase === 'mark' ? ` ${node}` : '';
    report({ type: 'note', level: 'info', text: `${node}: ${TEXTS[next.phase] ?? next.phase}${undo}` });
    await perform(
      next.phase,
      (members ?? []).flatMap(({ id, name }) => (name === node ? [id] : [])),
    );
    done.push({ phase: next.phase, reason: next.reason });
  }
}

async function look(cluster: Parameters<typeof removeFrom>[0], node: string) {
  const { machines: nodes, members } = await nodesAndMembers(cluster.call, cluster.etcd);
  const isKnown = nodes.some(({ name, answers }) => name === node && answers);
  const pods = isKnown ? await leftToDrain(cluster, node) : undefined;
  const drained = pods !== undefined && pods.toEvict.length === 0 && pods.waiting.length === 0;
  const machines = nodes.map((one) => (one.name === node ? { ...one, drained } : one));
  return { complete: true, machines, members, lost: pods?.lost ?? [] };
}

function notesOf(machine: SeenMachine | undefined, members: readonly EtcdMember[] = []): readonly string[] {
  if (machine === undefined) return [];
  const { name, answers, role } = machine;
  const { voting } = quorumAfter(members, { remove: name });
  return [
    ...(answers ? [] : [`${name} does not answer, so its pods are not waited for: make sure that it is off`]),
    ...(role === 'control-plane' && voting > 0 && voting % 2 === 0
      ? [
          `etcd has ${voting} members without ${name}, and survives ${survived(voting)}, like ${voting - 1}: add a control plane`,
        ]
      : []),
  ];
}
