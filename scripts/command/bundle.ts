/**
 * The command and the library, as the npm package has them: few files, npm packages inside. Node reads hundreds of
 * small modules twice as slowly, and a command is started far more often than it is built.
 */
import type { Metafile, Plugin } from 'esbuild';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ABSENT } from '../node-tool/code.ts';
import { buildInChunks, COMMAND } from './chunks.ts';

/** Packages that stay outside: nothing installs them, and what asks for them does without. */
export const OUTSIDE: readonly string[] = ABSENT;
/** CommonJS packages ask for modules of Node by `require`. No module has the other name at its top. */
export const REQUIRE =
  "import { createRequire as createRequireOfChunk } from 'node:module'; const require = createRequireOfChunk(import.meta.url);";

/** Below Node 22 the AWS SDK would print a warning about its later releases, which users cannot act on. */
export const DEFINE: Readonly<Record<string, string>> = {
  'process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED': '"true"',
};

/** docker-modem can reach engines by ssh, with native code; curlew reaches none that way. */
export const WITHOUT_SSH: Plugin = {
  name: 'without-ssh',
  setup: (bundler) => {
    bundler.onResolve({ filter: /^ssh2$/ }, ({ path }) => ({ path, namespace: 'without-ssh' }));
    bundler.onLoad({ filter: /./, namespace: 'without-ssh' }, () => ({ contents: 'module.exports = {};' }));
  },
};

/** What runs in threads; their files are in the folder of the command. */
export const WORKERS: readonly string[] = [
  'src/formats/archive/frame-worker.ts',
  'src/formats/oci/layer-worker.ts',
  'src/ship/serve/plan-worker.ts',
];

/**
 * Bundles the checkout `root` into the folder `to`: `main.js`, `index.js` (the library), `conformance.js`, the workers and their
 * chunks, all in that one folder, with the licenses of the npm packages inside. It must be two levels below a folder with `scripts` and `package.json`. Same sources, same bytes.
 */
export async function bundleCommand(root: string, to: string): Promise<void> {
  const { outputFiles, metafile } = await buildInChunks(root, {
    entryPoints: [COMMAND, 'src/index.ts', 'src/conformance/conformance.ts', ...WORKERS],
    outdir: to,
    external: [...OUTSIDE],
    target: 'node20',
    banner: { js: REQUIRE },
    define: DEFINE,
    plugins: [WITHOUT_SSH],
    sourcemap: 'linked',
    sourcesContent: false,
  });
  await mkdir(to, { recursive: true });
  for (const { path, text } of outputFiles) {
    const rest = text.replace(REQUIRE, '');
    // The line stays, for the source maps. Most chunks need no `require`, and creating it takes longer than reading them.
    await writeFile(path, /\brequire\b/.test(rest) ? text : rest);
  }
  await chmod(join(to, 'main.js'), 0o755);
  await writeFile(join(to, 'licenses.txt'), await licensesOf(root, metafile));
}

/** The license of each npm package in a build; an error if one does not say what it is. */
async function licensesOf(root: string, { inputs }: Metafile): Promise<string> {
  const folders = Object.keys(inputs).flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []);
  const texts = [...new Set(folders)].toSorted().map(async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8')) as {
      readonly name: string;
      readonly version: string;
      readonly license?: string;
    };
    if (license === undefined) throw new Error(`${folder} names no license`);
    const files = (await readdir(join(root, folder))).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
    const own = files.toSorted().map(async (file) => (await readFile(join(root, folder, file), 'utf8')).trim());
    return [`${name} ${version}: ${license}`, ...(await Promise.all(own))].join('\n\n');
  });
  return `${(await Promise.all(texts)).join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}
