/**
 * The folder with hook-runner.sh, cap-log.sh, confine.sh and lib/. In the executable for nodes another module takes the place
 * of this one, which unpacks the scripts that it carries (scripts/node-tool/code.ts).
 */
import { fileURLToPath } from 'node:url';

export function ownScripts(): string {
  return fileURLToPath(new URL('../../scripts', import.meta.url));
}
