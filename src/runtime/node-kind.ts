/** What kind of run a node needs. Pure. */
import { CurlewError } from '../core/errors.ts';
import { isContainerRuntime } from './hooks.ts';
import type { SpecKind } from './plan.ts';
import type { Records } from './records.ts';

/**
 * A run of this kind on a node with these records: the node that add-ons were installed from is upgraded by an install, since
 * only that applies them. Throws `USAGE` where such a node is to join.
 */
export function kindOnNode(asked: SpecKind, { applied }: Pick<Records, 'applied'>): SpecKind {
  // Every kind of run installs the container runtime.
  const installed = Object.entries(applied).filter(
    ([name, { by }]) => by === 'install' && !isContainerRuntime({ name }),
  );
  const [first] = installed;
  if (asked === 'install' || first === undefined) return asked;
  if (asked === 'upgrade') return 'install';
  const [name, { version }] = first;
  throw new CurlewError('USAGE', `curlew join: ${name} ${version} was installed from this node, so it cannot join`, {
    hint: 'curlew upgrade applies a newer bundle; curlew reset removes what is installed',
  });
}
