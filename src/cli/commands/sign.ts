/** `curlew sign`: signs packages and bundles, or a release of a store. */
import { SIGN } from '../../requests/archive.ts';
import type { SignedFile } from '../../app/sign.ts';
import { CurlewError } from '../../core/errors.ts';
import type { SignedStore } from '../../ship/release/sign-release.ts';
import { commandFor } from '../command.ts';

export const command = commandFor(SIGN, {
  details: `Verifies each file, then writes next to it (for an address, to the current folder):

  FILE.sigstore.json, a signed statement with the kind of archive, its name and version, the dates of signing and expiry, and the digests of the file and its table of contents, for curlew verify --key and cosign verify-blob-attestation. FILE.sig, a signature of the whole file, for openssl dgst -sha256 -verify. FILE.sha256, for sha256sum --check.

  Of a manifest (.yaml, .yml) or the archive of a chart (.tgz), it writes only FILE.sigstore.json, a signature of its bytes as cosign sign-blob makes it, which the agents of a fleet verify.

  A node rejects a bundle with a lower version than it has seen for the same name and key. --store renews the signature of the current release, if it is valid and was made with the same key. --release R signs release R and, if R is the current release, also renews that signature.

  CURLEW_KEY_PASSPHRASE decrypts an encrypted key. Connects only to the given address or store, and sends nothing else.`,
  examples: [
    'curlew sign bundle.tar.gz --key curlew.key --name edge --expires 52w',
    'curlew sign packages/*.tar.gz --key curlew.key',
    'curlew sign web.yaml charts/web-1.4.2.tgz --key curlew.key',
    'curlew sign s3://bucket/bundles/bundle.tar.gz --key curlew.key',
    'curlew sign --store s3://bucket/dist --key curlew.key --expires 30d',
  ],
  left: 'the same command signs again what it signs',
  run: async ({ request }, context): Promise<readonly SignedFile[] | SignedStore> => {
    const { files, store, name, number, release, ...rest } = request;
    if ((files.length === 0) === (store === undefined)) {
      throw new CurlewError('USAGE', 'curlew sign: files or a store, and a key, are required', {
        hint: 'curlew sign FILE… --key FILE, or curlew sign --store STORE --key FILE',
      });
    }
    const [unused] = Object.entries({ name, number }).find(([, value]) => value !== undefined) ?? [];
    if (store !== undefined && unused !== undefined)
      throw new CurlewError('USAGE', `curlew sign: --${unused} requires files`);
    const { signFiles, signRelease } = await import('../../app/sign.ts');
    return store === undefined
      ? signFiles({ files, name, number, ...rest }, context)
      : signRelease({ store, release, ...rest }, context);
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

function archiveLines(signed: SignedFile): string {
  if (signed.role === 'content') return `${signed.signature}: the content of ${signed.path}\nhash ${signed.sha256}`;
  const { signature, role, name, version, expires, digest, sha256 } = signed;
  const until = expires === null ? '' : ` until ${expires}`;
  return `${signature}: the ${role} ${name}, version ${version}${until}\ncontents ${digest}\nfile ${sha256}`;
}
