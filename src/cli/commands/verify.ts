/** `curlew verify`: proof that packages and bundles are whole and hold nothing but what their tables of contents say. */
import { dirname, resolve } from 'node:path';
import { checkParts } from '../../bundle/parts/join-parts.ts';
import { partsError } from '../../bundle/parts/parts-find.ts';
import { describeDelta } from '../../bundle/delta/delta-read.ts';
import type { DeltaJson } from '../../core/bundle.ts';
import { counted } from '../../core/counted.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isHeadPath } from '../../core/parts.ts';
import type { Command, CommandContext } from '../command.ts';
import { checkedIndex } from '../install-source.ts';
import { NETWORK_OPTIONS } from '../network.ts';
import { openArchive } from '../open-archive.ts';
import { proveWhole } from '../prove-whole.ts';
import { SIGNED_OPTIONS, trustOf } from '../signed.ts';
import { deltaLines } from '../render/delta.ts';
import { formatBytes } from '../render/units.ts';

interface Verified {
  readonly path: string;
  readonly size: number;
  readonly files: number;
  /** Digest of the table of contents: it names every other byte. */
  readonly digest: Digest;
  /** The public key whose signature holds, where signatures were asked for. */
  readonly signedBy?: string | undefined;
  /** The bundle that a delta makes. */
  readonly delta?: DeltaJson | undefined;
}

export const verify: Command<readonly Verified[]> = {
  name: 'verify',
  summary: 'Prove that packages or bundles are undamaged',
  operands: 'FILE…',
  options: { ...SIGNED_OPTIONS, config: NETWORK_OPTIONS.config },
  examples: [
    'curlew verify bundle.tar.gz',
    'curlew verify packages/*.tar.gz',
    'curlew verify bundle.tar.gz --key curlew.pub',
    'curlew verify bundle.tar.gz.parts.json',
  ],
  run: async (args, context) => {
    const { cwd } = context;
    if (args.positionals.length === 0) {
      throw new CurlewError('USAGE', 'curlew verify: no file named', { hint: 'curlew verify FILE…' });
    }
    const trust = await trustOf(args, context);
    const verified: Verified[] = [];
    for (const path of args.positionals) {
      const file = resolve(cwd, path);
      if (isHeadPath(file)) await proveParts(file, context);
      await using source = await openArchive(file, context);
      const signed = trust === undefined ? undefined : await checkedIndex(source, source.whole, { ...context, trust });
      const index = await proveWhole(source, path, context);
      const { size, entries, tocDigest: digest } = index;
      const delta = await describeDelta(source, index, context);
      verified.push({ path, size, files: entries.length, digest, signedBy: signed?.signedBy, delta });
    }
    return verified;
  },
  render: (verified) =>
    verified
      .map(({ path, size, files, digest, signedBy, delta }) =>
        [
          `${path}: ok, ${counted(files, 'file')}, ${formatBytes(size)}`,
          `contents ${digest}`,
          ...(signedBy === undefined ? [] : [`signed with ${signedBy}`]),
          ...(delta === undefined ? [] : deltaLines(delta)),
        ].join('\n'),
      )
      .join('\n'),
};

/** Before the whole: it is of use to know which part has to be copied again. */
async function proveParts(head: string, { report, signal }: CommandContext): Promise<void> {
  const found = await checkParts(head, { folders: [dirname(head)], report, signal });
  const problem = partsError(`verify ${head}`, found);
  if (problem !== undefined) throw problem;
}
