/** The machine architecture that a command works for. */
import { CurlewError } from '../core/errors.ts';
import { ARCHES, type Arch } from '../core/ref.ts';
import type { Arguments } from './command.ts';

/** From `--arch`, amd64 by default. */
export function archOf(args: Arguments): Arch {
  const text = args.text('arch') ?? 'amd64';
  const arch = ARCHES.find((known) => known === text);
  if (arch === undefined) throw new CurlewError('USAGE', `--arch ${text}: known are ${ARCHES.join(', ')}`);
  return arch;
}
