/** Whether packages have what this machine's operating system needs of them. */
import { CurlewError } from '../../core/errors.ts';
import { osFolderOf } from '../../core/omitted.ts';
import { OS_IDS } from '../../core/os.ts';
import { formatRef } from '../../core/ref.ts';
import { askLibrary, type LibraryOptions } from '../hooks/ask-library.ts';
import type { SourcePackage } from '../node/source.ts';
import type { RunView } from '../run/request.ts';

/** {@link requireSystemOf} the packages of a run. */
export async function requireOwnSystem(
  { request, along }: Pick<RunView, 'request' | 'along'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const packages = [...request.packages, ...along].map(({ source }) => source);
  await requireSystemOf(packages, { scripts: request.scripts, env: request.env, signal });
}

/**
 * `UNSUPPORTED` when a bundle left out a folder that this system looks into. One that no package ever had is no reason:
 * then nothing is installed from it. Packages that are whole ask for nothing.
 */
export async function requireSystemOf(packages: readonly SourcePackage[], options: LibraryOptions): Promise<void> {
  if (packages.every(({ omitted }) => omitted.length === 0)) return;
  const code = 'detectLsbDist; echo "$LSB_DIST $DIST_VERSION"; curlew_os_names || true';
  const [system = '', ...folders] = await askLibrary(code, [], 'find out which system this is', options);
  const without = packages.filter(({ omitted }) => omitted.some((folder) => folders.includes(folder)));
  if (without.length === 0) return;
  const has = OS_IDS.filter((id) => packages.some(({ files }) => files.some(({ path }) => osFolderOf(path) === id)));
  const names = without.map(({ ref }) => formatRef(ref)).join(', ');
  const lacking = OS_IDS.filter((id) => folders.includes(id));
  throw new CurlewError(
    'UNSUPPORTED',
    `this machine is ${system}: its host packages (${lacking.join(', ')}) were left out of ${names}; ` +
      `the bundle has those for ${has.length === 0 ? 'no system' : has.join(', ')}`,
    { hint: `make the bundle with --os ${lacking.join(',')} as well, or without --os` },
  );
}
