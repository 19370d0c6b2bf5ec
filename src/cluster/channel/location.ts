/** Where the files of a channel are, and what they are known by. Pure. */
import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { digestOf, hexOf } from '../../core/digest.ts';
import type { Channel } from './channel.ts';

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/;

/** True for an address with a scheme, false for a path. */
export function isUrl(location: string): boolean {
  return SCHEME.test(location);
}

/**
 * The location of a file that a channel names: absolute ones (`s3:`, `https:`, `file:` and others) as they are, others relative
 * to the channel's own (RFC 3986, 5.2), which may also be a path. Undefined if no location comes of them.
 */
export function resolveLocation(channel: string, reference: string): string | undefined {
  if (isUrl(reference)) return URL.canParse(reference) ? reference : undefined;
  if (!isUrl(channel))
    return reference.startsWith('/') ? posix.normalize(reference) : posix.join(posix.dirname(channel), reference);
  return URL.canParse(reference, channel) ? new URL(reference, channel).href : undefined;
}

/** True for an address on another machine. */
export function isRemote(location: string): boolean {
  return isUrl(location) && !/^file:/i.test(location);
}

/** A channel from another machine must not have files of this one applied. */
export function reachesLocalFile(channel: string, location: string): boolean {
  return isRemote(channel) && /^file:/i.test(location);
}

/**
 * A channel from another machine must not have objects in S3 applied, which are read with the credentials of this one, except
 * those of its own bucket.
 */
export function reachesOtherBucket(channel: string, location: string): boolean {
  const bucket = bucketOf(location);
  return isRemote(channel) && bucket !== undefined && bucket !== bucketOf(channel);
}

function bucketOf(location: string): string | undefined {
  if (!/^s3:/i.test(location)) return undefined;
  try {
    return /^s3:\/\/([^/]*)/i.exec(decodeURIComponent(location))?.[1] ?? '';
  } catch {
    return '';
  }
}

/** The name that kops gives to the only add-on of a plain manifest at this location. */
export function manifestAddonName(location: string): string {
  return `manifest-${hexOf(digestOf(location)).slice(0, 12)}`;
}

/**
 * The hash of a manifest in hex, as the entries of a channel have it: of all bytes for a `Channel`, without the white space at
 * both ends for kops, and SHA-1 where the `hash` of the entry is one. In an index of kops, a `hash` of all bytes, as `sha256sum`
 * prints it, is accepted, too.
 */
export function hashOfManifest(
  content: Uint8Array,
  { kind, hash = '' }: { readonly kind: Channel['kind']; readonly hash?: string | undefined },
): string {
  const hashOf = (bytes: Uint8Array): string =>
    createHash(hash.length === 40 ? 'sha1' : 'sha256')
      .update(bytes)
      .digest('hex');
  const whole = hashOf(content);
  return kind === 'Channel' || whole === hash ? whole : hashOf(withoutOuterSpace(content));
}

/** ASCII only: kops counts further characters as space, which no manifest begins or ends with. */
function withoutOuterSpace(content: Uint8Array): Uint8Array {
  const isSpace = (byte: number | undefined): boolean =>
    byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d);
  let [from, to] = [0, content.length];
  while (from < to && isSpace(content[from])) from += 1;
  while (to > from && isSpace(content[to - 1])) to -= 1;
  return content.subarray(from, to);
}
