/** Signatures beside packages and bundles; or of a store's release. */
import { createSign, type KeyObject } from 'node:crypto';
import { basename, resolve } from 'node:path';
import { describeDelta } from '../bundle/delta/delta-read.ts';
import { INSTALLER_LIMIT } from '../core/bundle.ts';
import { digestOf, type Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { fileNameProblem, INSTALLER_YAML } from '../core/layout.ts';
import { formatSums } from '../core/parts.ts';
import { digestAsStep } from '../formats/archive/digest-all.ts';
import type { ArchiveIndex, RangeSource } from '../formats/archive/entry.ts';
import { findEntry, readFile, readTocText } from '../formats/archive/read.ts';
import { archiveOf, isBundleName, signArchive, type ArchiveStatement } from '../formats/signing/archive-statement.ts';
import { secondsOf, type Claim } from '../formats/signing/claim.ts';
import { readPrivateKey } from '../formats/signing/keys.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { parseInstaller } from '../spec/parse.ts';
import { checkedRelease } from '../store/release/release-name.ts';
import { signStore, type SignedStore } from '../store/release/sign-release.ts';
import { besideOf, openAnywhere, requireOther } from './archives/open-anywhere.ts';
import { proveWhole } from './archives/prove-whole.ts';
import type { Context } from './context.ts';
import { signerOf } from './ports/release-trust.ts';
import type { AddressRequest } from './ports/store-source.ts';
import { openStoreFor, type StoreRequest } from './ports/stores.ts';
import { passphraseOf, readKeyText, signaturePath, wholePath } from './ports/trust.ts';

export interface SignFilesRequest extends AddressRequest {
  /** Paths, URLs or `s3://bucket/key` of packages and bundles. */
  readonly files: readonly string[];
  /** File of the private key. */
  readonly key: string;
  /** What a bundle is called; as its spec is, or its file, when absent. */
  readonly name?: string | undefined;
  /** Version of what is signed; seconds of the clock when absent. */
  readonly number?: number | undefined;
  /** How long the signature holds, in milliseconds; forever when absent. */
  readonly expires?: number | undefined;
}

export interface SignReleaseRequest extends StoreRequest {
  readonly store: string;
  /** File of the private key. */
  readonly key: string;
  /** The release that is signed as it is; when absent, only that the current one is current. */
  readonly release?: string | undefined;
  /** How long it may be the current one, in milliseconds; 90 days when absent. */
  readonly expires?: number | undefined;
}

export interface SignedArchive {
  readonly path: string;
  /** The statement; beside it lie the signature and the sum of the whole file. */
  readonly signature: string;
  readonly role: ArchiveStatement['role'];
  readonly name: string;
  readonly version: number;
  /** ISO 8601; null when it holds forever. */
  readonly expires: string | null;
  /** Of the table of contents. */
  readonly digest: Digest;
  /** Of the whole file. */
  readonly sha256: Digest;
}

/** Proves that each file is whole, then writes its signatures beside it; of an address into the current folder. */
export async function signFiles(request: SignFilesRequest, context: Context): Promise<readonly SignedArchive[]> {
  const { cwd, env } = context;
  const { files, key: path, name } = request;
  const claim = claimOf(request);
  if (name !== undefined && !isBundleName(name)) {
    throw new CurlewError('USAGE', `--name ${name}: not the name of a bundle`, { hint: NAME_HINT });
  }
  const key = readPrivateKey(await readKeyText(resolve(cwd, path)), path, passphraseOf(env));
  const signed: SignedArchive[] = [];
  for (const file of files) signed.push(await signFile(file, { request, context, key, claim, written: signed }));
  return signed;
}

/** One time for all files of a call: bundles of several architectures that belong together have one version. */
function claimOf({ number, expires: lifetime }: SignFilesRequest): Claim {
  const signed = new Date();
  const version = number ?? Math.floor(signed.getTime() / 1000);
  if (lifetime === undefined) return { version, signed, expires: undefined };
  const expires = new Date(signed.getTime() + lifetime);
  if (expires > signed) return { version, signed, expires };
  throw new CurlewError('USAGE', '--expires: it would be over at once');
}

const NAME_HINT = 'write letters, digits, ".", "_", "+" and "-", 100 at most, such as --name edge';

interface SignOptions {
  readonly request: SignFilesRequest;
  readonly context: Context;
  readonly key: KeyObject;
  readonly claim: Claim;
  /** What this call has signed already. */
  readonly written: readonly SignedArchive[];
}

async function signFile(file: string, { request, context, key, claim, written }: SignOptions): Promise<SignedArchive> {
  const { cwd, report, signal } = context;
  await using source = await openAnywhere(file, request, context);
  const beside = besideOf(file, source.whole);
  const problem = fileNameProblem(basename(beside));
  // It stands in the list of sums.
  if (problem !== undefined) throw new CurlewError('USAGE', `sign ${file}: its file name ${problem}`);
  const signature = signaturePath(beside);
  requireOther(
    signature,
    written.map((one) => one.signature),
  );
  const signer = createSign('sha256');
  const sha256 = await digestAsStep(source, { onChunk: (chunk) => signer.update(chunk), report, signal });
  const index = await proveWhole(source, file, context);
  const { tocDigest: contents } = index;
  const text = await readTocText(source, { signal });
  if (digestOf(text) !== contents) throw new CurlewError('DIGEST_MISMATCH', `sign ${file}: it changes meanwhile`);
  const makes = (await describeDelta(source, index, { signal }))?.contents;
  const { role, name } = await callIt(source, index, {
    file,
    given: request.name,
    isDelta: makes !== undefined,
    signal,
  });
  const statement = signArchive({ role, name, file: sha256, contents, makes, ...claim }, key);
  await writeStateFile(resolve(cwd, wholePath.signature(beside)), signer.sign(key), 0o644);
  const sums = formatSums([{ name: basename(source.whole), digest: sha256 }]);
  await writeStateFile(resolve(cwd, wholePath.sum(beside)), sums, 0o644);
  await writeStateFile(resolve(cwd, signature), statement, 0o644);
  const expires = claim.expires === undefined ? null : secondsOf(claim.expires);
  return { path: file, signature, role, name, version: claim.version, expires, digest: contents, sha256 };
}

interface CallOptions {
  readonly file: string;
  readonly given: string | undefined;
  readonly isDelta: boolean;
  readonly signal: AbortSignal;
}

/**
 * A package is called what it is; a bundle as is asked for, else as its spec does, else as its file. A delta is called as the
 * bundle that it makes, which its file does not tell.
 */
async function callIt(
  source: RangeSource & { readonly whole: string },
  index: ArchiveIndex,
  { file, given, isDelta, signal }: CallOptions,
): Promise<{ readonly role: ArchiveStatement['role']; readonly name: string }> {
  const { role, name: own } = archiveOf(index.entries.map(({ path }) => path));
  if (own !== undefined) {
    if (given === undefined) return { role, name: own };
    throw new CurlewError('USAGE', `sign ${file}: --name is for bundles, and it is the package ${own}`);
  }
  const entry = findEntry(index, INSTALLER_YAML);
  const spec = entry && Buffer.from(await readFile(source, entry, { limit: INSTALLER_LIMIT, signal })).toString();
  const said = spec === undefined ? undefined : parseInstaller(file, spec).installer?.name;
  const names = [given, said, isDelta ? undefined : basename(source.whole).replace(/\.(?:tar\.gz|tgz)$/, '')];
  const name = names.find((one) => one !== undefined && isBundleName(one));
  if (name !== undefined) return { role, name };
  throw new CurlewError('USAGE', `sign ${file}: say with --name what it is called`, { hint: NAME_HINT });
}

/** Renews the signature of the current release, or signs the release that is named. */
export async function signRelease(request: SignReleaseRequest, context: Context): Promise<SignedStore> {
  const { signal } = context;
  const release = request.release === undefined ? undefined : checkedRelease(request.release, '--release');
  const store = await openStoreFor(request.store, request, context, { create: false });
  const signer = await signerOf({ ...request, key: [], sign: request.key }, context, [store.address]);
  if (signer === undefined) throw new Error('a key was asked for');
  return signStore(store, { release, signer, signal });
}
