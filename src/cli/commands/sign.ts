/** `curlew sign`: signatures beside each package or bundle; or one of a store's release. */
import { ANYWHERE_OPTIONS, SIGNER_OPTIONS } from '../options.ts';
import { basename, resolve } from 'node:path';
import { createSign, type KeyObject } from 'node:crypto';
import { digestAsStep } from '../../formats/archive/digest-all.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { findEntry, readFile, readTocText } from '../../formats/archive/read.ts';
import { describeDelta } from '../../bundle/delta/delta-read.ts';
import { INSTALLER_LIMIT } from '../../core/bundle.ts';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { fileNameProblem, INSTALLER_YAML } from '../../core/layout.ts';
import { formatSums } from '../../core/parts.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { parseInstaller } from '../../spec/parse.ts';
import { checkedRelease } from '../../store/release/release-name.ts';
import { signStore, type SignedStore } from '../../store/release/sign-release.ts';
import {
  archiveOf,
  isBundleName,
  signArchive,
  type ArchiveStatement,
} from '../../formats/signing/archive-statement.ts';
import { isVersionNumber, secondsOf, type Claim } from '../../formats/signing/claim.ts';
import { readPrivateKey } from '../../formats/signing/keys.ts';
import { age as ageOf } from '../values.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { besideOf, openAnywhere, requireOther } from '../../app/archives/open-anywhere.ts';
import { proveWhole } from '../../app/archives/prove-whole.ts';
import { signerOf } from '../../app/ports/release-trust.ts';
import { readKeyText, signaturePath, wholePath } from '../../app/ports/trust.ts';
import { openStoreFor } from '../../app/ports/stores.ts';
import { passphraseOf } from '../../app/ports/trust.ts';

interface SignedArchive {
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

const OF_FILES = ['name', 'number'];

export const signCommand: Command<readonly SignedArchive[] | SignedStore> = {
  name: 'sign',
  summary: 'Sign packages, bundles, or a release of a store',
  operands: '[FILE | ADDRESS…]',
  details: `Proves first that each file is whole, then writes beside it (of an address into the current folder):

FILE.sigstore.json, a signed statement of what kind of archive it is, its name and version, when it was signed and until when that holds, the digest of the file and that of its table of contents: curlew verify --key reads it, and so does cosign verify-blob-attestation. FILE.sig, a signature over the whole file, for openssl dgst -sha256 -verify. FILE.sha256, for sha256sum --check.

A node refuses a bundle with a lower version than it has seen of the same name and key. With --store, the signature that says which release is the current one is renewed, if the same key has made it and it still holds. --release R signs that release as it lies there, and, when it is the current one, that it is.

CURLEW_KEY_PASSPHRASE unlocks a key that is encrypted. No other network is needed than that of an address or a store, and nothing else is sent anywhere.`,
  examples: [
    'curlew sign bundle.tar.gz --key curlew.key --name edge --expires 52w',
    'curlew sign packages/*.tar.gz --key curlew.key',
    'curlew sign s3://bucket/bundles/bundle.tar.gz --key curlew.key',
    'curlew sign --store s3://bucket/dist --key curlew.key --expires 30d',
  ],
  options: {
    key: { type: 'string', value: 'FILE', help: 'private key to sign with, as curlew keygen makes it' },
    name: { type: 'string', value: 'NAME', help: 'what a bundle is called (default: as its spec is, or its file)' },
    number: { type: 'string', value: 'N', help: 'version of what is signed (default: seconds of the clock)' },
    store: { type: 'string', value: 'STORE', help: 'sign a release of this store' },
    release: { type: 'string', value: 'R', help: 'with --store: sign this release as it is' },
    expires: { ...SIGNER_OPTIONS.expires, help: 'how long it holds (default: forever; of a current release 90d)' },
    ...ANYWHERE_OPTIONS,
  },
  run: async (args, context) => {
    const { cwd, env } = context;
    const path = args.text('key');
    const address = args.text('store');
    if (path === undefined || (args.positionals.length === 0) === (address === undefined)) {
      throw new CurlewError('USAGE', 'curlew sign: files, or a store, and a key are needed', {
        hint: 'curlew sign FILE… --key FILE, or curlew sign --store STORE --key FILE',
      });
    }
    const useless = (address === undefined ? ['release'] : OF_FILES).find((option) => args.text(option) !== undefined);
    if (useless !== undefined) {
      throw new CurlewError(
        'USAGE',
        `curlew sign: --${useless} goes with ${address === undefined ? '--store' : 'files'}`,
      );
    }
    if (address !== undefined) return signRelease(address, args, context);
    const [claim, name] = [claimOf(args), nameOf(args)];
    const key = readPrivateKey(await readKeyText(resolve(cwd, path)), path, passphraseOf(env));
    const signed: SignedArchive[] = [];
    for (const file of args.positionals) {
      signed.push(await signFile(file, { args, context, key, name, claim, written: signed }));
    }
    return signed;
  },
  render: (signed) => {
    if (!('store' in signed)) {
      return signed.map((one) => archiveLines(one)).join('\n');
    }
    const { store, release, version, expires } = signed;
    const current = expires === undefined ? '' : `, the current release until ${expires}`;
    return `${store}: ${release} is signed as version ${version}${current}`;
  },
};

function archiveLines({ signature, role, name, version, expires, digest, sha256 }: SignedArchive): string {
  const until = expires === null ? '' : ` until ${expires}`;
  return `${signature}: the ${role} ${name}, version ${version}${until}\ncontents ${digest}\nfile ${sha256}`;
}

/** One time for all files of a call: bundles of several architectures that belong together have one version. */
function claimOf(args: Arguments): Claim {
  const [number, lifetime] = [args.text('number'), args.text('expires')];
  const signed = new Date();
  const version = number === undefined ? Math.floor(signed.getTime() / 1000) : Number(number);
  if (number !== undefined && !(/^\d{1,16}$/.test(number) && isVersionNumber(version))) {
    throw new CurlewError('USAGE', `--number ${number}: not a whole number from 1`);
  }
  if (lifetime === undefined) return { version, signed, expires: undefined };
  const expires = new Date(signed.getTime() + ageOf(lifetime, '--expires'));
  if (expires > signed) return { version, signed, expires };
  throw new CurlewError('USAGE', `--expires ${lifetime}: it would be over at once`);
}

function nameOf(args: Arguments): string | undefined {
  const name = args.text('name');
  if (name === undefined || isBundleName(name)) return name;
  throw new CurlewError('USAGE', `--name ${name}: not the name of a bundle`, { hint: NAME_HINT });
}

const NAME_HINT = 'write letters, digits, ".", "_", "+" and "-", 100 at most, such as --name edge';

interface SignOptions {
  readonly args: Arguments;
  readonly context: CommandContext;
  readonly key: KeyObject;
  /** Of bundles; undefined for what they say themselves. */
  readonly name: string | undefined;
  readonly claim: Claim;
  /** What this call has signed already. */
  readonly written: readonly SignedArchive[];
}

async function signFile(
  file: string,
  { args, context, key, name: given, claim, written }: SignOptions,
): Promise<SignedArchive> {
  const { cwd, report, signal } = context;
  await using source = await openAnywhere(file, args.options, context);
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
  const { role, name } = await callIt(source, index, { file, given, isDelta: makes !== undefined, signal });
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
 * A package is called what it is; a bundle as the words say, else as its spec does, else as its file. A delta is called as the
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

async function signRelease(address: string, args: Arguments, context: CommandContext): Promise<SignedStore> {
  const { signal } = context;
  const given = args.text('release');
  const release = given === undefined ? undefined : checkedRelease(given, '--release');
  const store = await openStoreFor(address, args.options, context, { create: false });
  const signer = await signerOf({ ...args.options, key: [], sign: args.text('key') }, context, [store.address]);
  if (signer === undefined) throw new Error('a key was asked for');
  return signStore(store, { release, signer, signal });
}
