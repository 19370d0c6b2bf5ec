/** Which version a spec means. Pure: names, a list, a reason. */
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { compareVersions } from '../core/ref.ts';

export interface ResolvedVersion {
  readonly version: string;
  /** Why this one, for people. */
  readonly because: string;
}

/** `1.2.x`: the pattern of a greatest patch; the only one there is (kurl.md 3.5). */
const PATCHES = /^(\d+)\.(\d+)\.x$/;
const NUMBERED = /^v?(\d+)\.(\d+)\.\d/;
/** A suffix that begins with a letter makes a pre-release; one of digits, such as rook's `1.0.4-14.2.21`, does not. */
const PRE_RELEASE = /-[A-Za-z]/;

/**
 * Finds the version that `requested` means in `available`, whose first is what `latest` means. Not there:
 * `SPEC_INVALID`, with a near name as hint.
 */
export function resolveVersion(addon: string, requested: string, available: readonly string[]): ResolvedVersion {
  const [first] = available;
  if (first === undefined) throw new CurlewError('SPEC_INVALID', `${addon}: there is no version of it`);
  if (requested === 'latest') return { version: first, because: 'latest' };
  if (available.includes(requested)) return { version: requested, because: 'exact' };
  const [, major, minor] = PATCHES.exec(requested) ?? [];
  if (major === undefined || minor === undefined) throw unknownVersion(addon, requested, available);
  // Zeros before a digit do not count: docker's 19.03 is 19.3.
  const patches = available.filter((version) => {
    const [, otherMajor, otherMinor] = NUMBERED.exec(version) ?? [];
    return (
      otherMajor !== undefined && BigInt(otherMajor) === BigInt(major) && BigInt(otherMinor ?? 0) === BigInt(minor)
    );
  });
  const released = patches.filter((version) => !PRE_RELEASE.test(version));
  const greatest = (released.length > 0 ? released : patches).toSorted(compareVersions).at(-1);
  if (greatest !== undefined) return { version: greatest, because: `greatest patch of ${major}.${minor}` };
  throw new CurlewError('SPEC_INVALID', `${addon}: latest patch version not found for ${requested}`, {
    hint: `there are: ${shortList(available)}`,
  });
}

function unknownVersion(addon: string, requested: string, available: readonly string[]): CurlewError {
  const near = nearest(requested, available);
  return new CurlewError('SPEC_INVALID', `${addon}: there is no version ${requested}`, {
    hint: near === undefined ? `there are: ${shortList(available)}` : `did you mean ${near}?`,
  });
}

const MOST_NAMES = 8;

function shortList(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return `${names.slice(0, MOST_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
