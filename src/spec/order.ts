/** The installation order of add-ons on a node. Pure. */
import { CurlewError } from '../core/errors.ts';

/** kURL's order, each add-on once; container runtimes and kubernetes first, since the rest runs on them. */
export const ORDER_ON_NODE: readonly string[] = [
  'docker',
  'containerd',
  'kubernetes',
  'aws',
  'nodeless',
  'calico',
  'weave',
  'flannel',
  'antrea',
  'rook',
  'ekco',
  'openebs',
  'longhorn',
  'minio',
  'contour',
  'registry',
  'prometheus',
  'kotsadm',
  'velero',
  'fluentd',
  'collectd',
  'cert-manager',
  'metrics-server',
  'sonobuoy',
  'goldpinger',
];

export interface OrderedAddon {
  readonly name: string;
  /** Names of add-ons, or of requirements that they fulfill, that must come first if they are installed. */
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
}

/**
 * Known add-ons in kURL's order, which never changes among themselves; unknown ones follow in the given order. If an add-on
 * requires a later one, that one moves up before it. A cycle is `SPEC_INVALID`.
 */
export function orderAddons<Addon extends OrderedAddon>(addons: readonly Addon[]): readonly Addon[] {
  const rank = (name: string): number => {
    const known = ORDER_ON_NODE.indexOf(name);
    return known === -1 ? ORDER_ON_NODE.length : known;
  };
  const base = addons.toSorted((a, b) => rank(a.name) - rank(b.name));
  // Lists come from package authors and may be long, so each is scanned once.
  const providersOf = new Map<string, Addon[]>();
  for (const addon of base) {
    for (const name of new Set([addon.name, ...addon.fulfills])) {
      const known = providersOf.get(name);
      if (known === undefined) providersOf.set(name, [addon]);
      else known.push(addon);
    }
  }
  const done = new Set<Addon>();
  const place = (addon: Addon, above: readonly Addon[]): void => {
    if (done.has(addon)) return;
    if (above.includes(addon)) throw cycle([...above.slice(above.indexOf(addon)), addon]);
    for (const required of addon.requires) {
      const providers = providersOf.get(required) ?? [];
      if (providers.includes(addon) || providers.some((other) => done.has(other))) continue;
      const [first] = providers;
      if (first !== undefined && !(isKnown(first) && isKnown(addon))) place(first, [...above, addon]);
    }
    done.add(addon);
  };
  for (const addon of base) place(addon, []);
  return [...done];
}

function isKnown({ name }: OrderedAddon): boolean {
  return ORDER_ON_NODE.includes(name);
}

function cycle(path: readonly OrderedAddon[]): CurlewError {
  const names = path.map(({ name }) => name).join(' requires ');
  return new CurlewError('SPEC_INVALID', `add-ons require each other: ${names}`, {
    hint: 'remove one of them from the spec, or correct `requires` in its categories.json',
  });
}
