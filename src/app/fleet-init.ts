/** Creates the folder of a fleet, as an example that people change. */
import { access, readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CurlewError, fileError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { ownScripts } from '../own/scripts.ts';
import { makeFolder } from '../platform/files/make-folder.ts';
import { writeNew } from '../platform/files/write-new.ts';
import { FLEET_INIT } from '../requests/fleet.ts';

/** Overwrites nothing: `FILE_EXISTS` if a file exists; then nothing is created. Returns the paths of the files. */
export const initFleet = useCase(FLEET_INIT, async ({ folder }, { cwd }): Promise<readonly string[]> => {
  const samples = join(ownScripts(), 'new/fleet');
  // A package leaves files with such names out.
  const files = (await readdir(samples)).map((name) => [name, join(folder, name.replace(/^git/, '.git'))] as const);
  for (const [, path] of files) {
    const isThere = await access(resolve(cwd, path)).then(
      () => true,
      () => false,
    );
    if (isThere)
      throw new CurlewError('FILE_EXISTS', `cannot create ${path}: it exists`, { hint: 'specify another folder' });
  }
  await makeFolder(resolve(cwd, folder));
  for (const [name, path] of files) {
    try {
      await writeNew(resolve(cwd, path), await readFile(join(samples, name)), name.endsWith('.conf') ? 0o600 : 0o644);
    } catch (error) {
      throw fileError(`create ${path}`, error);
    }
  }
  return files.map(([, path]) => path);
});
