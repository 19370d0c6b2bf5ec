/** Host packages that add-ons leave to the operator (`Deps`), asked of this machine by the library of hooks. */
import { CurlewError } from '../../core/errors.ts';
import { packagePath } from '../../core/layout.ts';
import { formatRef } from '../../core/ref.ts';
import { askLibrary, type LibraryOptions } from '../hooks/ask-library.ts';
import type { SourcePackage } from '../node/source.ts';

export interface MissingPackage {
  readonly name: string;
  /** The add-ons that need it, with their versions. */
  readonly neededBy: readonly string[];
  /** A repository of this machine offers it, as far as its indexes that are here tell. */
  readonly offered: boolean;
}

export interface MissingPackages {
  /** The whole command that installs them. */
  readonly command: string;
  readonly packages: readonly MissingPackage[];
}

/** What lacks of all that these packages need here; undefined when nothing does. Nothing is changed. */
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
  const doing = 'look for the host packages that add-ons need';
  // How packages are installed here, then those that lack.
  const [command = '', ...rows] = await askLibrary(
    'curlew_missing_packages "$@"',
    [...neededBy.keys()],
    doing,
    options,
  );
  const found = rows.map((row): MissingPackage => {
    const [key = '', offered] = row.split('\t');
    return { name: key.slice(key.indexOf(' ') + 1), neededBy: neededBy.get(key) ?? [], offered: offered === 'yes' };
  });
  if (found.length === 0) return undefined;
  return { command: [command, ...found.map(({ name }) => name)].join(' '), packages: found };
}

/** Names and what a package provides, as rpm writes it; nothing that could be an option or more than one word. */
const NAME = /^[A-Za-z0-9/][A-Za-z0-9+._/:@()-]*$/;

function requireName(name: string, place: string): void {
  if (NAME.test(name)) return;
  throw new CurlewError('PACKAGE_INVALID', `${place}: ${JSON.stringify(name)} is no name of a package`, {
    hint: 'build the add-on again',
  });
}
