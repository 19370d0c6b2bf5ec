/** Where the files of a channel are, and what they are known by. Pure. */
import { posix } from 'node:path';
import { digestOf, hexOf } from '../core/digest.ts';

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/;

function isUrl(location: string): boolean {
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

/** A channel from another machine must not have files of this one applied. */
export function reachesLocalFile(channel: string, location: string): boolean {
  const isRemote = isUrl(channel) && !/^file:/i.test(channel);
  return isRemote && /^file:/i.test(location);
}

/** The name that kops gives to the only add-on of a plain manifest at this location. */
export function manifestAddonName(location: string): string {
  return `manifest-${hexOf(digestOf(location)).slice(0, 12)}`;
}

/** SHA-256 in hex of a manifest without the white space at its ends: kops' `manifestHash`. */
export function manifestHash(content: Uint8Array): string {
  return hexOf(digestOf(withoutOuterSpace(content)));
}

/** ASCII only: kops counts further characters as space, which no manifest begins or ends with. */
export function withoutOuterSpace(content: Uint8Array): Uint8Array {
  const isSpace = (byte: number | undefined): boolean =>
    byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d);
  let [from, to] = [0, content.length];
  while (from < to && isSpace(content[from])) from += 1;
  while (to > from && isSpace(content[to - 1])) to -= 1;
  return content.subarray(from, to);
}
