/**
 * Test vectors against curlew's own functions: one export for each `fn` of a vector, which takes its `in` and a rule set, and
 * returns its `out`. Plain JSON, no other set-up. `test/fixtures/channels` has vectors.
 */
import type { Compat, Identity, PruneKind } from './channel/channel.ts';
import { choose as chooseEntries, replaces } from './channel/choose.ts';
import { manifestAddonName as addonNameOf, resolveLocation } from './channel/location.ts';
import { objectKey } from './channel/objects.ts';
import { planUpgrade } from './channel/plan.ts';
import { prune as pruneObjects } from './channel/prune.ts';
import { contains, kubernetesTriple, parseRange } from './channel/range.ts';
import { rollingSizes, type RollingLimits } from './channel/rolling.ts';

export type { Compat } from './channel/channel.ts';

export interface VectorEntry extends Identity {
  readonly name?: string;
  readonly kubernetesVersion?: string;
  readonly manifest?: string;
  readonly manifestHash?: string;
}

function candidates(
  entries: readonly VectorEntry[],
  { name, compat }: { readonly name: string; readonly compat: Compat },
) {
  return entries.map(({ kubernetesVersion = '', manifestHash, ...entry }) => ({
    name,
    hash: manifestHash,
    ...entry,
    range: parseRange(kubernetesVersion, compat === 'native' ? 'native' : 'kops').range,
  }));
}

/** Is a server's version in a range? A range that cannot be read contains none, with a warning. */
export function rangeMatch(
  input: { readonly range: string; readonly kubernetesVersion: string },
  compat: Compat = 'kops',
): { readonly matches: boolean; readonly warning?: true } {
  const { range } = parseRange(input.range, compat === 'native' ? 'native' : 'kops');
  if (range === undefined) return { matches: false, warning: true };
  return { matches: contains(range, kubernetesTriple(input.kubernetesVersion)) };
}

interface Replacement {
  readonly existing: Identity;
  readonly incoming: Identity;
}

/** Does an incoming entry replace an existing one, by the rule of kops until 2021? */
export function replacesSemver({ existing, incoming }: Replacement, compat: Compat = 'kops-2017'): boolean {
  return replaces(existing, incoming, compat).replaces;
}

/** The same by today's rule of kops. */
export function replacesHash({ existing, incoming }: Replacement, compat: Compat = 'kops'): boolean {
  return replaces(existing, incoming, compat).replaces;
}

type Chosen = Readonly<Record<string, string | undefined>>;

/**
 * The manifest that an index yields for each add-on; a list of them for a list of versions. The `rule` decides before `compat`.
 */
export function choose(
  input: {
    readonly rule?: 'semver' | 'hash';
    readonly kubernetesVersion: string | readonly string[];
    readonly name: string;
    readonly entries: readonly VectorEntry[];
  },
  compat: Compat = 'kops',
): Chosen | readonly Chosen[] {
  const rules = { semver: 'kops-2017', hash: 'kops', none: compat } as const;
  const used = rules[input.rule ?? 'none'];
  const entries = candidates(input.entries, { name: input.name, compat: used });
  const chosenFor = (version: string): Chosen => {
    const chosen = chooseEntries(entries, kubernetesTriple(version), used);
    return Object.fromEntries([...chosen].map(([name, { manifest }]) => [name, manifest]));
  };
  const { kubernetesVersion } = input;
  return typeof kubernetesVersion === 'string' ? chosenFor(kubernetesVersion) : kubernetesVersion.map(chosenFor);
}

/** The location of a manifest that an index names, or null if it has none. */
export function resolve({ index, manifest }: { readonly index: string; readonly manifest: string }): string | null {
  return resolveLocation(index, manifest) ?? null;
}

/** The name of the only add-on of a plain manifest. */
export function manifestAddonName({ location }: { readonly location: string }): string {
  return addonNameOf(location);
}

interface VectorObject {
  readonly group?: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** The objects that the kinds of a prune list delete, as `Kind/namespace/name`, sorted. */
export function prune(input: {
  readonly spec: { readonly kinds: readonly (Pick<PruneKind, 'kind'> & Partial<PruneKind>)[] };
  readonly manifest: readonly VectorObject[];
  readonly live: readonly VectorObject[];
}): readonly string[] {
  const read = ({ group = '', kind, namespace, name, labels = {} }: VectorObject) => {
    return { apiVersion: group === '' ? 'v1' : `${group}/v1`, kind, namespace, name, labels };
  };
  const every = { group: '', namespaces: [], labelSelector: '', fieldSelector: '' };
  const kinds = input.spec.kinds.map((kind) => ({ ...every, ...kind }));
  const kept = new Set(input.manifest.map((object) => objectKey(read(object))));
  const titles = pruneObjects({ kinds, kept }, input.live.map(read)).map(({ kind, namespace, name }) => {
    return [kind, ...(namespace === undefined ? [] : [namespace]), name].join('/');
  });
  return titles.toSorted();
}

/** How many nodes kops replaces at the same time. */
export function kopsRolling(input: RollingLimits & { readonly nodes: number; readonly controlPlane?: boolean }): {
  readonly surge: number;
  readonly unavailable: number;
} {
  return rollingSizes(input.nodes, input, { isControlPlane: input.controlPlane ?? false });
}

/** The steps of an upgrade of Kubernetes with one add-on, or `gap at VERSION` as `error`. */
export function planAddons(
  input: {
    readonly installed: string;
    readonly kubernetes: readonly string[];
    readonly entries: readonly VectorEntry[];
  },
  compat: Compat = 'native',
): { readonly steps: readonly string[] } | { readonly error: string } {
  const { steps, gaps } = planUpgrade(candidates(input.entries, { name: 'addon', compat }), {
    kubernetes: input.kubernetes,
    installed: new Map([['addon', { version: input.installed }]]),
    compat,
  });
  const [gap] = gaps;
  if (gap !== undefined) return { error: `gap at ${gap.at}` };
  return {
    steps: steps.map((step) =>
      step.type === 'kubernetes' ? `kubernetes ${step.version}` : `addon ${step.entry.version ?? ''}`,
    ),
  };
}
