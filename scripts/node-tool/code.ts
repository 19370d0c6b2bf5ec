/**
 * The whole command as texts for a Node without other files. They include scripts for hooks, worker threads and the
 * version, but not what only building needs.
 */
import { build, transform, type BuildOptions, type Plugin } from 'esbuild';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { buildInChunks, COMMAND, READABLE } from '../command/chunks.ts';

/** Nodes do not need it. */
const LEFT_OUT = 'dockerode';
/** Optional dependencies that packages load at run time and that are not installed: the SBOM library writes XML with it. */
export const ABSENT = ['xmlbuilder2'];
/** The parts of `scripts` that the command itself uses, below that folder. */
const SCRIPTS = [
  'hook-runner.sh',
  'cap-log.sh',
  'confine.sh',
  'overlay-view.sh',
  'lib',
  'host-packages',
  'new',
  'completion',
];

/** The texts in an executable. */
export interface NodeToolCode {
  /** CommonJS that Node runs. */
  readonly main: string;
  /** What it asks for by name: chunks of the command as CommonJS, and what these read. */
  readonly assets: Readonly<Record<string, string>>;
}

/** Names of assets that are not chunks. */
const FRAME_WORKER = 'frame-worker.js';
const LAYER_WORKER = 'layer-worker.js';
const TEXTS = 'scripts.json';

/** What runs curlew; independent of the path of the checkout. */
export async function nodeToolCode(root: string, version: string): Promise<NodeToolCode> {
  const [main, frames, layers, scripts, chunks] = await Promise.all([
    oneText(root, 'scripts/node-tool/start.ts'),
    oneText(root, 'src/formats/archive/frame-worker.ts'),
    oneText(root, 'src/formats/oci/layer-worker.ts'),
    scriptTexts(root),
    commandChunks(root, {
      'src/formats/archive/start-frame-worker.ts': workerModule('startFrameWorker', FRAME_WORKER),
      'src/formats/oci/start-layer-worker.ts': workerModule('startLayerWorker', LAYER_WORKER),
      'src/ship/serve/start-plan-worker.ts': NO_PLANS,
      'src/own/root-files.ts': NO_BUNDLES,
      'src/own/scripts.ts': SCRIPTS_MODULE,
      'src/own/version.ts': `export function toolVersion() { return ${JSON.stringify(version)}; }`,
    }),
  ]);
  const workers = { [FRAME_WORKER]: frames, [LAYER_WORKER]: layers };
  return { main, assets: { ...chunks, ...workers, [TEXTS]: JSON.stringify(scripts) } };
}

const OPTIONS = {
  ...READABLE,
  // Paths are part of the text.
  preserveSymlinks: true,
  external: ABSENT,
  platform: 'node',
  target: 'node24',
  // CommonJS has none. Said where a bundler makes ESM, too, it is found in its file.
  supported: { 'import-meta': false },
  logOverride: { 'empty-import-meta': 'error' },
} as const satisfies BuildOptions;

async function oneText(root: string, entry: string): Promise<string> {
  const { outputFiles } = await build({
    ...OPTIONS,
    absWorkingDir: root,
    entryPoints: [entry],
    write: false,
    bundle: true,
    format: 'cjs',
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error(`esbuild made nothing of ${entry}`);
  return file.text;
}

/** The command as chunks of CommonJS, by name, with these texts in the place of modules. A bundler splits only ESM. */
export async function commandChunks(
  root: string,
  instead: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const { outputFiles } = await buildInChunks(root, {
    ...OPTIONS,
    entryPoints: [COMMAND],
    outdir: 'chunks',
    plugins: [leftOut(), replaced(root, instead)],
  });
  const chunks = outputFiles.map(async ({ path, text }) => {
    const { code } = await transform(text, {
      ...READABLE,
      format: 'cjs',
      platform: 'node',
      target: OPTIONS.target,
      // What was compiled by itself cannot import.
      supported: { 'dynamic-import': false },
    });
    return [basename(path), code] as const;
  });
  return Object.fromEntries(await Promise.all(chunks));
}

/** Puts these texts in the place of modules, by their path in the checkout. */
function replaced(root: string, modules: Readonly<Record<string, string>>): Plugin {
  return {
    name: 'replaced',
    setup: (bundler) => {
      const left = new Set(Object.keys(modules));
      bundler.onLoad({ filter: /[/]src[/].+[.]ts$/ }, ({ path }) => {
        const name = relative(root, path);
        const contents = modules[name];
        left.delete(name);
        return contents === undefined ? undefined : { contents, loader: 'ts', resolveDir: join(root, 'src') };
      });
      bundler.onEnd(() => ({ errors: [...left].map((name) => ({ text: `nothing imports ${name}` })) }));
    },
  };
}

function unsupported(what: string, hint: string): string {
  return `import { CurlewError } from './core/errors.ts';
function unsupported() {
  throw new CurlewError('UNSUPPORTED', ${JSON.stringify(what)}, { hint: ${JSON.stringify(hint)} });
}`;
}

const FROM_NPM = 'install curlew from its npm package, which can';

/** A module whose use is an error that a user understands. */
function leftOut(): Plugin {
  const contents = `${unsupported('the curlew for nodes cannot use a Docker engine', FROM_NPM)}
export default unsupported;`;
  return {
    name: 'left-out',
    setup: (bundler) => {
      const resolveDir = join(bundler.initialOptions.absWorkingDir ?? '', 'src');
      bundler.onResolve({ filter: new RegExp(`^${LEFT_OUT}$`) }, ({ path }) => ({ path, namespace: 'left-out' }));
      bundler.onLoad({ filter: /./, namespace: 'left-out' }, () => ({ contents, loader: 'ts', resolveDir }));
    },
  };
}

/** A bundle holds an executable for nodes, which this is: it cannot hold itself. */
const NO_BUNDLES = `${unsupported('the curlew for nodes cannot make a bundle', FROM_NPM)}
export {
  unsupported as readRootFiles,
  unsupported as openExecutable,
  unsupported as openExecutableFile,
  unsupported as openExecutableIndex,
  unsupported as executableDigest,
};`;

/** A node has no scripts to serve. */
const NO_PLANS = `${unsupported('the curlew for nodes cannot serve bundles', FROM_NPM)}
export { unsupported as startPlanWorker };`;

/** A module whose function `name` starts a thread that runs an asset. */
function workerModule(name: string, asset: string): string {
  return `import { getAsset } from 'node:sea';
import { Worker } from 'node:worker_threads';
export function ${name}(options) {
  return new Worker(getAsset(${JSON.stringify(asset)}, 'utf8'), { ...options, eval: true });
}`;
}

/** Replaces `src/own/scripts.ts`: the same functions, with embedded scripts. */
const SCRIPTS_MODULE = `import { getAsset } from 'node:sea';
import { unpackScripts } from './cli/unpack-scripts.ts';
let folder;
export function ownScripts() {
  folder ??= unpackScripts(JSON.parse(getAsset(${JSON.stringify(TEXTS)}, 'utf8')));
  return folder;
}
export function ownPages() {}`;

/** Texts by path below `scripts`, in an order that depends on nothing but the names. */
async function scriptTexts(root: string): Promise<Readonly<Record<string, string>>> {
  const folder = join(root, 'scripts');
  const paths: string[] = [];
  for (const name of SCRIPTS) {
    if (name.endsWith('.sh')) {
      paths.push(name);
      continue;
    }
    const found = await readdir(join(folder, name), { recursive: true, withFileTypes: true });
    paths.push(
      ...found.filter((entry) => entry.isFile()).map((entry) => join(relative(folder, entry.parentPath), entry.name)),
    );
  }
  const sorted = paths.toSorted();
  const texts = await Promise.all(sorted.map(async (path) => readFile(join(folder, path), 'utf8')));
  return Object.fromEntries(sorted.map((path, index) => [path, texts[index] ?? '']));
}
