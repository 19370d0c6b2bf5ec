/** Checks how a repository made for kURL works with curlew. */
import { join, resolve } from 'node:path';
import { checkRepository, type Migration } from '../kurl/migrate.ts';
import { newFiles, writeNewFiles, type WrittenFile } from '../kurl/write-files.ts';
import { ownScripts } from '../own/scripts.ts';
import { IMPORT_REPOSITORY } from '../requests/repository.ts';
import { useCase } from '../core/request.ts';

export interface Imported extends Migration {
  /** Empty without `out`. */
  readonly files: readonly WrittenFile[];
  /** True if `files` would be written. */
  readonly dryRun: boolean;
  /** Number of add-on versions by verdict. */
  readonly sums: { readonly works: number; readonly differs: number; readonly missing: number };
}

/** Inspects every add-on; runs nothing of it and changes no existing file. */
export const importRepository = useCase(IMPORT_REPOSITORY, async (request, { cwd, env, signal }): Promise<Imported> => {
  const library = join(ownScripts(), 'lib');
  const searchPath = env['PATH'];
  const migration = await checkRepository(resolve(cwd, request.path), { library, searchPath, signal });
  const out = request.out === undefined ? undefined : resolve(cwd, request.out);
  const { dryRun = false } = request;
  const files = out === undefined ? [] : await writeNewFiles(out, newFiles(migration, out), { dryRun, signal });
  const of = (one: string): number => migration.addons.filter(({ verdict }) => verdict === one).length;
  return {
    ...migration,
    files,
    dryRun,
    sums: { works: of('works'), differs: of('differs'), missing: of('missing') },
  };
});
