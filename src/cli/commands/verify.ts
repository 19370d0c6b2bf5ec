/** `curlew verify`: proof that packages and bundles are whole and hold nothing but what their tables of contents say. */
import { resolve } from 'node:path';
import { openFileSource } from '../../archive/read.ts';
import { verifyArchive } from '../../archive/verify.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import type { Command } from '../command.ts';
import { formatBytes } from '../render/units.ts';

interface Verified {
  readonly path: string;
  readonly size: number;
  readonly files: number;
  /** Digest of the table of contents: it names every other byte. */
  readonly digest: Digest;
}

export const verify: Command<readonly Verified[]> = {
  name: 'verify',
  summary: 'Prove that packages or bundles are undamaged',
  operands: 'FILE…',
  options: {},
  examples: ['curlew verify bundle.tar.gz', 'curlew verify packages/*.tar.gz'],
  run: async (args, { cwd, report, signal }) => {
    if (args.positionals.length === 0) {
      throw new CurlewError('USAGE', 'curlew verify: no file named', { hint: 'curlew verify FILE…' });
    }
    const verified: Verified[] = [];
    for (const path of args.positionals) {
      await using source = await openFileSource(resolve(cwd, path));
      const index = await reportStep(
        report,
        { id: path, title: path, bytes: source.size },
        async () =>
          verifyArchive(source, {
            signal,
            onBytes: (bytes) => {
              report({ type: 'step-progress', id: path, bytes });
            },
          }),
        () => 'whole',
      );
      verified.push({ path, size: index.size, files: index.entries.length, digest: index.tocDigest });
    }
    return verified;
  },
  render: (verified) =>
    verified
      .map(({ path, size, files, digest }) => `${path}: ok, ${files} files, ${formatBytes(size)}\ncontents ${digest}`)
      .join('\n'),
};
