/** Verifies that packages and bundles are complete and contain exactly what their tables of contents list. */
import { dirname, resolve } from 'node:path';
import { describeDelta } from '../ship/bundle/delta/delta-read.ts';
import { checkParts } from '../ship/bundle/parts/join-parts.ts';
import { partsError } from '../ship/bundle/parts/parts-find.ts';
import type { DeltaJson } from '../core/bundle.ts';
import type { Digest } from '../core/digest.ts';
import { isHeadPath } from '../core/parts.ts';
import { secondsOf } from '../formats/signing/claim.ts';
import { isUnpacked } from '../runtime/node/source-folder.ts';
import { verifyPlaced, type VerifiedNode } from '../runtime/history/verify-placed.ts';
import { openArchive } from '../ship/bundle/open-archive.ts';
import { verifyLayers } from '../steps/archives/verify-layers.ts';
import { verifyWhole, requireSignedFile } from '../steps/archives/verify-whole.ts';
import type { Context } from '../core/context.ts';
import { folderOf, installedFolder } from '../steps/node/install-folder.ts';
import { checkedIndex } from '../steps/sources/install-source.ts';
import { verifyUnpacked } from '../steps/sources/verify-unpacked.ts';
import { trustOf, type Signed } from '../steps/open/trust.ts';
import { VERIFY_FILES, VERIFY_INSTALLED } from '../requests/archive.ts';
import { useCase } from '../core/request.ts';

export interface Verified {
  readonly path: string;
  /** Bytes of the file; of an unpacked bundle, of its files. */
  readonly size: number;
  readonly files: number;
  /** Digest of the table of contents, which covers every other byte. */
  readonly digest: Digest;
  /** The public key whose signature holds, where signatures were asked for. */
  readonly signedBy?: string | undefined;
  /** Role and name in the signature; absent for a signature of only the contents. */
  readonly signedAs?: SignedAs | undefined;
  /** The bundle that a delta creates. */
  readonly delta?: DeltaJson | undefined;
}

export interface SignedAs {
  readonly role: string;
  readonly name: string;
  readonly version: number;
  /** ISO 8601. */
  readonly signed: string;
  /** Null if it is valid forever. */
  readonly expires: string | null;
}

/** Verifies signatures if the request or the configuration names keys. */
export const verify = useCase(VERIFY_FILES, async (request, context): Promise<readonly Verified[]> => {
  const trust = await trustOf(request, context, { directory: folderOf(request, context) });
  const verified: Verified[] = [];
  for (const path of request.files) {
    const file = resolve(context.cwd, path);
    if (await isUnpacked(file)) {
      const { entries, tocDigest, size, signed } = await verifyUnpacked(file, path, { ...context, trust });
      verified.push({ path, size, files: entries.length, digest: tocDigest, ...signedOf({ signed }) });
      continue;
    }
    if (isHeadPath(file)) await requireValidParts(file, context);
    await using source = await openArchive(file, { signal: context.signal, shown: path });
    const checked = trust === undefined ? undefined : await checkedIndex(source, source.whole, { ...context, trust });
    const index = await verifyWhole(source, path, context);
    await verifyLayers(source, index, { ...context, title: path });
    if (checked?.signed?.statement !== undefined)
      await requireSignedFile(source, checked.signed.statement.file, context);
    const { size, entries, tocDigest: digest } = index;
    const delta = await describeDelta(source, index, context);
    verified.push({ path, size, files: entries.length, digest, ...signedOf(checked), delta });
  }
  return verified;
});

/** Compares installed files with their packages. */
export const verifyInstalled = useCase(VERIFY_INSTALLED, async (request, context): Promise<VerifiedNode> =>
  verifyPlaced(await installedFolder(request, context), context),
);

function signedOf(
  checked: { readonly signed: Signed | undefined } | undefined,
): Pick<Verified, 'signedBy' | 'signedAs'> {
  const { by, statement } = checked?.signed ?? {};
  if (statement === undefined) return { signedBy: by };
  const { role, name, version, signed, expires } = statement;
  const until = expires === undefined ? null : secondsOf(expires);
  return { signedBy: by, signedAs: { role, name, version, signed: secondsOf(signed), expires: until } };
}

/** Checked before the whole bundle, so that the error names the part to copy again. */
async function requireValidParts(head: string, { report, signal }: Context): Promise<void> {
  const parts = await checkParts(head, { folders: [dirname(head)], report, signal });
  const problem = partsError(`verify ${head}`, parts);
  if (problem !== undefined) throw problem;
}
