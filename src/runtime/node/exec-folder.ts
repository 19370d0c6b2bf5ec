/** The install folder must allow executables: add-ons include programs that their hooks run from there. */
import { CurlewError } from '../../core/errors.ts';
import { noexecMount, type FactOptions } from '../host/host-facts.ts';

/** Throws `FILE_UNUSABLE` if the folder is on a noexec mount. The folder need not exist. */
export async function requirePrograms(directory: string, options: FactOptions): Promise<void> {
  const mount = await noexecMount(directory, options);
  if (mount === undefined) return;
  const what = `install into ${directory}: ${mount} is mounted noexec, and hooks run programs from it`;
  throw new CurlewError('FILE_UNUSABLE', what, {
    hint: `name another folder with --install-dir, or run: mount -o remount,exec ${mount}`,
  });
}
