/** The tests and the command under test as plain JavaScript: compiled once, so that no process of a test compiles anything. */
import { build, type Metafile, type Plugin } from 'esbuild';
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BUNDLED_TOOL, BUNDLED_TOOL_LICENSE, packedExecutableName } from '../../src/core/layout.ts';
import { ARCHES } from '../../src/core/ref.ts';
import { bundleCommand } from '../../scripts/command/bundle.ts';
import { archiveOf } from '../support/packages.ts';
import { COMPILED, MODULES, PRODUCT } from '../support/compiled.ts';

/** What the command and the scripts find beside it. */
const BESIDE = ['scripts', 'package.json', 'node_modules', 'addons'];

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
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'warning',
    define: { 'import.meta.url': 'moduleUrl', 'import.meta.dirname': 'moduleFolder' },
    plugins: [ownPlaces(root)],
  });
  return metafile;
}

/**
 * `import.meta` of a module names its place in the checkout, not that of its chunk. For modules of the command it names a
 * place in the compiled one, since they look for what is beside it.
 */
function ownPlaces(root: string): Plugin {
  return {
    name: 'own-places',
    setup: (bundler) => {
      bundler.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, 'utf8');
        if (!text.includes('import.meta.')) return { contents: text, loader: 'ts' };
        const own = relative(root, path).startsWith('src/')
          ? join(root, PRODUCT, 'dist/cli', `${path.slice(path.lastIndexOf('/') + 1, -3)}.js`)
          : path;
        const url = JSON.stringify(pathToFileURL(own).href);
        // On the first line, so that the others keep their numbers.
        const places = `const moduleUrl = ${url}, moduleFolder = ${JSON.stringify(dirname(own))};`;
        return { contents: `${places}${text}`, loader: 'ts' };
      });
    },
  };
}

/**
 * The command with what it has beside it. The executables for nodes are launchers of this same command instead of tens of
 * megabytes with a Node inside, which every bundle of every test would carry; suites in test/components use the real ones.
 */
async function makeProduct(root: string): Promise<void> {
  const product = join(root, PRODUCT);
  const main = join(product, 'dist/cli/main.js');
  await mkdir(join(product, 'dist/node'), { recursive: true });
  await Promise.all(BESIDE.map(async (name) => symlink(join(root, name), join(product, name))));
  await bundleCommand(root, dirname(main));
  const launcher = `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`;
  const { bytes } = archiveOf([
    { path: BUNDLED_TOOL, data: launcher, mode: 0o755 },
    { path: BUNDLED_TOOL_LICENSE, data: 'The licenses of what a real one has inside.\n' },
  ]);
  for (const arch of ARCHES) await writeFile(join(product, 'dist/node', packedExecutableName(arch)), bytes);
}
