/** The proof that an archive is whole, with its progress. */
import type { ArchiveIndex, RangeSource } from '../archive/entry.ts';
import { verifyArchive } from '../archive/verify.ts';
import { reportStep } from '../core/events.ts';
import type { CommandContext } from './command.ts';

/** Like {@link verifyArchive}, as a step of this title. */
export async function proveWhole(
  source: RangeSource,
  title: string,
  { report, signal }: Pick<CommandContext, 'report' | 'signal'>,
): Promise<ArchiveIndex> {
  const onBytes = (bytes: number): void => {
    report({ type: 'step-progress', id: title, bytes });
  };
  return reportStep(
    report,
    { id: title, title, bytes: source.size },
    async () => verifyArchive(source, { signal, onBytes }),
    () => 'whole',
  );
}
