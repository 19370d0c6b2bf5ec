/** An installer spec as data. */
import type { Place } from '../core/diagnostic.ts';
import type { JsonObject } from '../formats/yaml/yaml.ts';

export interface InstallerAddon {
  /** Name in the spec: `certManager`. */
  readonly specName: string;
  /** Its folder name: `cert-manager`. */
  readonly name: string;
  /** The version as written: exact, `latest`, `1.2.x` or `channel:stable`. */
  readonly requested: string;
  /** Everything under the key except `version` and `s3Override`. */
  readonly settings: JsonObject;
  /** Address of a package to use instead of the store's: a URL, or `s3://bucket/key`. */
  readonly s3Override: string | undefined;
  readonly place: Place;
  /** Place of the flag that sets the version, if it is not in the spec. */
  readonly requestedBy?: Place | undefined;
  /** Places of settings by field: in the spec, or the flag or `--set` that sets them. */
  readonly places?: ReadonlyMap<string, Place>;
}

/** A key of the spec that is not an add-on: settings of the installation itself, such as `kurl` or `selinuxConfig`. */
export interface InstallerSection {
  readonly specName: string;
  readonly settings: JsonObject;
}

export interface Installer {
  readonly name: string | undefined;
  /** Add-ons in the order of the spec. */
  readonly addons: readonly InstallerAddon[];
  readonly sections: readonly InstallerSection[];
}

/** The folder name of a spec key: `certManager` is `cert-manager`. */
export function folderName(specName: string): string {
  return specName.replaceAll(/[A-Z]/g, (letter, at: number) => `${at === 0 ? '' : '-'}${letter.toLowerCase()}`);
}
