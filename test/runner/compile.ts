/** The tests and the command under test as plain JavaScript: compiled once, so that no process of a test compiles anything. */
import { build, type Metafile } from 'esbuild';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { OUTSIDE, REQUIRE, WITHOUT_SSH } from '../../scripts/command/bundle.ts';
import { COMPILED, MODULES, PRODUCT } from '../support/compiled.ts';
import { OWN_PLACES, ownPlaces } from './own-places.ts';
import { makeProduct } from './product.ts';

/** Whoever imports it waits for `npm run build`. */
const BUILT = 'test/support/built.ts';

/**
 * Compiles these test files, by paths below the checkout `root`, and the command with its surroundings, in place of those
 * of an earlier run. Returns the files that need `npm run build`.
 */
export async function compileTests(root: string, files: readonly string[]): Promise<ReadonlySet<string>> {
  for (const folder of [COMPILED, PRODUCT]) await rm(join(root, folder), { recursive: true, force: true });
  const [{ inputs }] = await Promise.all([compileModules(root, [...files, ...MODULES]), makeProduct(root)]);
  return new Set(files.filter((path) => reaches(inputs, path, BUILT)));
}

/** Whether a module imports another, by itself or by what it imports. */
function reaches(inputs: Metafile['inputs'], from: string, to: string): boolean {
  const seen = new Set<string>();
  const queue = [from];
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (path === to) return true;
    if (seen.has(path)) continue;
    seen.add(path);
    queue.push(...(inputs[path]?.imports ?? []).map((imported) => imported.path));
  }
  return false;
}

/** Where `compileTests` puts what it makes of a module. */
export function compiledPath(path: string): string {
  return join(COMPILED, path.replace(/\.ts$/, '.js'));
}

async function compileModules(root: string, entryPoints: readonly string[]): Promise<Metafile> {
  const { metafile } = await build({
    metafile: true,
    absWorkingDir: root,
    entryPoints: [...entryPoints],
    outdir: COMPILED,
    outbase: '.',
    bundle: true,
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    external: [...OUTSIDE, 'esbuild', 'oxc-parser'],
    banner: { js: REQUIRE },
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'warning',
    define: OWN_PLACES,
    plugins: [WITHOUT_SSH, ownPlaces(root)],
  });
  return metafile;
}
