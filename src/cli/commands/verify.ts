/** `curlew verify`: proof that packages and bundles are whole and hold nothing but what their tables of contents say. */
import { resolve } from 'node:path';
import { openFileSource } from '../../archive/read.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Command } from '../command.ts';
import { checkedIndex } from '../install-source.ts';
import { NETWORK_OPTIONS } from '../network.ts';
import { proveWhole } from '../prove-whole.ts';
import { SIGNED_OPTIONS, trustOf } from '../signed.ts';
import { formatBytes } from '../render/units.ts';

interface Verified {
  readonly path: string;
  readonly size: number;
  readonly files: number;
  /** Digest of the table of contents: it names every other byte. */
  readonly digest: Digest;
  /** The public key whose signature holds, where signatures were asked for. */
  readonly signedBy?: string | undefined;
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
      await using source = await openFileSource(file);
      const signed = trust === undefined ? undefined : await checkedIndex(source, file, { ...context, trust });
      const { size, entries, tocDigest: digest } = await proveWhole(source, path, context);
      verified.push({ path, size, files: entries.length, digest, signedBy: signed?.signedBy });
    }
    return verified;
  },
  render: (verified) =>
    verified
      .map(({ path, size, files, digest, signedBy }) => {
        const signature = signedBy === undefined ? '' : `\nsigned with ${signedBy}`;
        return `${path}: ok, ${files} files, ${formatBytes(size)}\ncontents ${digest}${signature}`;
      })
      .join('\n'),
};
