/** `curlew apply`: the whole bundle, from a delta and what is there. */
import { NETWORK_OPTIONS, SIGNED_OPTIONS } from '../options.ts';
import { resolve } from 'node:path';
import { applyDelta, findHolders } from '../../bundle/delta/apply.ts';
import { joinBases, openBase } from '../../bundle/delta/base.ts';
import { readDelta } from '../../bundle/delta/delta-read.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { refuseExisting } from '../../platform/files/name-file.ts';
import type { Command } from '../command.ts';
import { checkedIndex } from '../../app/ports/install-source.ts';
import { openArchive } from '../../app/archives/open-archive.ts';
import { fileOutputOf } from '../output.ts';
import { formatBytes } from '../render/units.ts';
import { trustOf } from '../../app/ports/trust.ts';

interface Applied {
  readonly file: string;
  readonly size: number;
  /** Bytes of the delta. */
  readonly delta: number;
  /** Of the table of contents of the bundle. */
  readonly digest: Digest;
  /** The public key that has signed the delta, where signatures were asked for. */
  readonly signedBy?: string | undefined;
}

export const apply: Command<Applied> = {
  name: 'apply',
  summary: 'Make the whole bundle of a delta and what is there',
  operands: 'DELTA',
  options: {
    base: {
      type: 'string',
      multiple: true,
      value: 'PLACE',
      help: 'bundle, folder of bundles or install folder that has the rest; may be repeated',
    },
    output: { type: 'string', short: 'o', value: 'FILE', help: 'the bundle to write' },
    force: { type: 'boolean', help: 'replace the file if it is there' },
    ...SIGNED_OPTIONS,
    config: NETWORK_OPTIONS.config,
  },
  details:
    'The result is bit for bit the bundle that the delta was made of, so signatures of that bundle hold for it. A base ' +
    'that lacks something is refused with what it lacks, before anything is written.',
  examples: ['curlew apply delta.tar.gz --base bundle-1.tar.gz -o bundle-2.tar.gz'],
  run: async (args, context) => {
    const { cwd, report, signal } = context;
    const [path] = args.positionals;
    const output = fileOutputOf(args, 'apply');
    const places = args.texts('base');
    if (path === undefined || output === undefined || places.length === 0) {
      throw new CurlewError('USAGE', 'curlew apply: one delta, a base and a file to write are needed', {
        hint: 'curlew apply DELTA --base PLACE -o FILE',
      });
    }
    const [from, file, force] = [resolve(cwd, path), resolve(cwd, output), args.flag('force')];
    const trust = await trustOf(args.options, context, { role: 'bundle' });
    await refuseExisting(file, force);
    await using source = await openArchive(from, context);
    const index = await checkedIndex(source, source.whole, { ...context, trust });
    const delta = await readDelta(source, index, { signal });
    if (delta === undefined) {
      throw new CurlewError('PACKAGE_INVALID', `apply ${path}: it is no delta`, {
        hint: 'curlew bundle --since makes one',
      });
    }
    const bases = [];
    for (const place of places) bases.push(await openBase(resolve(cwd, place), { report, signal }));
    const holderOf = await findHolders(delta, joinBases(bases), { doing: `apply ${path}`, signal });
    await applyDelta(delta, holderOf, file, { force, report, signal });
    const { size, tocDigest: digest } = delta.full;
    return { file, size, delta: index.size, digest, signedBy: index.signed?.by };
  },
  render: ({ file, size, delta, digest, signedBy }) => {
    const signature = signedBy === undefined ? '' : `\nthe delta is signed with ${signedBy}`;
    return `${file}: ${formatBytes(size)}, ${formatBytes(delta)} of it by the delta\ncontents ${digest}${signature}`;
  },
};
