/**
 * The command and the library, as the npm package has them: few files, npm packages inside. Node reads hundreds of
 * small modules twice as slowly, and a command is started far more often than it is built.
 */
import { build } from 'esbuild';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ABSENT } from '../node-tool/code.ts';

/** Packages that stay outside: dockerode loads native code if it exists, and files next to its own. */
export const OUTSIDE: readonly string[] = [...ABSENT, 'dockerode'];
/** CommonJS packages ask for modules of Node by `require`. No module has the other name at its top. */
export const REQUIRE =
  "import { createRequire as createRequireOfChunk } from 'node:module'; const require = createRequireOfChunk(import.meta.url);";

/** Below Node 22 the AWS SDK would print a warning about its later releases, which users cannot act on. */
export const DEFINE: Readonly<Record<string, string>> = {
  'process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED': '"true"',
};

/** What runs in threads; their files are in the folder of the command. */
export const WORKERS: readonly string[] = ['src/formats/archive/frame-worker.ts', 'src/serve/plan-worker.ts'];

/**
 * Bundles the checkout `root` into the folder `to`: `main.js`, `index.js` (the library), `conformance.js`, the workers and their
 * chunks, all in that one folder. It must be two levels below a folder with `scripts` and `package.json`. Same sources, same bytes.
 */
export async function bundleCommand(root: string, to: string): Promise<void> {
  const { outputFiles } = await build({
    write: false,
    absWorkingDir: root,
    entryPoints: ['src/cli/main.ts', 'src/index.ts', 'src/conformance.ts', ...WORKERS],
    outdir: to,
    entryNames: '[name]',
    bundle: true,
    splitting: true,
    external: [...OUTSIDE],
    platform: 'node',
    format: 'esm',
    target: 'node20',
    banner: { js: REQUIRE },
    define: DEFINE,
    // Names stay, so that what a user reports can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'warning',
  });
  await mkdir(to, { recursive: true });
  for (const { path, text } of outputFiles) {
    const rest = text.replace(REQUIRE, '');
    // The line stays, for the source maps. Most chunks need no `require`, and creating it takes longer than reading them.
    await writeFile(path, /\brequire\b/.test(rest) ? text : rest);
  }
  await chmod(join(to, 'main.js'), 0o755);
}
