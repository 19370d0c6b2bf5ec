/** Host packages that the operator must install (`Deps`), checked by the hooks' bash library. */
import { CurlewError } from '../../core/errors.ts';
import { packagePath } from '../../core/layout.ts';
import { formatRef } from '../../core/ref.ts';
import { runLibrary, type LibraryOptions } from './run-library.ts';
import type { SourcePackage } from '../node/source.ts';

export interface MissingPackage {
  readonly name: string;
  /** The add-ons that need it, with their versions. */
  readonly neededBy: readonly string[];
  /** A repository of this machine has it, according to the local package index. */
  readonly offered: boolean;
}

export interface MissingPackages {
  /** The command that installs them. */
  readonly command: string;
  readonly packages: readonly MissingPackage[];
}

/** Missing host packages on this machine; undefined if none are missing. Changes nothing. */
export async function missingPackages(
  packages: readonly SourcePackage[],
  options: LibraryOptions,
): Promise<MissingPackages | undefined> {
  const neededBy = new Map<string, string[]>();
  for (const { ref, addon } of packages) {
    for (const [os, names] of Object.entries(addon.deps)) {
      for (const [at, name] of names.entries()) {
        requireName(name, `${formatRef(ref)}: ${packagePath.deps(os)}:${at + 1}`);
        const key = `${os} ${name}`;
        neededBy.set(key, [...(neededBy.get(key) ?? []), `${ref.name} ${ref.version}`]);
      }
    }
  }
  if (neededBy.size === 0) return undefined;
  const doing = 'check the host packages that add-ons need';
  // The first line is the install command, the others are the missing packages.
  const [command = '', ...rows] = await runLibrary(
    'curlew_missing_packages "$@"',
    [...neededBy.keys()],
    doing,
    options,
  );
  const missing = rows.map((row): MissingPackage => {
    const [key = '', offered] = row.split('\t');
    return { name: key.slice(key.indexOf(' ') + 1), neededBy: neededBy.get(key) ?? [], offered: offered === 'yes' };
  });
  if (missing.length === 0) return undefined;
  return { command: [command, ...missing.map(({ name }) => name)].join(' '), packages: missing };
}

/** Names, and capabilities as rpm writes them; nothing that could be an option or more than one word. */
const NAME = /^[A-Za-z0-9/][A-Za-z0-9+._/:@()-]*$/;

function requireName(name: string, place: string): void {
  if (NAME.test(name)) return;
  throw new CurlewError('PACKAGE_INVALID', `${place}: ${JSON.stringify(name)} is not a package name`, {
    hint: 'build the add-on again',
  });
}
