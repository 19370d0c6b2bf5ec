/**
 * The whole command as one text for a Node without other files. It includes scripts for hooks, worker threads and the
 * version, but not what only building needs.
 */
import { build, type Plugin } from 'esbuild';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';

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

/** CommonJS text that runs curlew; independent of the path of the checkout. */
export async function nodeToolCode(root: string, version: string): Promise<string> {
  const worker = await bundled(root, 'src/formats/archive/frame-worker.ts', {});
  return bundled(root, 'src/cli/main.ts', {
    'src/formats/archive/start-frame-worker.ts': workerModule(worker),
    'src/serve/start-plan-worker.ts': NO_PLANS,
    'src/bundle/root-files.ts': NO_BUNDLES,
    'src/own/scripts.ts': await ownScriptsModule(root),
    'src/own/version.ts': `export function toolVersion() { return ${JSON.stringify(version)}; }`,
  });
}

async function bundled(root: string, entry: string, instead: Readonly<Record<string, string>>): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    // Paths are part of the text.
    preserveSymlinks: true,
    entryPoints: [entry],
    write: false,
    bundle: true,
    external: ABSENT,
    platform: 'node',
    format: 'cjs',
    target: 'node24',
    // Names stay, so that what a user reports can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'warning',
    logOverride: { 'empty-import-meta': 'error' },
    plugins: [leftOut(), replaced(root, instead)],
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error(`esbuild made nothing of ${entry}`);
  return file.text;
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

function unsupported(doing: string, hint: string): string {
  return `import { CurlewError } from './core/errors.ts';
function unsupported() {
  throw new CurlewError('UNSUPPORTED', ${JSON.stringify(doing)}, { hint: ${JSON.stringify(hint)} });
}`;
}

const FROM_NPM = 'install curlew from its npm package, which can';

/** A module whose use is an error that a user understands. */
function leftOut(): Plugin {
  const contents = `${unsupported('use a Docker engine: the curlew for nodes cannot', FROM_NPM)}
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
const NO_BUNDLES = `${unsupported('make a bundle: the curlew for nodes cannot', FROM_NPM)}
export {
  unsupported as readRootFiles,
  unsupported as openExecutable,
  unsupported as openExecutableFile,
  unsupported as openExecutableIndex,
  unsupported as executableDigest,
};`;

/** A node has no scripts to serve. */
const NO_PLANS = `${unsupported('serve bundles: the curlew for nodes cannot', FROM_NPM)}
export { unsupported as startPlanWorker };`;

function workerModule(text: string): string {
  return `import { Worker } from 'node:worker_threads';
const TEXT = ${JSON.stringify(text)};
export function startFrameWorker(options) {
  return new Worker(TEXT, { ...options, eval: true });
}`;
}

/** Replaces `src/own/scripts.ts`: the same functions, with embedded scripts. */
async function ownScriptsModule(root: string): Promise<string> {
  const texts = JSON.stringify(await scriptTexts(root));
  return `import { unpackScripts } from './cli/unpack-scripts.ts';
const TEXTS = ${texts};
let folder;
export function ownScripts() {
  folder ??= unpackScripts(TEXTS);
  return folder;
}
export function ownPages() {}`;
}

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
