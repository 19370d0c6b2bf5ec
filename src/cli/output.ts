/** What `--output` names. */
import { CurlewError } from '../core/errors.ts';

/** What `-o` calls standard output. */
export const STANDARD_OUTPUT = '-';

/** A path; undefined for standard output, which is also where a result goes without the option. */
export function outputOf(output: string | undefined): string | undefined {
  return output === STANDARD_OUTPUT ? undefined : output;
}

/** Reads `--output` of a command that writes files and nothing else: standard output is `USAGE`. */
export function fileOf(command: string): (text: string) => string {
  return (text) => {
    if (text !== STANDARD_OUTPUT) return text;
    throw new CurlewError('USAGE', `curlew ${command}: it writes to a file, not to standard output`, {
      hint: 'name one with -o FILE',
    });
  };
}
