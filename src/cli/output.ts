/** The `--output` option. */

/** The value of `-o` for standard output. */
export const STANDARD_OUTPUT = '-';

/** A path; undefined for standard output, which is also the default. */
export function commandOutput(output: string | undefined): string | undefined {
  return output === STANDARD_OUTPUT ? undefined : output;
}
