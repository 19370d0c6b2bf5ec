/**
 * What `npm run build` makes, with real executables for nodes. The runner finds by the imports of this module which test
 * files wait for the build.
 */
import { join } from 'node:path';

/** The checkout itself. */
export const CHECKOUT: string = join(import.meta.dirname, '../..');
/** The command, whose bundles hold real executables. */
export const BUILT_MAIN: string = join(CHECKOUT, 'dist/cli/main.js');
/** The Nodes that executables are made of, as the build keeps them. */
export const NODES: string = join(CHECKOUT, '.curlew/node');

/** Path of a file beside the executables. */
export function built(name: string): string {
  return join(CHECKOUT, 'dist/node', name);
}
