/** Checks that packages contain the folders for this machine's operating system. */
import { CurlewError } from '../../core/errors.ts';
import { osFolderOf } from '../../core/omitted.ts';
import { OS_IDS } from '../../core/os.ts';
import { formatRef } from '../../core/ref.ts';
import { runLibrary, type LibraryOptions } from './run-library.ts';
import type { SourcePackage } from '../node/source.ts';
import type { RunView } from '../prepare/request.ts';

/** {@link requireSystemOf} for the packages of a run. */
export async function requireOwnSystem({
  request: { scripts, env },
  sources,
  signal,
}: Pick<RunView, 'request' | 'sources'> & { readonly signal: AbortSignal }): Promise<void> {
  await requireSystemOf(
    sources.map(({ source }) => source),
    { scripts, env, signal },
  );
}

/**
 * Throws `UNSUPPORTED` if a bundle omits a folder that this system uses. A folder that no package ever had does not matter:
 * nothing is installed from it. If all packages are whole, nothing is checked.
 */
export async function requireSystemOf(packages: readonly SourcePackage[], options: LibraryOptions): Promise<void> {
  if (packages.every(({ omitted }) => omitted.length === 0)) return;
  const code = 'detectLsbDist; echo "$LSB_DIST $DIST_VERSION"; curlew_os_names || true';
  const [system = '', ...folders] = await runLibrary(code, [], 'detect the operating system', options);
  const without = packages.filter(({ omitted }) => omitted.some((folder) => folders.includes(folder)));
  if (without.length === 0) return;
  const has = OS_IDS.filter((id) => packages.some(({ files }) => files.some(({ path }) => osFolderOf(path) === id)));
  const names = without.map(({ ref }) => formatRef(ref)).join(', ');
  const missing = OS_IDS.filter((id) => folders.includes(id));
  throw new CurlewError(
    'UNSUPPORTED',
    `this machine is ${system}: its host packages (${missing.join(', ')}) were omitted from ${names}; ` +
      `the bundle has those for ${has.length === 0 ? 'no system' : has.join(', ')}`,
    { hint: `create the bundle with --os ${missing.join(',')} as well, or without --os` },
  );
}
