/** Proves that packages and bundles are whole and hold nothing but what their tables of contents say. */
import { dirname, resolve } from 'node:path';
import { describeDelta } from '../bundle/delta/delta-read.ts';
import { checkParts } from '../bundle/parts/join-parts.ts';
import { partsError } from '../bundle/parts/parts-find.ts';
import type { DeltaJson } from '../core/bundle.ts';
import type { Digest } from '../core/digest.ts';
import { isHeadPath } from '../core/parts.ts';
import { secondsOf } from '../formats/signing/claim.ts';
import { verifyPlaced, type VerifiedNode } from '../runtime/node/verify-placed.ts';
import { openArchive } from './archives/open-archive.ts';
import { proveWhole, requireSignedFile } from './archives/prove-whole.ts';
import type { Context } from './context.ts';
import { folderOf, type FolderRequest } from './install-folder.ts';
import { checkedIndex } from './ports/install-source.ts';
import { trustOf, type Signed, type TrustRequest } from './ports/trust.ts';

/** The install folder knows which versions this node has seen. */
export interface VerifyRequest extends TrustRequest, FolderRequest {
  /** Packages and bundles, or head files of their parts. */
  readonly files: readonly string[];
}

export interface Verified {
  readonly path: string;
  readonly size: number;
  readonly files: number;
  /** Digest of the table of contents: it names every other byte. */
  readonly digest: Digest;
  /** The public key whose signature holds, where signatures were asked for. */
  readonly signedBy?: string | undefined;
  /** What it is signed as; absent for a signature over the contents alone. */
  readonly signedAs?: SignedAs | undefined;
  /** The bundle that a delta makes. */
  readonly delta?: DeltaJson | undefined;
}

export interface SignedAs {
  readonly role: string;
  readonly name: string;
  readonly version: number;
  /** ISO 8601. */
  readonly signed: string;
  /** Null when it holds forever. */
  readonly expires: string | null;
}

/** Signatures are held against what they say where the request, or the configuration, names keys. */
export async function verify(request: VerifyRequest, context: Context): Promise<readonly Verified[]> {
  const trust = await trustOf(request, context, { directory: folderOf(request, context) });
  const verified: Verified[] = [];
  for (const path of request.files) {
    const file = resolve(context.cwd, path);
    if (isHeadPath(file)) await proveParts(file, context);
    await using source = await openArchive(file, context);
    const checked = trust === undefined ? undefined : await checkedIndex(source, source.whole, { ...context, trust });
    const index = await proveWhole(source, path, context);
    if (checked?.signed?.statement !== undefined)
      await requireSignedFile(source, checked.signed.statement.file, context);
    const { size, entries, tocDigest: digest } = index;
    const delta = await describeDelta(source, index, context);
    verified.push({ path, size, files: entries.length, digest, ...signedOf(checked), delta });
  }
  return verified;
}

/** Compares the files of what is installed with what their packages say of them. */
export async function verifyInstalled(request: FolderRequest, context: Context): Promise<VerifiedNode> {
  return verifyPlaced(folderOf(request, context), context);
}

function signedOf(
  checked: { readonly signed: Signed | undefined } | undefined,
): Pick<Verified, 'signedBy' | 'signedAs'> {
  const { by, statement } = checked?.signed ?? {};
  if (statement === undefined) return { signedBy: by };
  const { role, name, version, signed, expires } = statement;
  const until = expires === undefined ? null : secondsOf(expires);
  return { signedBy: by, signedAs: { role, name, version, signed: secondsOf(signed), expires: until } };
}

/** Before the whole: it is of use to know which part has to be copied again. */
async function proveParts(head: string, { report, signal }: Context): Promise<void> {
  const found = await checkParts(head, { folders: [dirname(head)], report, signal });
  const problem = partsError(`verify ${head}`, found);
  if (problem !== undefined) throw problem;
}
