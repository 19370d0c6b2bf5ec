/** How a running cluster loses one machine that a person names. Pure. */
import type { SeenCluster } from './cluster.ts';
import { chainOf, heldTurn, EMPTY_TURN, removalChain, PlanState, type Turn } from './plan-state.ts';
import { removeControlPlane, removeOrphan } from './control-plane.ts';

const REASON = 'requested';

/** The steps that are left, in their order. None where neither a Node nor a member of etcd has the name. */
export function removalTurns(seen: SeenCluster, name: string): Turn {
  const state = new PlanState({ name: '', version: '', machines: [] }, seen, {});
  const machine = state.machines.get(name);
  const isMember = state.members?.some((one) => one.name === name) === true;
  if (machine?.role === 'worker' && !isMember) return chainOf(removalChain(state, machine, REASON));
  if (state.members === undefined) return heldTurn(name, 'the members of etcd could not be listed');
  if (machine === undefined) return isMember ? removeOrphan(state, name) : EMPTY_TURN;
  return removeControlPlane(state, machine, REASON);
}
