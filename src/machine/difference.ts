/** The differences between two clusters, apart from what makes each of them itself. Pure. */
import { differences } from '../cluster/channel/difference.ts';
import { compareText } from '../core/ref.ts';

export interface ClusterDifference {
  /** `networks.pods`, `machines[name="n1"].role`. */
  readonly path: string;
  /** Missing where the first cluster does not have it. */
  readonly a?: unknown;
  readonly b?: unknown;
}

/** Fields that identify a cluster or machine, and those that only its controller writes. */
const IDENTITY = ['name', 'uid', 'addresses', 'providerID', 'status'];

/** By path, sorted. `ignore` are paths without the items of lists, such as `machines.address`; what is below them does not count either. */
export function clusterDiff(
  a: unknown,
  b: unknown,
  ignore: readonly string[] = IDENTITY,
): readonly ClusterDifference[] {
  const relevant: ClusterDifference[] = [];
  for (const { field, before, after } of differences(a, b, Infinity)) {
    const path = field.replace(/^\./, '');
    const plain = path.replaceAll(/\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]/g, '');
    if (ignore.some((one) => plain === one || plain.startsWith(`${one}.`))) continue;
    relevant.push({ path, ...(before !== undefined && { a: before }), ...(after !== undefined && { b: after }) });
  }
  return relevant.toSorted((one, other) => compareText(one.path, other.path));
}
