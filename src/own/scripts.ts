/**
 * The folder with hook-runner.sh, cap-log.sh, confine.sh and lib/, and that of the pages. In the executable for nodes, a module that unpacks the
 * embedded scripts replaces this one (scripts/node-tool/code.ts).
 */
import { fileURLToPath } from 'node:url';

/** The folder with the pages of the documentation; undefined in the executable for nodes. */
export function ownPages(): string | undefined {
  return fileURLToPath(new URL('../../docs', import.meta.url));
}

export function ownScripts(): string {
  return fileURLToPath(new URL('../../scripts', import.meta.url));
}
