/**
 * The command in chunks, of which each start reads only its own. The npm package has them as files
 * (`scripts/command/bundle.ts`), the executable for nodes inside itself (`scripts/node-tool/code.ts`).
 */
import { build, type BuildOptions, type BuildResult, type Plugin, type TransformOptions } from 'esbuild';
import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';

/** The entry point whose chunk is `main.js`. */
export const COMMAND = 'src/cli/main.ts';
/** The module that it loads once it listens for signals. */
const STARTED = 'src/cli/start.ts';
/** The name by which a file asks for all that the command reads before its first line. */
const START = 'start-of-command';

/** How texts come out of the bundler: small, with the names, so that what a user reports can be read. */
export const READABLE = {
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
} as const satisfies BuildOptions & TransformOptions;

/** Bundles `COMMAND` and the other entry points of `options` without writing. Same sources, same bytes. */
export async function buildInChunks(
  root: string,
  options: BuildOptions,
): Promise<BuildResult<{ metafile: true; write: false }>> {
  const all = {
    ...READABLE,
    ...options,
    absWorkingDir: root,
    entryNames: '[name]',
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
  } as const;
  return build({ ...all, plugins: [...(options.plugins ?? []), await oneStart(root, all)] });
}

/**
 * Modules that each start of the command needs, in one chunk. A bundler makes one for each set of entry points that
 * share modules, so that a start would read dozens of small files. Whatever is loaded later asks for them, too, and
 * they then have one set.
 */
async function oneStart(root: string, options: BuildOptions): Promise<Plugin> {
  const { metafile } = await build({ ...options, logLevel: 'silent', metafile: true, write: false });
  const { inputs } = metafile;
  const imported = (path: string, dynamic: boolean): readonly string[] => {
    const found = inputs[path]?.imports ?? [];
    return found.flatMap((one) =>
      one.external !== true && (one.kind === 'dynamic-import') === dynamic ? one.path : [],
    );
  };
  const start = new Set<string>();
  const queue = [...imported(COMMAND, false), ...(STARTED in inputs ? [STARTED] : [])];
  for (const path of queue) {
    if (start.has(path)) continue;
    start.add(path);
    queue.push(...imported(path, false));
  }
  const later = new Set(Object.keys(inputs).flatMap((path) => imported(path, true)));
  return {
    name: 'one-start',
    setup: (bundler) => {
      bundler.onResolve({ filter: new RegExp(`^${START}$`) }, () => ({ path: START, namespace: START }));
      bundler.onLoad({ filter: /./, namespace: START }, () => {
        const lines = [...start]
          .filter((path) => path.startsWith('src/'))
          .toSorted()
          .map((path) => `import ${JSON.stringify(`./${path}`)};`);
        return { contents: lines.join('\n'), resolveDir: root };
      });
      bundler.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const own = relative(root, path);
        if (!later.has(own) || start.has(own)) return undefined;
        return { contents: `${await readFile(path, 'utf8')}\nimport '${START}';\n`, loader: 'ts' };
      });
    },
  };
}
