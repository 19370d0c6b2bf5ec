/**
 * Intermediate versions of an upgrade (kurl.md 6.11): kubernetes and containerd need every minor version between, rook starts
 * with the newest patch of the installed minor version. Other add-ons need no steps. Pure.
 */
import { CurlewError } from '../../core/errors.ts';
import { compareVersions, type AddonVersion } from '../../core/ref.ts';
import { resolveVersion } from '../../spec/version.ts';

/** An intermediate package of an upgrade. */
interface Step extends AddonVersion {
  /** For people. */
  readonly because: string;
}

export interface Upgrade {
  readonly name: string;
  /** The version on the oldest node; a minor version without a patch is allowed. */
  readonly from: string;
  readonly to: string;
}

/** Returns the versions of an add-on that have packages. */
export type Available = (name: string) => readonly string[];

/** The package that upgrades rook 1.0 to 1.4. */
const ROOK_UPGRADE = { name: 'rookupgrade', version: '10to14' } as const;
/** The first rook version to which versions before 1.4 can be upgraded. */
const ROOK_FIRST_TARGET = '1.4.9';
/** Maximum minor versions in one containerd upgrade. */
const CONTAINERD_MAX_MINORS = 2;

/** The steps, in order. An impossible upgrade, or a step without a package, is `SPEC_INVALID`. */
export function upgradeSteps(upgrade: Upgrade, available: Available): readonly Step[] {
  const { name, from, to } = upgrade;
  if (name !== 'kubernetes' && name !== 'rook' && name !== 'containerd') return [];
  const [was, is] = [minorOf(name, from), minorOf(name, to)];
  if (was.major === is.major ? was.minor > is.minor : was.major > is.major) {
    throw impossible(upgrade, 'that is a downgrade');
  }
  if (name === 'containerd') return containerdSteps(upgrade, was, is, available);
  if (was.major !== is.major) throw impossible(upgrade, 'the major versions differ');
  if (name === 'kubernetes') return between(upgrade, was.minor + 1, is, available);
  return rookSteps(upgrade, was, is, available);
}

interface Minor {
  readonly major: number;
  readonly minor: number;
}

function minorOf(name: string, version: string): Minor {
  const [, major, minor] = /^v?(\d{1,6})\.(\d{1,6})(?:\.|$)/.exec(version) ?? [];
  if (major === undefined || minor === undefined) {
    throw new CurlewError(
      'SPEC_INVALID',
      `${name}: ${JSON.stringify(version.slice(0, 100))} has no major and minor version`,
    );
  }
  return { major: Number(major), minor: Number(minor) };
}

function impossible({ name, from, to }: Upgrade, why: string, hint?: string): CurlewError {
  return new CurlewError('SPEC_INVALID', `${name}: no upgrade from ${from} to ${to}: ${why}`, { hint });
}

/** The newest patch of each minor version from `first` to the one before `last`. */
function between({ name, from, to }: Upgrade, first: number, last: Minor, available: Available): readonly Step[] {
  const steps: Step[] = [];
  for (let minor = first; minor < last.minor; minor += 1) {
    steps.push(newestPatch(name, `${last.major}.${minor}`, `on the way from ${from} to ${to}`, available));
  }
  return steps;
}

function newestPatch(name: string, minor: string, because: string, available: Available): Step {
  try {
    const { version } = resolveVersion(name, `${minor}.x`, available(name));
    return { name, version, because };
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    throw new CurlewError('SPEC_INVALID', `${name}: version ${minor} is missing ${because}`, {
      hint: `publish a package of ${name} ${minor}.x in the release`,
      cause: error,
    });
  }
}

function containerdSteps(upgrade: Upgrade, was: Minor, is: Minor, available: Available): readonly Step[] {
  if (was.major !== is.major) {
    if (was.major === 1 && was.minor === 7 && is.major === 2) return [];
    throw impossible(upgrade, 'only 1.7 can be upgraded to 2', 'upgrade to containerd 1.7 first');
  }
  if (is.minor > was.minor + CONTAINERD_MAX_MINORS) {
    throw impossible(upgrade, 'at most two minor versions in one upgrade', 'upgrade to an older containerd first');
  }
  return between(upgrade, was.minor + 1, is, available);
}

function rookSteps(upgrade: Upgrade, was: Minor, is: Minor, available: Available): readonly Step[] {
  const { name, from, to } = upgrade;
  if (was.minor >= 4) return is.minor > was.minor + 1 ? between(upgrade, was.minor, is, available) : [];
  // kURL never shipped rook versions between 1.0 and 1.4.
  if (is.minor < 4 || compareVersions(to, ROOK_FIRST_TARGET) < 0) return [];
  if (!available(ROOK_UPGRADE.name).includes(ROOK_UPGRADE.version)) {
    throw impossible(
      upgrade,
      `the package ${ROOK_UPGRADE.name}-${ROOK_UPGRADE.version} is missing`,
      'publish it in the release',
    );
  }
  const first = { ...ROOK_UPGRADE, because: `from ${name} ${from} to 1.4` };
  return [first, ...between(upgrade, 4, is, available)];
}
