/** What an installer spec says, as data. */
import type { Place } from '../core/diagnostic.ts';
import type { JsonObject } from './yaml.ts';

export interface InstallerAddon {
  /** As written in the spec: `certManager`. */
  readonly specName: string;
  /** As its folder is called: `cert-manager`. */
  readonly name: string;
  /** The version as written: exact, `latest` or `1.2.x`. */
  readonly requested: string;
  /** Everything below the key but `version` and `s3Override`. */
  readonly settings: JsonObject;
  /** Of a package that is used instead of the store's: a URL, or `s3://bucket/key`. */
  readonly s3Override: string | undefined;
  readonly place: Place;
  /** Of settings that the spec itself holds, by their fields; what flags and `--set` put in has none. */
  readonly places?: ReadonlyMap<string, Place>;
}

/** A key of the spec that is no add-on: settings of the installation itself, such as `kurl` or `selinuxConfig`. */
export interface InstallerSection {
  readonly specName: string;
  readonly settings: JsonObject;
}

export interface Installer {
  readonly name: string | undefined;
  /** In the order of the spec. */
  readonly addons: readonly InstallerAddon[];
  readonly sections: readonly InstallerSection[];
}

/** The folder name of a spec key: `certManager` is `cert-manager`. */
export function folderName(specName: string): string {
  return specName.replaceAll(/[A-Z]/g, (letter, at: number) => `${at === 0 ? '' : '-'}${letter.toLowerCase()}`);
}
