/** Signs packages, bundles, and releases of stores. */
import { createSign, type KeyObject } from 'node:crypto';
import { basename, resolve } from 'node:path';
import { describeDelta } from '../ship/bundle/delta/delta-read.ts';
import { MAX_MANIFEST_BYTES } from '../cluster/channel/objects.ts';
import { INSTALLER_LIMIT } from '../core/bundle.ts';
import { digestOf, type Digest } from '../core/digest.ts';
import { canceledOr, CurlewError, NOTHING_WRITTEN } from '../core/errors.ts';
import { fileNameProblem, INSTALLER_YAML } from '../core/layout.ts';
import { formatSums } from '../core/parts.ts';
import { digestAsStep } from '../formats/archive/digest-all.ts';
import type { ArchiveIndex, RangeSource } from '../formats/archive/entry.ts';
import { findEntry, readFile, readRange, readTocText } from '../formats/archive/read.ts';
import { FOOTER_SIZE, hasFooter } from '../formats/archive/toc.ts';
import { archiveOf, isBundleName, signArchive, type ArchiveStatement } from '../formats/signing/archive-statement.ts';
import { secondsOf, type Claim } from '../formats/signing/claim.ts';
import { signText } from '../formats/signing/signature.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { parseInstaller } from '../spec/parse.ts';
import { checkedRelease } from '../ship/release/release-name.ts';
import { signStore, type SignedStore } from '../ship/release/sign-release.ts';
import { documentPath, openAnywhere, requireUnwritten } from '../steps/archives/open-anywhere.ts';
import { verifyWhole } from '../steps/archives/verify-whole.ts';
import type { Context } from '../core/context.ts';
import { signerOf } from '../steps/open/release-trust.ts';
import { openStoreFor } from '../steps/open/stores.ts';
import { readSigningKey, signaturePath, wholePath } from '../steps/open/trust.ts';
import { SIGN_FILES, SIGN_RELEASE, type SignFilesRequest } from '../requests/archive.ts';
import { useCase } from '../core/request.ts';

export interface SignedArchive {
  readonly path: string;
  /** File of the statement; the signature and checksum of the whole file are next to it. */
  readonly signature: string;
  readonly role: ArchiveStatement['role'];
  readonly name: string;
  readonly version: number;
  /** ISO 8601; null if it is valid forever. */
  readonly expires: string | null;
  /** Digest of the table of contents. */
  readonly digest: Digest;
  /** Digest of the whole file. */
  readonly sha256: Digest;
}

/** A manifest, or the archive of a chart, as agents of a fleet verify it: its signature is of its bytes alone. */
export interface SignedContent {
  readonly path: string;
  /** File of the signature. */
  readonly signature: string;
  readonly role: 'content';
  /** Digest of the whole file. */
  readonly sha256: Digest;
}

export type SignedFile = SignedArchive | SignedContent;

/** Verifies each file, then writes its signatures next to it; for an address, into the current folder. */
export const signFiles = useCase(SIGN_FILES, async (request, context): Promise<readonly SignedFile[]> => {
  const { files, key: path, name } = request;
  const claim = claimOf(request);
  if (name !== undefined && !isBundleName(name)) {
    throw new CurlewError('USAGE', `--name ${name}: not the name of a bundle`, { hint: NAME_HINT });
  }
  const signed: SignedFile[] = [];
  try {
    const key = await readSigningKey(path, context);
    for (const file of files) signed.push(await signFile(file, { request, context, key, claim, written: signed }));
  } catch (error) {
    const done = signed.map(({ path: one }) => one).join(', ');
    const left = done === '' ? NOTHING_WRITTEN : `signed: ${done}; the same command signs all files again`;
    throw canceledOr(error, context.signal, left);
  }
  return signed;
});

/** One time for all files of a call: bundles of several architectures get the same version. */
function claimOf({ number, expires: lifetime }: SignFilesRequest): Claim {
  const signed = new Date();
  const version = number ?? Math.floor(signed.getTime() / 1000);
  if (lifetime === undefined) return { version, signed, expires: undefined };
  const expires = new Date(signed.getTime() + lifetime);
  if (expires > signed) return { version, signed, expires };
  throw new CurlewError('USAGE', '--expires: the signature would expire immediately');
}

const NAME_HINT = 'use at most 100 letters, digits, ".", "_", "+" and "-", such as --name edge';

interface SignOptions {
  readonly request: SignFilesRequest;
  readonly context: Context;
  readonly key: KeyObject;
  readonly claim: Claim;
  /** Files that this call has signed. */
  readonly written: readonly SignedFile[];
}

async function signFile(file: string, { request, context, key, claim, written }: SignOptions): Promise<SignedFile> {
  const { cwd, report, signal } = context;
  await using source = await openAnywhere(file, request, context);
  const beside = documentPath(file, source.whole);
  const problem = fileNameProblem(basename(beside));
  // The name is written to the checksum file.
  if (problem !== undefined) throw new CurlewError('USAGE', `cannot sign ${file}: its file name ${problem}`);
  const signature = signaturePath(beside);
  requireUnwritten(
    signature,
    written.map((one) => one.signature),
  );
  const content = await contentIn(source, signal);
  if (content !== undefined) {
    const unused = (['name', 'number', 'expires'] as const).find((option) => request[option] !== undefined);
    if (unused !== undefined) {
      throw new CurlewError('USAGE', `cannot sign ${file}: --${unused} is for packages and bundles`, {
        hint: 'sign manifests and charts by a command of their own: agents decide by their bytes alone',
      });
    }
    await writeStateFile(resolve(cwd, signature), signText(content, key), 0o644);
    return { path: file, signature, role: 'content', sha256: digestOf(content) };
  }
  const signer = createSign('sha256');
  const sha256 = await digestAsStep(source, { onChunk: (chunk) => signer.update(chunk), report, signal });
  const index = await verifyWhole(source, file, context);
  const { tocDigest: contents } = index;
  const text = await readTocText(source, { signal });
  if (digestOf(text) !== contents)
    throw new CurlewError('DIGEST_MISMATCH', `cannot sign ${file}: it changed while it was being read`);
  const creates = (await describeDelta(source, index, { signal }))?.contents;
  const { role, name } = await nameOf(source, index, {
    file,
    requestedName: request.name,
    isDelta: creates !== undefined,
    signal,
  });
  const statement = signArchive({ role, name, file: sha256, contents, makes: creates, ...claim }, key);
  await writeStateFile(resolve(cwd, wholePath.signature(beside)), signer.sign(key), 0o644);
  const sums = formatSums([{ name: basename(source.whole), digest: sha256 }]);
  await writeStateFile(resolve(cwd, wholePath.sum(beside)), sums, 0o644);
  await writeStateFile(resolve(cwd, signature), statement, 0o644);
  const expires = claim.expires === undefined ? null : secondsOf(claim.expires);
  return { path: file, signature, role, name, version: claim.version, expires, digest: contents, sha256 };
}

const CONTENT = /\.(?:ya?ml|tgz)$/i;

/** The bytes of a manifest or of the archive of a chart; undefined for everything else, such as a bundle. */
async function contentIn(
  source: RangeSource & { readonly whole: string },
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const { size, whole } = source;
  if (!CONTENT.test(whole)) return undefined;
  const tail = Math.min(size, FOOTER_SIZE);
  if (hasFooter(await readRange(source, size - tail, tail, { signal }))) return undefined;
  if (size <= MAX_MANIFEST_BYTES) return readRange(source, 0, size, { signal });
  throw new CurlewError('UNSUPPORTED', `cannot sign ${source.name}: agents read at most ${MAX_MANIFEST_BYTES} bytes`);
}

interface NameOptions {
  readonly file: string;
  readonly requestedName: string | undefined;
  readonly isDelta: boolean;
  readonly signal: AbortSignal;
}

/**
 * Role and name of an archive. A bundle has the requested name, otherwise that of its spec, otherwise that of its file. A delta
 * has the name of the bundle that it creates, which is never the name of its file.
 */
async function nameOf(
  source: RangeSource & { readonly whole: string },
  index: ArchiveIndex,
  { file, requestedName, isDelta, signal }: NameOptions,
): Promise<{ readonly role: ArchiveStatement['role']; readonly name: string }> {
  const { role, name: own } = archiveOf(index.entries.map(({ path }) => path));
  if (own !== undefined) {
    if (requestedName === undefined) return { role, name: own };
    throw new CurlewError('USAGE', `cannot sign ${file}: --name is for bundles, but it is the package ${own}`);
  }
  const entry = findEntry(index, INSTALLER_YAML);
  const spec = entry && Buffer.from(await readFile(source, entry, { limit: INSTALLER_LIMIT, signal })).toString();
  const specName = spec === undefined ? undefined : parseInstaller(file, spec).installer?.name;
  const names = [
    requestedName,
    specName,
    isDelta ? undefined : basename(source.whole).replace(/\.(?:tar\.gz|tgz)$/, ''),
  ];
  const name = names.find((one) => one !== undefined && isBundleName(one));
  if (name !== undefined) return { role, name };
  throw new CurlewError('USAGE', `cannot sign ${file}: --name is required`, { hint: NAME_HINT });
}

/** Renews the signature of the current release, or signs the named release. */
export const signRelease = useCase(SIGN_RELEASE, async (request, context): Promise<SignedStore> => {
  const { signal } = context;
  const release = request.release === undefined ? undefined : checkedRelease(request.release, '--release');
  const store = await openStoreFor(request.store, request, context, { create: 'existing' });
  const signer = await signerOf({ ...request, key: [], sign: request.key }, context, {
    address: store.address,
    remember: true,
  });
  if (signer === undefined) throw new Error('a key was requested');
  return signStore(store, { release, signer, signal });
});
