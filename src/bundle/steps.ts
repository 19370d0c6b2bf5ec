/**
 * Which versions an upgrade passes through (kurl.md 6.11): of kubernetes one for each minor between, of rook from the newest
 * patch of where it stands, of containerd one for each minor between. Other add-ons go from any version to any other. Pure.
 */
import { CurlewError } from '../core/errors.ts';
import { compareVersions } from '../core/ref.ts';
import { resolveVersion } from '../spec/version.ts';

/** A package that an upgrade needs on its way. */
export interface Step {
  readonly name: string;
  readonly version: string;
  /** For people. */
  readonly because: string;
}

export interface Upgrade {
  readonly name: string;
  /** What the oldest node has; a minor without a patch will do. */
  readonly from: string;
  readonly to: string;
}

/** Versions that there are packages of, by add-on. */
export type Available = (name: string) => readonly string[];

/** Rook 1.0 becomes 1.4 by a package of its own. */
const ROOK_UPGRADE = { name: 'rookupgrade', version: '10to14' } as const;
/** The first rook that those before 1.4 can go on from. */
const ROOK_DOOR = '1.4.9';
/** How many minors containerd may leap. */
const CONTAINERD_LEAP = 2;

/** In the order in which they are taken. No way there, or a version that has no package: `SPEC_INVALID`. */
export function upgradeSteps(upgrade: Upgrade, available: Available): readonly Step[] {
  const { name, from, to } = upgrade;
  if (name !== 'kubernetes' && name !== 'rook' && name !== 'containerd') return [];
  const [was, is] = [minorOf(name, from), minorOf(name, to)];
  if (was.major === is.major ? was.minor > is.minor : was.major > is.major) {
    throw impossible(upgrade, 'that is a downgrade');
  }
  if (name === 'containerd') return containerdSteps(upgrade, was, is, available);
  if (was.major !== is.major) throw impossible(upgrade, 'not across major versions');
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

/** The newest patch of each minor from `first` to the one before the last. */
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
    throw new CurlewError('SPEC_INVALID', `${name}: the step ${minor} is lacking ${because}`, {
      hint: `publish a package of ${name} ${minor}.x into the release`,
      cause: error,
    });
  }
}

function containerdSteps(upgrade: Upgrade, was: Minor, is: Minor, available: Available): readonly Step[] {
  if (was.major !== is.major) {
    if (was.major === 1 && was.minor === 7 && is.major === 2) return [];
    throw impossible(upgrade, 'only 1.7 leads to 2', 'upgrade to containerd 1.7 first');
  }
  if (is.minor > was.minor + CONTAINERD_LEAP) {
    throw impossible(upgrade, 'no more than two minor versions at once', 'upgrade to an older containerd first');
  }
  return between(upgrade, was.minor + 1, is, available);
}

function rookSteps(upgrade: Upgrade, was: Minor, is: Minor, available: Available): readonly Step[] {
  const { name, from, to } = upgrade;
  if (was.minor >= 4) return is.minor > was.minor + 1 ? between(upgrade, was.minor, is, available) : [];
  // Between 1.0 and 1.4 rook was never shipped.
  if (is.minor < 4 || compareVersions(to, ROOK_DOOR) < 0) return [];
  if (!available(ROOK_UPGRADE.name).includes(ROOK_UPGRADE.version)) {
    throw impossible(
      upgrade,
      `there is no package ${ROOK_UPGRADE.name}-${ROOK_UPGRADE.version}`,
      'publish it into the release',
    );
  }
  const leap = { ...ROOK_UPGRADE, because: `from ${name} ${from} to 1.4` };
  return [leap, ...between(upgrade, 4, is, available)];
}
