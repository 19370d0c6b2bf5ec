/** What `--output` names. */
import { CurlewError } from '../core/errors.ts';
import type { Arguments } from './command.ts';

/** What `-o` calls standard output. */
export const STANDARD_OUTPUT = '-';

/** A path; undefined for standard output, which is also where a result goes without the option. */
export function outputOf(args: Arguments): string | undefined {
  const output = args.text('output');
  return output === STANDARD_OUTPUT ? undefined : output;
}

/** Of a command that writes files and nothing else: standard output is `USAGE`. Undefined without the option. */
export function fileOutputOf(args: Arguments, command: string): string | undefined {
  const output = args.text('output');
  if (output !== STANDARD_OUTPUT) return output;
  throw new CurlewError('USAGE', `curlew ${command}: it writes to a file, not to standard output`, {
    hint: 'name one with -o FILE',
  });
}
