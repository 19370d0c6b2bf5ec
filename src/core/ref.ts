/** Names and versions of add-ons, and the order of versions. */
import { CurlewError } from './errors.ts';

export type Arch = 'amd64' | 'arm64';
export const ARCHES: readonly Arch[] = ['amd64', 'arm64'];

const UNAME: ReadonlyMap<string, Arch> = new Map([
  ['x86_64', 'amd64'],
  ['x86-64', 'amd64'],
  ['aarch64', 'arm64'],
]);

/** The usual name of an architecture that may be written as `uname -m` prints it. */
export function archName(text: string): string {
  return UNAME.get(text.toLowerCase()) ?? text;
}

/** The root folder of a package's files: `addons/<name>/<version>` or `packages/<name>/<version>`. */
export type AddonTree = 'addons' | 'packages';

/** An add-on at one version. */
export interface AddonVersion {
  readonly name: string;
  readonly version: string;
}

export interface AddonRef extends AddonVersion {
  readonly tree: AddonTree;
}

const NAME = /^[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?$/;
const VERSION = /^[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,126}[A-Za-z0-9])?$/;

/** An add-on's name: lower case, digits, `.`, `_`, `-`; 100 characters; it becomes a path, a key and a shell function. */
export function isAddonName(text: string): boolean {
  return NAME.test(text) && !text.includes('..');
}

/** A version as written in a folder name; often not semver (`v5`, `10to14`, a date). */
export function isVersion(text: string): boolean {
  return VERSION.test(text) && !text.includes('..');
}

/** Checks a name and a version from outside and returns a reference. */
export function addonRef(name: string, version: string, tree: AddonTree = 'addons'): AddonRef {
  if (!isAddonName(name)) {
    throw new CurlewError('PACKAGE_INVALID', `not an add-on name: ${JSON.stringify(name.slice(0, 120))}`, {
      hint: 'a name has lower-case letters, digits, ".", "_" and "-", and begins and ends with a letter or digit',
    });
  }
  if (!isVersion(version)) {
    throw new CurlewError('PACKAGE_INVALID', `${name}: not a version: ${JSON.stringify(version.slice(0, 120))}`);
  }
  return { tree, name, version };
}

export function formatRef({ name, version }: Pick<AddonRef, 'name' | 'version'>): string {
  return `${name}-${version}`;
}

/** Compares by code unit, independent of locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

const RUN = /\d+|[^\d.+-]+/g;

/**
 * Total order over version strings of every shape that kURL's add-ons have: runs of digits compare as numbers, other runs as
 * text; `1.2.3-rc1` (a suffix that begins with a letter) comes before `1.2.3`, `1.0.4-14.2.21` (a suffix of digits) after
 * `1.0.4`; a leading `v` is ignored; versions that are equal by these rules are ordered by code unit.
 */
export function compareVersions(a: string, b: string): number {
  const left = runsOf(a);
  const right = runsOf(b);
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    const order = compareRuns(left[index], right[index]);
    if (order !== 0) return order;
  }
  return compareText(a, b);
}

function runsOf(version: string): readonly string[] {
  return version.replace(/^v(?=\d)/, '').match(RUN) ?? [];
}

function compareRuns(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) {
    const more = a ?? b ?? '';
    const longerIsGreater = /^\d/.test(more) ? 1 : -1;
    return a === undefined ? -longerIsGreater : longerIsGreater;
  }
  const aDigits = /^\d/.test(a);
  const bDigits = /^\d/.test(b);
  if (aDigits && bDigits) {
    const [left, right] = [BigInt(a), BigInt(b)];
    if (left === right) return 0;
    return left < right ? -1 : 1;
  }
  if (aDigits !== bDigits) return aDigits ? 1 : -1;
  return compareText(a, b);
}
