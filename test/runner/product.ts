/** The command under test, with what it finds beside it. */
import { build, type BuildOptions } from 'esbuild';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BUNDLED_TOOL, BUNDLED_TOOL_LICENSE, packedExecutableName } from '../../src/core/layout.ts';
import { ARCHES } from '../../src/core/ref.ts';
import { DEFINE, OUTSIDE, REQUIRE, WITHOUT_SSH, WORKERS } from '../../scripts/command/bundle.ts';
import { PRODUCT } from '../support/compiled.ts';
import { archiveOf } from '../support/packages.ts';
import { COMMAND } from '../../scripts/command/chunks.ts';
import { writeChunks } from './chunks.ts';
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
  await makeCommand(root, join(PRODUCT, 'dist/cli'));
  const launcher = `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`;
  const { bytes } = archiveOf([
    { path: BUNDLED_TOOL, data: launcher, mode: 0o755 },
    { path: BUNDLED_TOOL_LICENSE, data: 'The licenses of what a real one has inside.\n' },
  ]);
  for (const arch of ARCHES) await writeFile(join(product, 'dist/node', packedExecutableName(arch)), bytes);
}

/** The command in chunks, of which each start reads only its own; its threads have theirs in one text. */
async function makeCommand(root: string, to: string): Promise<void> {
  const options = {
    absWorkingDir: root,
    outdir: join(root, to),
    entryNames: '[name]',
    bundle: true,
    external: [...OUTSIDE],
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
    define: { ...DEFINE, ...OWN_PLACES },
    plugins: [WITHOUT_SSH, ownPlaces(root)],
    banner: { js: REQUIRE },
  } satisfies BuildOptions;
  const [built] = await Promise.all([
    build({
      ...options,
      entryPoints: [COMMAND],
      splitting: true,
      chunkNames: 'chunks/[name]-[hash]',
      metafile: true,
      write: false,
    }),
    build({ ...options, entryPoints: [...WORKERS] }),
  ]);
  await writeChunks(built, root, to);
}
