/**
 * Makes dist/node/curlew.mjs: the whole command as one file, for bundles. It brings the scripts that hooks need and its
 * own version, since nothing lies beside it; what only building needs stays out.
 * usage: tsx scripts/build-node-tool.ts
 */
import { build, type Plugin } from 'esbuild';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** Cannot be part of one file (native code, folders of its own), and is of no use on a node. */
const LEFT_OUT = 'dockerode';

async function scriptTexts(): Promise<Readonly<Record<string, string>>> {
  const library = await readdir(join(ROOT, 'scripts/lib'));
  const paths = ['hook-runner.sh', 'confine.sh', ...library.toSorted().map((name) => `lib/${name}`)];
  const texts = paths.map(async (path) => [path, await readFile(join(ROOT, 'scripts', path), 'utf8')] as const);
  return Object.fromEntries(await Promise.all(texts));
}

/** What stands in for `src/store/s3.ts`: the SDK is as large as all the rest, and bundles are for machines without it. */
const NO_S3 = `import { CurlewError } from ${JSON.stringify(join(ROOT, 'src/core/errors.ts'))};
export function createS3Store() {
  throw new CurlewError('UNSUPPORTED', 'open a store in S3: the curlew of a bundle cannot', {
    hint: 'install curlew from its package, which can',
  });
}`;

/** What stands in for `src/cli/own-scripts.ts`: unpacks once, takes everything away at the end. */
function ownScriptsModule(texts: Readonly<Record<string, string>>): string {
  return `import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
const TEXTS = ${JSON.stringify(texts)};
let folder;
export function ownScripts() {
  if (folder !== undefined) return folder;
  folder = mkdtempSync(join(tmpdir(), 'curlew-scripts-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(TEXTS)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text, { mode: 0o755 });
  }
  return folder;
}`;
}

/** Puts these texts in the place of modules, by the end of their path. */
function replaced(modules: Readonly<Record<string, string>>): Plugin {
  return {
    name: 'replaced',
    setup: (bundler) => {
      for (const [path, contents] of Object.entries(modules)) {
        const filter = new RegExp(`/${path.replaceAll('.', String.raw`\.`)}$`);
        bundler.onLoad({ filter }, () => ({ contents, loader: 'js' }));
      }
    },
  };
}

/** A module whose use is an error that a user understands. */
function leftOut(name: string): Plugin {
  const contents = `import { CurlewError } from ${JSON.stringify(join(ROOT, 'src/core/errors.ts'))};
export default function () {
  throw new CurlewError('UNSUPPORTED', 'use a Docker engine: the curlew of a bundle cannot', {
    hint: 'install curlew from its package, which can',
  });
}`;
  return {
    name: 'left-out',
    setup: (bundler) => {
      bundler.onResolve({ filter: new RegExp(`^${name}$`) }, ({ path }) => ({ path, namespace: 'left-out' }));
      bundler.onLoad({ filter: /./, namespace: 'left-out' }, () => ({ contents, loader: 'js', resolveDir: ROOT }));
    },
  };
}

const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
await build({
  entryPoints: [join(ROOT, 'src/cli/main.ts')],
  outfile: join(ROOT, 'dist/node/curlew.mjs'),
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  legalComments: 'inline',
  logLevel: 'warning',
  // Packages in CommonJS ask for Node's own modules by require, which a module does not have.
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
  },
  plugins: [
    leftOut(LEFT_OUT),
    replaced({
      'src/store/s3.ts': NO_S3,
      'src/cli/own-scripts.ts': ownScriptsModule(await scriptTexts()),
      'src/cli/version.ts': `export function toolVersion() { return ${JSON.stringify(version)}; }`,
    }),
  ],
});
