/** What `import.meta` says in compiled tests. */
import type { Plugin } from 'esbuild';
import { readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PRODUCT } from '../support/compiled.ts';

/** What esbuild puts in the place of `import.meta`, beside the plugin `ownPlaces`. */
export const OWN_PLACES: Readonly<Record<string, string>> = {
  'import.meta.url': 'moduleUrl',
  'import.meta.dirname': 'moduleFolder',
};

/**
 * `import.meta` of a module names its place in the checkout, not that of its chunk. For modules of the command it names a
 * place in the compiled one, since they look for what is beside it.
 */
export function ownPlaces(root: string): Plugin {
  return {
    name: 'own-places',
    setup: (bundler) => {
      bundler.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, 'utf8');
        if (!text.includes('import.meta.')) return { contents: text, loader: 'ts' };
        const own = relative(root, path).startsWith('src/')
          ? join(root, PRODUCT, 'dist/cli', `${path.slice(path.lastIndexOf('/') + 1, -3)}.js`)
          : path;
        const url = JSON.stringify(pathToFileURL(own).href);
        // On the first line, so that the others keep their numbers.
        const places = `const moduleUrl = ${url}, moduleFolder = ${JSON.stringify(dirname(own))};`;
        return { contents: `${places}${text}`, loader: 'ts' };
      });
    },
  };
}
