/**
 * The folder with hook-runner.sh, confine.sh and lib/. In the one-file tool for nodes another module takes the place of
 * this one, which unpacks the scripts that the file carries (scripts/build-node-tool.ts).
 */
import { fileURLToPath } from 'node:url';

export function ownScripts(): string {
  return fileURLToPath(new URL('../../scripts', import.meta.url));
}
