/** Resolves the version that a spec requests. Pure. */
import { firstOf } from '../core/counted.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { isChannelName } from '../core/catalog.ts';
import { compareVersions, isVersion } from '../core/ref.ts';

export interface ResolvedVersion {
  readonly version: string;
  /** The reason, for people. */
  readonly because: string;
}

const CHANNEL = 'channel:';

/** The channel that `channel:stable` names; undefined for everything else. */
export function channelOf(requested: string): string | undefined {
  const name = requested.startsWith(CHANNEL) ? requested.slice(CHANNEL.length) : '';
  return isChannelName(name) ? name : undefined;
}

/** The forms that {@link isRequestable} accepts, for hints. */
export const VERSION_FORMS = 'write an exact version, 1.2.x for its greatest patch, latest, or channel:NAME';

/** True for what a spec may have as a version. */
export function isRequestable(text: string): boolean {
  return isVersion(text) || channelOf(text) !== undefined;
}

/** Why a channel has this version, for people. */
export function channelReason(channel: string, kubernetes: string): string {
  return `channel ${channel} for Kubernetes ${kubernetes}`;
}

/** `1.2.x`: the highest patch; the only supported pattern. */
const PATCHES = /^(\d+)\.(\d+)\.x$/;
const NUMBERED = /^v?(\d+)\.(\d+)\.\d/;
/** A suffix that begins with a letter makes a pre-release; one of digits, such as rook's `1.0.4-14.2.21`, does not. */
const PRE_RELEASE = /-[A-Za-z]/;

/**
 * Finds the version that `requested` means in `available`, whose first element is `latest`. `SPEC_INVALID` if it is missing,
 * with a similar version as hint. What a channel has, only the release knows that publishes it.
 */
export function resolveVersion(addon: string, requested: string, available: readonly string[]): ResolvedVersion {
  const [first] = available;
  if (first === undefined) throw new CurlewError('SPEC_INVALID', `${addon}: it has no versions`);
  if (requested === 'latest') return { version: first, because: 'latest' };
  if (available.includes(requested)) return { version: requested, because: 'exact' };
  const [, major, minor] = PATCHES.exec(requested) ?? [];
  if (major === undefined || minor === undefined) throw unknownVersion(addon, requested, available);
  // Leading zeros are ignored: docker's 19.03 is 19.3.
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
    hint: `available: ${firstOf(available, MAX_NAMES)}`,
  });
}

function unknownVersion(addon: string, requested: string, available: readonly string[]): CurlewError {
  if (channelOf(requested) !== undefined) {
    return new CurlewError('SPEC_INVALID', `${addon}: ${requested} can be resolved only for a spec, in a store`, {
      hint: `use a spec and --from with the store, or write a version; available: ${firstOf(available, MAX_NAMES)}`,
    });
  }
  const near = nearest(requested, available);
  if (/[\^~<>=|*, ]/.test(requested)) {
    return new CurlewError('SPEC_INVALID', `${addon}: ${requested} is a kind of range that is not supported`, {
      hint: `${VERSION_FORMS}; available: ${firstOf(available, MAX_NAMES)}`,
    });
  }
  return new CurlewError('SPEC_INVALID', `${addon}: no version ${requested}`, {
    hint: near === undefined ? `available: ${firstOf(available, MAX_NAMES)}` : `did you mean ${near}?`,
  });
}

const MAX_NAMES = 8;
