/**
 * The folder with hook-runner.sh, cap-log.sh, confine.sh and lib/. In the executable for nodes, a module that unpacks the
 * embedded scripts replaces this one (scripts/node-tool/code.ts).
 */
import { fileURLToPath } from 'node:url';

export function ownScripts(): string {
  return fileURLToPath(new URL('../../scripts', import.meta.url));
}
