/** Creates the complete bundle from a delta and its base. */
import { resolve } from 'node:path';
import { applyDelta, findHolders } from '../ship/bundle/delta/apply.ts';
import { joinBases, openBase } from '../ship/bundle/delta/base.ts';
import { readDelta } from '../ship/bundle/delta/delta-read.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { openArchive } from '../ship/bundle/open-archive.ts';
import { checkedIndex } from '../steps/sources/install-source.ts';
import { trustOf } from '../steps/open/trust.ts';
import { APPLY } from '../requests/bundle.ts';
import { useCase } from '../core/request.ts';

export interface Applied {
  readonly file: string;
  readonly size: number;
  /** Bytes of the delta. */
  readonly delta: number;
  /** Digest of the bundle's table of contents. */
  readonly digest: Digest;
  /** The public key that has signed the delta, where signatures were asked for. */
  readonly signedBy?: string | undefined;
}

/** The result is byte-identical to the bundle that the delta was created from. An incomplete base is refused before any write. */
export const apply = useCase(APPLY, async (request, context): Promise<Applied> => {
  const { cwd, report, signal } = context;
  const { delta: path, base, force = false } = request;
  const file = resolve(cwd, request.output);
  const trust = await trustOf(request, context, { role: 'bundle' });
  await refuseExisting(file, force);
  await using source = await openArchive(resolve(cwd, path), { signal, shown: path });
  const index = await checkedIndex(source, source.whole, { ...context, trust });
  const delta = await readDelta(source, index, { signal });
  if (delta === undefined) {
    throw new CurlewError('PACKAGE_INVALID', `cannot apply ${path}: it is not a delta`, {
      hint: 'curlew bundle --since creates one',
    });
  }
  const bases = [];
  for (const place of base) bases.push(await openBase(resolve(cwd, place), { report, signal, shown: place }));
  const holderOf = await findHolders(delta, joinBases(bases), { doing: `apply ${path}`, signal });
  await applyDelta(delta, holderOf, file, { force, report, signal });
  const { size, tocDigest: digest } = delta.full;
  return { file, size, delta: index.size, digest, signedBy: index.signed?.by };
});
