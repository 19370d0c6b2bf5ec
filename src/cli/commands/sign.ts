/** `curlew sign`: signatures beside each package or bundle; or one of a store's release. */
import { signFiles, signRelease, type SignedArchive } from '../../app/sign.ts';
import { CurlewError } from '../../core/errors.ts';
import { isVersionNumber } from '../../formats/signing/claim.ts';
import type { SignedStore } from '../../store/release/sign-release.ts';
import { command } from '../command.ts';
import { ANYWHERE_OPTIONS, SIGNER_OPTIONS } from '../options.ts';

const OF_FILES = ['name', 'number'] as const;
const OF_RELEASES = ['release'] as const;

export const signCommand = command({
  name: 'sign',
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
    number: {
      type: 'string',
      read: version,
      value: 'N',
      help: 'version of what is signed (default: seconds of the clock)',
    },
    store: { type: 'string', value: 'STORE', help: 'sign a release of this store' },
    release: { type: 'string', value: 'R', help: 'with --store: sign this release as it is' },
    expires: { ...SIGNER_OPTIONS.expires, help: 'how long it holds (default: forever; of a current release 90d)' },
    ...ANYWHERE_OPTIONS,
  },
  run: async ({ operands: files, options }, context): Promise<readonly SignedArchive[] | SignedStore> => {
    const { key, store } = options;
    if (key === undefined || (files.length === 0) === (store === undefined)) {
      throw new CurlewError('USAGE', 'curlew sign: files, or a store, and a key are needed', {
        hint: 'curlew sign FILE… --key FILE, or curlew sign --store STORE --key FILE',
      });
    }
    const useless = (store === undefined ? OF_RELEASES : OF_FILES).find((option) => options[option] !== undefined);
    if (useless !== undefined) {
      throw new CurlewError(
        'USAGE',
        `curlew sign: --${useless} goes with ${store === undefined ? '--store' : 'files'}`,
      );
    }
    return store === undefined
      ? signFiles({ ...options, files, key }, context)
      : signRelease({ ...options, store, key }, context);
  },
  render: (signed) => {
    if (!('store' in signed)) {
      return signed.map((one) => archiveLines(one)).join('\n');
    }
    const { store, release, version, expires } = signed;
    const current = expires === undefined ? '' : `, the current release until ${expires}`;
    return `${store}: ${release} is signed as version ${version}${current}`;
  },
});

function version(text: string, option: string): number {
  if (/^\d{1,16}$/.test(text) && isVersionNumber(Number(text))) return Number(text);
  throw new CurlewError('USAGE', `${option} ${text}: not a whole number from 1`);
}

function archiveLines({ signature, role, name, version, expires, digest, sha256 }: SignedArchive): string {
  const until = expires === null ? '' : ` until ${expires}`;
  return `${signature}: the ${role} ${name}, version ${version}${until}\ncontents ${digest}\nfile ${sha256}`;
}
