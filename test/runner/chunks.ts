/**
 * Chunks of compiled code as scripts, each with what V8 made of it when it first ran: a start of a test or of the command would
 * be mostly compiling. V8 keeps such a cache of scripts only, so chunks become CommonJS.
 */
import { transform, type BuildResult } from 'esbuild';
import { execa } from 'execa';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { REQUIRE } from '../../scripts/command/bundle.ts';

export type Built = BuildResult<{ metafile: true; write: false }>;

interface Places {
  readonly to: string;
  /** Paths of all files of the build. */
  readonly known: ReadonlySet<string>;
}

/** Where in the folder of a build its loader is. */
const LOADER = 'load.cjs';

/**
 * Writes what esbuild made of ESM with `splitting` below `folder`, which may be relative to `root`. Entry points without exports
 * stay modules, since they may wait at their top; those with exports, and all other chunks, can be loaded as scripts.
 */
export async function writeChunks({ outputFiles, metafile }: Built, root: string, folder: string): Promise<void> {
  const to = join(root, folder);
  const texts = new Map(outputFiles.map(({ path, text }) => [path, text]));
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  };
  const known = new Set(texts.keys());
  const scripts: string[] = [];
  const chunk = async (path: string, text: string): Promise<void> => {
    const { code, map } = await scriptOf(text, texts.get(`${path}.map`));
    scripts.push(path);
    await write(scriptPath(path), code);
    if (map !== '') await write(`${scriptPath(path)}.map`, map);
  };
  const one = async (path: string, text: string): Promise<void> => {
    const { entryPoint, exports = [] } = metafile.outputs[relative(root, path)] ?? {};
    const isEntry = entryPoint !== undefined && !path.startsWith(join(to, 'chunks/'));
    if (isEntry && exports.length === 0) {
      await write(path, moduleOf(text, path, { to, known }));
      const map = texts.get(`${path}.map`);
      if (map !== undefined) await write(`${path}.map`, map);
      return;
    }
    await chunk(path, text);
    if (isEntry) await write(path, stubOf(path, exports, to));
  };
  await write(join(to, LOADER), LOAD);
  await Promise.all(
    outputFiles.filter(({ path }) => path.endsWith('.js')).map(async ({ path, text }) => one(path, text)),
  );
  const warm = `const load = require(${JSON.stringify(join(to, LOADER))}); load.keep(${JSON.stringify(scripts.toSorted().map((path) => relative(to, path)))});`;
  await execa(process.execPath, ['-'], { input: warm });
}

function scriptPath(path: string): string {
  return path.replace(/\.js$/, '.cjs');
}

async function scriptOf(
  text: string,
  map: string | undefined,
): Promise<{ readonly code: string; readonly map: string }> {
  const url = `data:application/json;base64,${Buffer.from(map ?? '').toString('base64')}`;
  const own = text.replace(REQUIRE, '').replace(/\n\/\/# sourceMappingURL=.*\n?$/, `\n//# sourceMappingURL=${url}`);
  const { code, map: made } = await transform(own, {
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    // V8's cache forgets how to import.
    supported: { 'dynamic-import': false },
    sourcemap: map !== undefined,
    sourcesContent: false,
    logLevel: 'error',
  });
  return { code: `(function(module,require){${code}\n})`, map: made };
}

/** The line that gives a module its loader; the next keeps its number. */
function prelude(path: string, to: string): string {
  const loader = JSON.stringify(`./${relative(dirname(path), join(to, LOADER))}`);
  return `import { createRequire as createLoader } from 'node:module';const loadChunk = createLoader(import.meta.url)(${loader});`;
}

const IMPORT = /(?<=^|;)import ?(?:\{([^}]*)\} ?from ?)?"(\.[^"]+\.js)";/gm;
const LATER = /\bimport\("(\.[^"]+\.js)"\)/g;

/** A module that has its chunks from the loader. */
function moduleOf(text: string, path: string, { to, known }: Places): string {
  const call = (from: string): string | undefined => {
    const chunk = join(dirname(path), from);
    return known.has(chunk) ? `loadChunk(${JSON.stringify(relative(to, chunk))})` : undefined;
  };
  const code = text
    .replace(/^#!.*/, '')
    .replaceAll(IMPORT, (whole, names: string | undefined, from: string) => {
      const loaded = call(from);
      if (loaded === undefined) return whole;
      return names === undefined ? `${loaded};` : `const {${names.replaceAll(' as ', ': ')}} = ${loaded};`;
    })
    .replaceAll(LATER, (whole, from: string) => {
      const loaded = call(from);
      return loaded === undefined ? whole : `Promise.resolve().then(() => ${loaded})`;
    });
  return `${prelude(path, to)}${code}`;
}

/** A module with the exports of a chunk. */
function stubOf(path: string, exports: readonly string[], to: string): string {
  const names = exports.filter((name) => name !== 'default').join(', ');
  return `${prelude(path, to)}\nexport const { ${names} } = loadChunk(${JSON.stringify(relative(to, path))});\n`;
}

const LOAD = `'use strict';
const { readFileSync, writeFileSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { Script } = require('node:vm');

const chunks = new Map();
/** Scripts by path, to keep what V8 makes of them; undefined where it is read. */
let fresh;

/** Runs the chunk at a path below this folder, once; one that imports another which is about to run sees what that declares, as modules do. */
function load(path) {
  const known = chunks.get(path);
  if (known !== undefined) return known.exports;
  const base = join(__dirname, path.slice(0, -2));
  const script = new Script(readFileSync(base + 'cjs', 'utf8'), {
    // Coverage counts only what has a URL.
    filename: 'file://' + base + 'cjs',
    cachedData: fresh === undefined ? readFileSync(base + 'cache') : undefined,
  });
  fresh?.set(base + 'cache', script);
  const chunk = { exports: {} };
  chunks.set(path, chunk);
  try {
    script.runInThisContext()(chunk, (name) => (name.startsWith('.') ? load(join(dirname(path), name)) : require(name)));
  } catch (error) {
    chunks.delete(path);
    throw error;
  }
  return chunk.exports;
}

/** Runs all chunks and keeps what V8 made of them. */
load.keep = (paths) => {
  fresh = new Map();
  for (const path of paths) load(path);
  for (const [path, script] of fresh) writeFileSync(path, script.createCachedData());
  process.exit();
};

module.exports = load;
`;
