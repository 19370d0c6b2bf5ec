/** A node whose pods move to others, as `curlew node drain` and `curlew machine drain` show it. */
import { counted } from '../../core/counted.ts';
import type { DrainedMachine } from '../../machine/run/drain-over-ssh.ts';

type Drained = Pick<DrainedMachine, 'isCordoned' | 'pods' | 'lost'>;

/** Nothing is left to do. */
export function isDrained({ isCordoned, pods }: Drained): boolean {
  return isCordoned && pods.length === 0;
}

/** The pods that are left, or what ends the drain. */
export function drainLines(name: string, node: Drained): readonly string[] {
  const { isCordoned, pods, lost } = node;
  return [
    ...pods.map((pod) => `to do: ${name} evict ${pod}`),
    ...lost.map((text) => `needs --force: ${text}`),
    isDrained(node)
      ? `${name} is drained, and takes no pods: kubectl uncordon ${name} ends this`
      : `${name}: ${isCordoned ? '' : 'to be cordoned, '}${counted(pods.length, 'pod')} to evict`,
  ];
}
