/** Fields of requests that make or check signatures. */
import { age, flag, path, paths, text } from '../core/field.ts';
import type { RequestOf } from '../core/request.ts';
import type { CONFIG } from './connection.ts';

const signatures = { group: 'Signature options' } as const;

/** Reading releases. */
export const KEY = {
  key: paths('FILE', 'reject anything not signed with this public key; can be repeated', signatures),
  requireSigned: flag('fail without a key in --key or the configuration', signatures),
};
export type KeyRequest = RequestOf<typeof KEY & typeof CONFIG>;

/** Reading bundles of other publishers. */
export const SIGNED = {
  ...KEY,
  signature: path('FILE', 'the signature (default: .sigstore.json next to the file)', signatures),
  signedAs: text('NAME', 'reject signatures with another name', signatures),
  requireStatement: flag('reject signatures that cover no name, version or time', signatures),
};

/** Checking for downgrades without installing. */
export const DOWNGRADE = { allowDowngrade: flag('accept a signed version older than one seen before', signatures) };
export type TrustRequest = RequestOf<typeof SIGNED & typeof DOWNGRADE & typeof CONFIG>;

/** Creating a release. */
export const SIGNER = {
  sign: path('FILE', 'sign the release with this private key from curlew keygen', signatures),
  expires: age('TIME', 'validity as the current release (default: 90d)', { ...signatures, with: 'sign' }),
};
export type SignerRequest = RequestOf<typeof SIGNER> & KeyRequest;

export const MAKE_CURRENT = { makeCurrent: flag('allow a release that is older than the current one') };
