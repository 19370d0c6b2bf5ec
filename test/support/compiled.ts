/** Where `scripts/test` puts the compiled tests and the command that they start, below the checkout. */
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** Compiled modules: `<COMPILED>/test/core/ref.test.js`. */
export const COMPILED = '.curlew/tests/code';
/** The command with `dist` and `scripts`, as an npm package has them. */
export const PRODUCT = '.curlew/tests/product';

/** The process that lends servers to test files. */
export const LENDER_MODULE = 'test/components/support/lender/main.ts';

/** The process that runs one test file after another. */
export const HOST_MODULE = 'test/runner/host/main.ts';

/** Modules besides the tests themselves that processes of their own run or import. */
export const MODULES: readonly string[] = [
  'src/fleet/agent/folder.ts',
  'src/formats/archive/extract.ts',
  'src/formats/archive/read.ts',
  'src/cli/unpack-scripts.ts',
  'src/platform/files/partial.ts',
  'src/platform/limit/small-heap.ts',
  'src/runtime/hooks/control.ts',
  'src/runtime/node/source-folder.ts',
  'src/ship/store/folder.ts',
  HOST_MODULE,
  LENDER_MODULE,
  'test/components/support/faults/host.ts',
  'test/components/support/killed-run.ts',
  'test/support/killed-publish.ts',
  'test/support/preflight.ts',
  'test/support/suite.ts',
  'test/support/upload-once.ts',
];

/** Absolute path of what was compiled from one of `MODULES`. */
export function compiledModule(path: string): string {
  if (!MODULES.includes(path)) throw new Error(`${path} is none of the MODULES of test/support/compiled.ts`);
  return join(ROOT, COMPILED, path.replace(/\.ts$/, '.js'));
}

/** The command that tests start. */
export const MAIN: string = join(ROOT, PRODUCT, 'dist/cli/main.js');
