/** The command under test, with what it finds beside it. */
import { build, type BuildOptions } from 'esbuild';
import { execa } from 'execa';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BUNDLED_TOOL, BUNDLED_TOOL_LICENSE, packedExecutableName } from '../../src/core/layout.ts';
import { ARCHES } from '../../src/core/ref.ts';
import { DEFINE, OUTSIDE, REQUIRE, WITHOUT_SSH, WORKERS } from '../../scripts/command/bundle.ts';
import { PRODUCT } from '../support/compiled.ts';
import { archiveOf } from '../support/packages.ts';
import { OWN_PLACES, ownPlaces } from './own-places.ts';

const BESIDE = ['scripts', 'docs', 'package.json', 'node_modules', 'addons'];

/**
 * Makes the folder of a package whose executables for nodes are launchers of this same command, instead of tens of megabytes
 * with a Node inside, which every bundle of every test would carry; suites in test/components use the real ones.
 */
export async function makeProduct(root: string): Promise<void> {
  const product = join(root, PRODUCT);
  const main = join(product, 'dist/cli/main.js');
  for (const folder of ['dist/cli', 'dist/node']) await mkdir(join(product, folder), { recursive: true });
  await Promise.all(BESIDE.map(async (name) => symlink(join(root, name), join(product, name))));
  await makeCommand(root, join(product, 'dist/cli'));
  const launcher = `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`;
  const { bytes } = archiveOf([
    { path: BUNDLED_TOOL, data: launcher, mode: 0o755 },
    { path: BUNDLED_TOOL_LICENSE, data: 'The licenses of what a real one has inside.\n' },
  ]);
  for (const arch of ARCHES) await writeFile(join(product, 'dist/node', packedExecutableName(arch)), bytes);
}

/**
 * One text, and what V8 makes of it when it is first run: tests start the command some hundred times, and most of a start
 * would be compiling.
 */
async function makeCommand(root: string, to: string): Promise<void> {
  const options = {
    absWorkingDir: root,
    outdir: to,
    entryNames: '[name]',
    bundle: true,
    external: [...OUTSIDE],
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
    define: { ...DEFINE, ...OWN_PLACES },
    plugins: [WITHOUT_SSH, ownPlaces(root)],
  } satisfies BuildOptions;
  const path = join(to, 'main.cjs');
  await Promise.all([
    build({
      ...options,
      format: 'cjs',
      entryPoints: ['src/cli/main.ts'],
      outExtension: { '.js': '.cjs' },
      // V8's cache forgets how to import.
      supported: { 'dynamic-import': false },
      banner: { js: '(function (require) {' },
      footer: { js: '})' },
      minifyWhitespace: true,
      minifySyntax: true,
      legalComments: 'none',
      sourcemap: 'linked',
      sourcesContent: false,
    }),
    build({ ...options, format: 'esm', entryPoints: [...WORKERS], banner: { js: REQUIRE } }),
    writeFile(join(to, 'main.js'), LAUNCHER),
  ]);
  await writeFile(path, asciiOf(await readFile(path, 'utf8')), 'latin1');
  await execa(process.execPath, [join(to, 'main.js'), 'install', '--help']);
}

/** With escapes for all other characters: a start reads bytes, and decodes nothing. */
function asciiOf(code: string): string {
  for (const [raw] of code.matchAll(/String\.raw`(?:\\[^]|[^\\`])*`/g))
    if (/[^\0-\x7f]/.test(raw)) throw new Error(`write this as a string, in which escapes are read: ${raw}`);
  return code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const LAUNCHER = `import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

const filename = fileURLToPath(new URL('main.cjs', import.meta.url));
const cache = filename + '.cache';
const script = new Script(readFileSync(filename, 'latin1'), {
  filename,
  cachedData: existsSync(cache) ? readFileSync(cache) : undefined,
});
if (script.cachedDataRejected === undefined) process.on('exit', () => writeFileSync(cache, script.createCachedData()));
script.runInThisContext()(createRequire(filename));
`;
