/**
 * The command in chunks, of which each start reads only its own. The npm package has them as files
 * (`scripts/command/bundle.ts`), the executable for nodes inside itself (`scripts/node-tool/code.ts`).
 */
import { build, type BuildOptions, type BuildResult, type Plugin, type TransformOptions } from 'esbuild';
import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { groupModules } from './groups.ts';

/** The entry point whose chunk is `main.js`. */
export const COMMAND = 'src/cli/main.ts';
/** The module that it loads once it listens for signals. */
const STARTED = 'src/cli/start.ts';
/** Begins the names by which a file asks for modules that are read together. */
const GROUP = 'modules-of-group-';

/** How texts come out of the bundler: small, with the names, so that what a user reports can be read. */
export const READABLE = {
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
} as const satisfies BuildOptions & TransformOptions;

/** Options with paths of entry points. */
type Entered = Omit<BuildOptions, 'entryPoints'> & { readonly entryPoints: string[] };

/** Bundles `COMMAND` and the other entry points of `options` without writing. Same sources, same bytes. */
export async function buildInChunks(
  root: string,
  options: Entered,
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
  return build({ ...all, plugins: [...(options.plugins ?? []), await fewChunks(root, all)] });
}

/**
 * A bundler makes a chunk for each set of entry points that share modules, so that a command would read up to two hundred
 * small files. Here each module that is loaded later asks for all that the start has loaded, which is one chunk then, and for
 * whole groups of others.
 */
async function fewChunks(root: string, options: Entered): Promise<Plugin> {
  const { metafile } = await build({ ...options, logLevel: 'silent', metafile: true, write: false });
  const { inputs, outputs } = metafile;
  const imported = (path: string, dynamic: boolean): readonly string[] => {
    const found = inputs[path]?.imports ?? [];
    return found.flatMap((one) =>
      one.external !== true && (one.kind === 'dynamic-import') === dynamic ? one.path : [],
    );
  };
  const start = new Set<string>();
  const loadedWith = (path: string): ReadonlySet<string> => {
    const loaded = new Set([path]);
    for (const one of loaded) for (const other of imported(one, false)) if (!start.has(other)) loaded.add(other);
    return loaded;
  };
  for (const path of [COMMAND, ...(STARTED in inputs ? [STARTED] : [])]) {
    for (const one of loadedWith(path)) if (one !== COMMAND) start.add(one);
  }
  const later = [...new Set(Object.keys(inputs).flatMap((path) => imported(path, true)))].filter(
    (path) => !start.has(path),
  );
  const bytes = new Map<string, number>();
  for (const output of Object.values(outputs)) {
    for (const [path, { bytesInOutput }] of Object.entries(output.inputs)) {
      bytes.set(path, (bytes.get(path) ?? 0) + bytesInOutput);
    }
  }
  const isOwn = (path: string): boolean => path.startsWith('src/');
  const groups = [
    { paths: [...start], entries: later },
    ...groupModules({
      entries: [...later, ...options.entryPoints.filter((path) => path !== COMMAND && !later.includes(path))],
      loadedWith: memoized(loadedWith),
      bytesOf: (path) => bytes.get(path) ?? 0,
      isOwn,
    }),
  ];
  const asked = new Map<string, string[]>();
  for (const [at, { entries }] of groups.entries()) {
    for (const entry of entries) asked.set(entry, [...(asked.get(entry) ?? []), `import '${GROUP}${at}';`]);
  }
  return {
    name: 'few-chunks',
    setup: (bundler) => {
      bundler.onResolve({ filter: new RegExp(`^${GROUP}`) }, ({ path }) => ({ path, namespace: GROUP }));
      bundler.onLoad({ filter: /./, namespace: GROUP }, ({ path }) => {
        const { paths } = groups[Number(path.slice(GROUP.length))] ?? { paths: [] };
        const lines = paths
          .filter(isOwn)
          .toSorted()
          .map((one) => `import ${JSON.stringify(`./${one}`)};`);
        return { contents: lines.join('\n'), resolveDir: root };
      });
      bundler.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const lines = asked.get(relative(root, path));
        if (lines === undefined) return undefined;
        return { contents: `${await readFile(path, 'utf8')}\n${lines.join('\n')}\n`, loader: 'ts' };
      });
    },
  };
}

function memoized<Value>(of: (path: string) => Value): (path: string) => Value {
  const known = new Map<string, Value>();
  return (path) => {
    const value = known.get(path) ?? of(path);
    known.set(path, value);
    return value;
  };
}
