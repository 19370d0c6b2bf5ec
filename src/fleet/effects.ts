/** Fields of a FleetAddon that do nothing for what it delivers. Pure. */
import type { FleetAddon } from './rollout/fleet.ts';
import type { AddonFields } from './schema.ts';

const CONTENTS = ['manifest', 'chart', 'package', 'template'] as const;
/** What an add-on brings onto a cluster. */
export type Content = (typeof CONTENTS)[number];
type Spec = Pick<AddonFields['spec'], 'config' | 'valuesTemplate' | 'drift' | 'prune'>;

interface Row {
  readonly field: keyof Spec;
  /** What it says where it is not written. */
  readonly ordinary?: string;
  /** Why it does nothing, by what is delivered. */
  readonly idle: Readonly<Partial<Record<Content, string>>>;
}

const AS_IT_IS = 'a manifest is applied as it is, and only charts have values';
const BY_NODE = 'the hooks of a package on its node decide that';

/** Fields that are not here say where, when and in which order something is delivered or removed, which is the same for all contents. */
const ROWS: readonly Row[] = [
  { field: 'config', idle: { manifest: AS_IT_IS } },
  { field: 'valuesTemplate', idle: { manifest: AS_IT_IS } },
  { field: 'drift', ordinary: 'Warn', idle: { package: BY_NODE } },
  {
    field: 'prune',
    ordinary: 'Auto',
    idle: {
      chart: 'Helm deletes what a chart no longer has, except what its annotation helm.sh/resource-policy: keep keeps',
      package: BY_NODE,
    },
  },
];

/** Which contents a source names. */
export function contentsIn(source: object): readonly Content[] {
  return CONTENTS.filter((one) => one in source);
}

/** The fields of `spec` that do nothing for any of the contents that an add-on may have, and why. */
export function idleFields(spec: Spec, contents: readonly Content[]): readonly { field: keyof Spec; why: string }[] {
  return ROWS.flatMap(({ field, ordinary, idle }) => {
    const { [field]: written } = spec;
    const [why, ...others] = contents.map((one) => idle[one]);
    const isIdle = why !== undefined && !others.includes(undefined);
    return isIdle && written !== undefined && written !== ordinary ? [{ field, why }] : [];
  });
}

/** The same in one text, for the status of an add-on of a hub. */
export function idleNote(spec: Spec, contents: readonly Content[]): Pick<FleetAddon, 'idle'> {
  const all = idleFields(spec, contents).map(({ field, why }) => `${field} has no effect: ${why}`);
  return all.length > 0 ? { idle: all.join('; ') } : {};
}
