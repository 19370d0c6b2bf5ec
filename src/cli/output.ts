/** The `--output` option. */
import { CurlewError } from '../core/errors.ts';

/** The value of `-o` for standard output. */
export const STANDARD_OUTPUT = '-';

/** A path; undefined for standard output, which is also the default. */
export function outputOf(output: string | undefined): string | undefined {
  return output === STANDARD_OUTPUT ? undefined : output;
}

/** Parses `--output` of a command that can only write files: standard output is `USAGE`. */
export function fileOf(command: string): (text: string) => string {
  return (text) => {
    if (text !== STANDARD_OUTPUT) return text;
    throw new CurlewError('USAGE', `curlew ${command}: the output must be a file, not standard output`, {
      hint: 'use -o FILE',
    });
  };
}
