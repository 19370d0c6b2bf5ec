/** Verifies the folder that a bundle was unpacked into, before an install takes its files. */
import { join } from 'node:path';
import type { Reporting } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import { countBytes, reportStep } from '../../core/events.ts';
import { prefixOf } from '../../core/layout.ts';
import { formatRef } from '../../core/ref.ts';
import type { ArchiveIndex } from '../../formats/archive/entry.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { entriesByPackage } from '../../runtime/node/source.ts';
import { FILES_AT_ONCE, refuseUnlisted } from '../../runtime/node/source-folder.ts';
import { readVerified, UNPACK_AGAIN } from '../../runtime/node/verified-file.ts';
import type { Signed, Trust } from '../open/trust.ts';
import { openUnpacked } from './install-source.ts';

interface Options extends Reporting {
  /** Verifies the signature in the folder; undefined if none is required. */
  readonly trust: Trust | undefined;
}

/**
 * Reads every file of the table of contents. `DIGEST_MISMATCH` if one is missing or differs, `PACKAGE_INVALID` if a package has
 * another file. Files outside of packages that the contents do not list are not looked at. Returns the bytes of the files as `size`.
 */
export async function verifyUnpacked(
  folder: string,
  title: string,
  { trust, report, signal }: Options,
): Promise<Pick<ArchiveIndex, 'entries' | 'tocDigest' | 'size'> & { readonly signed: Signed | undefined }> {
  const { packages, index, signed } = await openUnpacked(folder, { directory: folder, trust, signal });
  const { entries, tocDigest } = index;
  const found = new Set(packages.map(({ ref }) => prefixOf(ref)));
  const lost = entriesByPackage(entries).find(({ ref }) => !found.has(prefixOf(ref)));
  if (lost !== undefined) {
    throw new CurlewError('DIGEST_MISMATCH', `${title}: the package ${formatRef(lost.ref)} is missing or incomplete`, {
      hint: 'an install moves packages to its install folder, where curlew verify --installed checks them; or unpack the bundle again',
    });
  }
  const size = entries.reduce((sum, entry) => sum + entry.size, 0);
  const check = async (): Promise<void> => {
    for (const { ref, files } of packages)
      await refuseUnlisted(join(folder, prefixOf(ref)), new Set(files.map(({ path }) => path)));
    const onBytes = countBytes(report, title);
    const read = async (entry: (typeof entries)[number], within: Pick<Options, 'signal'>): Promise<void> => {
      for await (const chunk of readVerified([join(folder, entry.path)], entry, within.signal, UNPACK_AGAIN)) {
        onBytes(chunk.byteLength);
      }
    };
    await eachLimited(entries, read, { width: FILES_AT_ONCE, signal });
  };
  await reportStep(report, { id: title, title, bytes: size }, check, () => 'whole');
  return { entries, tocDigest, size, signed };
}
