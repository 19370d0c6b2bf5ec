/** What a repository that was made for kURL finds here. */
import { join, resolve } from 'node:path';
import { checkRepository, type Migration } from '../kurl/migrate.ts';
import { newFiles, writeNewFiles, type WrittenFile } from '../kurl/write-files.ts';
import type { Context } from './context.ts';
import { ownScripts } from './own-scripts.ts';

export interface ImportRequest {
  /** Folder of the checkout. */
  readonly path: string;
  /** Folder that files which the checkout lacks are written below, which may be the checkout; none are when absent. */
  readonly out?: string | undefined;
}

export interface Imported extends Migration {
  /** Empty without `out`. */
  readonly files: readonly WrittenFile[];
  /** Versions of add-ons by what was found. */
  readonly sums: { readonly works: number; readonly differs: number; readonly missing: number };
}

/** Looks at every add-on; runs nothing of it and changes no file that is there. */
export async function importRepository(request: ImportRequest, { cwd, env, signal }: Context): Promise<Imported> {
  const library = join(ownScripts(), 'lib');
  const searchPath = env['PATH'] ?? '/usr/bin:/bin';
  const migration = await checkRepository(resolve(cwd, request.path), { library, searchPath, signal });
  const out = request.out === undefined ? undefined : resolve(cwd, request.out);
  const files = out === undefined ? [] : await writeNewFiles(out, newFiles(migration, out), { signal });
  const of = (wanted: string): number => migration.addons.filter(({ verdict }) => verdict === wanted).length;
  return { ...migration, files, sums: { works: of('works'), differs: of('differs'), missing: of('missing') } };
}
