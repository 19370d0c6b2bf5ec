/** `curlew sign`: a signature beside each package or bundle, over its table of contents; or one of a store's release. */
import { relative, resolve } from 'node:path';
import type { KeyObject } from 'node:crypto';
import { readTocText } from '../../archive/read.ts';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isHeadPath } from '../../core/parts.ts';
import { writeStateFile } from '../../files/state-file.ts';
import { checkedRelease } from '../../release/release-name.ts';
import { signStore, type SignedStore } from '../../release/sign-release.ts';
import { readPrivateKey } from '../../trust/keys.ts';
import { signText } from '../../trust/signature.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { openArchive } from '../open-archive.ts';
import { proveWhole } from '../prove-whole.ts';
import { SIGNER_OPTIONS, signerOf } from '../release-trust.ts';
import { readKeyText, signaturePath } from '../signed.ts';
import { openStoreFor, STORE_OPTIONS } from '../stores.ts';
import { passphraseOf } from './keygen.ts';

interface SignedArchive {
  readonly path: string;
  readonly signature: string;
  readonly digest: Digest;
}

export const signCommand: Command<readonly SignedArchive[] | SignedStore> = {
  name: 'sign',
  summary: 'Sign packages, bundles, or a release of a store',
  operands: '[FILE…]',
  details: `Proves first that each file is whole; then its table of contents, which names every other byte, is signed. The signature FILE.sigstore.json is a Sigstore bundle: curlew verify --key reads it, and so does cosign verify-blob for the text that tar -xOf FILE stargz.index.json prints.

With --store, the signature that says which release is the current one is renewed, if the same key has made it and it still holds. --release R signs that release as it lies there, and, when it is the current one, that it is.

CURLEW_KEY_PASSPHRASE unlocks a key that is encrypted. No other network is needed than that of a store, and nothing else is sent anywhere.`,
  examples: [
    'curlew sign bundle.tar.gz --key curlew.key',
    'curlew sign packages/*.tar.gz --key curlew.key',
    'curlew sign --store s3://bucket/dist --key curlew.key --expires 30d',
  ],
  options: {
    key: { type: 'string', value: 'FILE', help: 'private key to sign with, as curlew keygen makes it' },
    store: { type: 'string', value: 'STORE', help: 'sign a release of this store' },
    release: { type: 'string', value: 'R', help: 'with --store: sign this release as it is' },
    expires: { ...SIGNER_OPTIONS.expires, help: 'with --store: how long it may be current (default: 90d)' },
    ...STORE_OPTIONS,
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
    if (address !== undefined) return signRelease(address, args, context);
    const useless = ['release', 'expires'].find((option) => args.text(option) !== undefined);
    if (useless !== undefined) throw new CurlewError('USAGE', `curlew sign: --${useless} goes with --store`);
    return signFiles(
      args.positionals,
      readPrivateKey(await readKeyText(resolve(cwd, path)), path, passphraseOf(env)),
      context,
    );
  },
  render: (signed) => {
    if (!('store' in signed)) {
      return signed.map(({ signature, digest }) => `${signature}: of contents ${digest}`).join('\n');
    }
    const { store, release, version, expires } = signed;
    const current = expires === undefined ? '' : `, the current release until ${expires}`;
    return `${store}: ${release} is signed as version ${version}${current}`;
  },
};

async function signFiles(
  files: readonly string[],
  key: KeyObject,
  context: CommandContext,
): Promise<readonly SignedArchive[]> {
  const { cwd, signal } = context;
  const signed: SignedArchive[] = [];
  for (const file of files) {
    await using source = await openArchive(resolve(cwd, file), { signal });
    const { tocDigest } = await proveWhole(source, file, context);
    const text = await readTocText(source, { signal });
    if (digestOf(text) !== tocDigest) throw new CurlewError('DIGEST_MISMATCH', `sign ${file}: it changes meanwhile`);
    // As it was named, where it was named whole.
    const signature = signaturePath(isHeadPath(file) ? relative(cwd, source.whole) : file);
    await writeStateFile(resolve(cwd, signature), signText(text, key), 0o644);
    signed.push({ path: file, signature, digest: tocDigest });
  }
  return signed;
}

async function signRelease(address: string, args: Arguments, context: CommandContext): Promise<SignedStore> {
  const { signal } = context;
  const given = args.text('release');
  const release = given === undefined ? undefined : checkedRelease(given, '--release');
  const store = await openStoreFor(address, args, context, { create: false });
  const signer = await signerOf(args, context, { option: 'key', addresses: [store.address] });
  if (signer === undefined) throw new Error('a key was asked for');
  return signStore(store, { release, signer, signal });
}
