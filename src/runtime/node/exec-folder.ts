/** The install folder must be one from which programs run: add-ons bring programs, and their hooks run them there. */
import { CurlewError } from '../../core/errors.ts';
import { noexecMount, type FactOptions } from '../host/host-facts.ts';

/** `FILE_UNUSABLE` when no program may run from this folder, which need not exist. */
export async function requirePrograms(directory: string, options: FactOptions): Promise<void> {
  const mount = await noexecMount(directory, options);
  if (mount === undefined) return;
  const what = `install into ${directory}: ${mount} is mounted noexec, and hooks run programs that add-ons bring`;
  throw new CurlewError('FILE_UNUSABLE', what, {
    hint: `name another folder with --install-dir, or run: mount -o remount,exec ${mount}`,
  });
}
