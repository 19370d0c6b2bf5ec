/** Labels and taints that a node does not have as its file says. Pure. */
import type { DesiredMachine, SeenMachine } from './cluster.ts';

/** `KEY=VALUE` of labels, and `KEY=VALUE:EFFECT` of taints; none where those of the node are not known. */
export function missingMarks(
  { labels = {}, taints = [] }: Pick<DesiredMachine, 'labels' | 'taints'>,
  node: Pick<SeenMachine, 'labels' | 'taints'>,
): readonly string[] {
  const { labels: own, taints: ownTaints } = node;
  const missing = Object.entries(labels).filter(([key, value]) => own !== undefined && own[key] !== value);
  return [
    ...missing.map(([key, value]) => `${key}=${value}`),
    ...taints.filter((taint) => ownTaints?.includes(taint) === false),
  ];
}

export function taintText({
  key,
  value,
  effect,
}: {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: string;
}): string {
  return `${key}=${value ?? ''}:${effect}`;
}
