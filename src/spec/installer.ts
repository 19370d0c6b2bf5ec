/** What an installer spec says, as data. */
import type { Place } from '../core/diagnostic.ts';
import type { JsonObject } from '../formats/yaml/yaml.ts';

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
  /** Of the version, where a flag and not the spec asks for it. */
  readonly requestedBy?: Place | undefined;
  /** Of settings, by their fields: in the spec, or the flag or `--set` that put them in. */
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
