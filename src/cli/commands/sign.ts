/** `curlew sign`: signs packages and bundles, or a release of a store. */
import type { SignedArchive } from '../../app/sign.ts';
import { CurlewError } from '../../core/errors.ts';
import { isVersionNumber } from '../../formats/signing/claim.ts';
import type { SignedStore } from '../../store/release/sign-release.ts';
import { command, useCase } from '../command.ts';
import { ANYWHERE_OPTIONS, SIGNER_OPTIONS } from '../options.ts';

const signFiles = useCase(async () => (await import('../../app/sign.ts')).signFiles);
const signRelease = useCase(async () => (await import('../../app/sign.ts')).signRelease);

const FILE_OPTIONS = ['name', 'number'] as const;
const RELEASE_OPTIONS = ['release'] as const;

export const signCommand = command({
  name: 'sign',
  operands: '[FILE | ADDRESS…]',
  details: `Verifies each file, then writes next to it (for an address, to the current folder):

  FILE.sigstore.json, a signed statement with the kind of archive, its name and version, the dates of signing and expiry, and the digests of the file and its table of contents, for curlew verify --key and cosign verify-blob-attestation. FILE.sig, a signature of the whole file, for openssl dgst -sha256 -verify. FILE.sha256, for sha256sum --check.

  A node rejects a bundle with a lower version than it has seen for the same name and key. --store renews the signature of the current release, if it is valid and was made with the same key. --release R signs release R and, if R is the current release, also renews that signature.

  CURLEW_KEY_PASSPHRASE decrypts an encrypted key. Connects only to the given address or store, and sends nothing else.`,
  examples: [
    'curlew sign bundle.tar.gz --key curlew.key --name edge --expires 52w',
    'curlew sign packages/*.tar.gz --key curlew.key',
    'curlew sign s3://bucket/bundles/bundle.tar.gz --key curlew.key',
    'curlew sign --store s3://bucket/dist --key curlew.key --expires 30d',
  ],
  options: {
    key: { type: 'string', value: 'FILE', help: 'private key from curlew keygen' },
    name: { type: 'string', value: 'NAME', help: 'name of the bundle (default: that of its spec, or its file)' },
    number: {
      type: 'string',
      read: version,
      value: 'N',
      help: 'version in the statement (default: the current time in seconds)',
    },
    store: { type: 'string', value: 'STORE', help: 'sign a release of this store' },
    release: { type: 'string', value: 'R', help: 'with --store: sign this release' },
    expires: { ...SIGNER_OPTIONS.expires, help: 'validity (default: forever; for a current release 90d)' },
    ...ANYWHERE_OPTIONS,
  },
  run: async ({ operands: files, options }, context): Promise<readonly SignedArchive[] | SignedStore> => {
    const { key, store } = options;
    if (key === undefined || (files.length === 0) === (store === undefined)) {
      throw new CurlewError('USAGE', 'curlew sign: files or a store, and a key, are required', {
        hint: 'curlew sign FILE… --key FILE, or curlew sign --store STORE --key FILE',
      });
    }
    const unused = (store === undefined ? RELEASE_OPTIONS : FILE_OPTIONS).find(
      (option) => options[option] !== undefined,
    );
    if (unused !== undefined) {
      throw new CurlewError('USAGE', `curlew sign: --${unused} requires ${store === undefined ? '--store' : 'files'}`);
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
