/** The programs of kURL's package kurl-bin-utils, which add-ons call below `bin/`, and what stands in for them. */
import { rows, type Row } from './rows.ts';

const ABSENT = 'absent: not supported without the package, and it says so';

const NOTES: Readonly<Record<string, string>> = {
  bashmerge: "same: all of kURL's flags are taken",
  config: ABSENT,
  'docker-config': ABSENT,
  kurl: 'differs: `format-address` and `netutil format-ip-address` only; other verbs need the package, and it is said',
  installermerge: 'same: specs with mistakes are refused',
  network: ABSENT,
  pvmigrate: ABSENT,
  toml: ABSENT,
  veleroplugin: ABSENT,
  vendorflights: 'same: specs with mistakes are refused',
  yamltobash: 'differs: `$x`, backticks and `$(…)` in a value stay text when its file is sourced; mistakes are refused',
};

const NAMES = `
bashmerge bcrypt config docker-config htpasswd installermerge kurl network pvmigrate subnet toml
veleroplugin vendorflights yamltobash yamlutil
`;

export const BIN_PROGRAMS: readonly Row[] = rows(NAMES, NOTES);

/** Verbs of the program `kurl` that work without the package. */
export const KURL_VERBS: readonly string[] = ['format-address', 'netutil'];
