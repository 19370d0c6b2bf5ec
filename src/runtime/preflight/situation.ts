/** The planned installation of a machine, as data for templates of specs. Pure. */
import type { Installer } from '../../spec/installer.ts';
import type { ValueMap } from '../../formats/go-template/values.ts';

export interface Situation {
  /** Undefined if no add-ons are planned. */
  readonly installer: Installer | undefined;
  /** Resolved versions, by folder name of the add-on. */
  readonly versions: ReadonlyMap<string, string>;
  readonly isPrimary: boolean;
  readonly isJoin: boolean;
  readonly isUpgrade: boolean;
  /** Kubernetes on this machine may use its ports itself. */
  readonly hasKubernetes?: boolean | undefined;
  /** Addresses of other machines of the cluster. */
  readonly primaryHosts: readonly string[];
  readonly secondaryHosts: readonly string[];
}

/** A first machine without a planned installation. */
export const NO_INSTALLATION: Situation = {
  installer: undefined,
  versions: new Map(),
  isPrimary: true,
  isJoin: false,
  isUpgrade: false,
  primaryHosts: [],
  secondaryHosts: [],
};

/** The data of `{{kurl …}}` (kurl.md 8.2). */
export function templateData(situation: Situation): ValueMap {
  const { isPrimary, isJoin, isUpgrade, primaryHosts, secondaryHosts } = situation;
  return {
    Installer: { Spec: specData(situation), ObjectMeta: { Name: situation.installer?.name ?? '' } },
    IsPrimary: isPrimary,
    IsJoin: isJoin,
    IsUpgrade: isUpgrade,
    PrimaryHosts: primaryHosts,
    SecondaryHosts: secondaryHosts,
    RemoteHosts: [...primaryHosts, ...secondaryHosts],
  };
}

function specData({ installer, versions }: Situation): ValueMap {
  const sections = (installer?.sections ?? []).map(({ specName, settings }) => [specName, settings] as const);
  const addons = (installer?.addons ?? []).map(({ specName, name, requested, s3Override, settings }) => {
    return [specName, { ...settings, version: versions.get(name) ?? requested, s3Override }] as const;
  });
  return Object.fromEntries([...sections, ...addons]);
}

/** A setting of the spec as text; empty if it is not set. */
export function settingText({ installer }: Pick<Situation, 'installer'>, specName: string, field: string): string {
  const all = [...(installer?.sections ?? []), ...(installer?.addons ?? [])];
  const settings = all.find((one) => one.specName === specName)?.settings ?? {};
  const [, value] = Object.entries(settings).find(([key]) => key.toLowerCase() === field.toLowerCase()) ?? [];
  return value === undefined || value === false || typeof value === 'object' ? '' : String(value);
}

/** The version of an add-on; empty if it is not in the spec. */
export function versionIn({ installer, versions }: Situation, name: string): string {
  const addon = installer?.addons.find((one) => one.name === name);
  return addon === undefined ? '' : (versions.get(name) ?? addon.requested);
}
