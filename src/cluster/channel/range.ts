/**
 * Ranges of versions, as the indexes of kops have them (grammar: ParseRange of github.com/blang/semver), and as curlew reads
 * them. A cluster's version counts without its pre-release, so every range is a set of intervals over three numbers. Pure.
 *
 * Versions are parsed by the `semver` package, whose strict grammar and precedence are those of blang/semver. Its ranges are
 * not used: to npm, `>=1.6` and `^1.6.0` are ranges, pre-releases are excluded, and wildcards need no `x`.
 */
import { parse } from 'semver';
import { CurlewError } from '../../core/errors.ts';

export type Triple = readonly [major: number, minor: number, patch: number];

/** All versions from `from` up to `to`, which is not one of them. */
export interface Interval {
  readonly from: Triple;
  readonly to: Triple;
}

/** Disjoint and in ascending order. No version is in an empty one. */
export type VersionRange = readonly Interval[];

/** Whose reading of a range: kops' with all its quirks, or the intended one. */
export type RangeRules = 'kops' | 'native';

export type ParsedRange =
  | { readonly range: VersionRange; readonly problem?: undefined }
  | { readonly range?: undefined; readonly problem: string };

const FIRST: Triple = [0, 0, 0];
const END: Triple = [Number.MAX_SAFE_INTEGER, 0, 0];
const ALL: VersionRange = [{ from: FIRST, to: END }];
/** Far above anything that people write; a range costs time for each of its parts. */
const MAX_LENGTH = 512;

/**
 * A version as ParseTolerant of blang/semver reads it, in its strict form and without build metadata: a leading `v`, leading
 * zeros, and one or two numbers are accepted. Undefined for anything else.
 */
export function parseVersion(text: string): string | undefined {
  const [, major, minor = '0', rest = '0'] = /^v?(\d+)(?:\.(\d+)(?:\.(.*))?)?$/s.exec(text.trim()) ?? [];
  if (major === undefined) return undefined;
  return parse([major, minor, rest].map((part) => part.replace(/^0+(?=\d)/, '')).join('.'))?.version;
}

/** The numbers of a cluster's version, `v1.29.4-gke.100` for example. Undefined if it is not a version. */
export function parseTriple(text: string): Triple | undefined {
  const version = parse(parseVersion(text));
  return version === null ? undefined : [version.major, version.minor, version.patch];
}

/** The same; throws `USAGE` for what is not a version. */
export function kubernetesTriple(text: string): Triple {
  const triple = parseTriple(text);
  if (triple !== undefined) return triple;
  throw new CurlewError('USAGE', `not a version of Kubernetes: ${text.slice(0, 60)}`, { hint: 'write it as v1.30.2' });
}

export function compareTriples(a: Triple, b: Triple): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

export function contains(range: VersionRange, version: Triple): boolean {
  return range.some(({ from, to }) => compareTriples(from, version) <= 0 && compareTriples(version, to) < 0);
}

/** All versions that are in at least one of the intervals, in whatever order those are. */
export function union(intervals: readonly Interval[]): VersionRange {
  const merged: Interval[] = [];
  for (const next of intervals.toSorted((a, b) => compareTriples(a.from, b.from))) {
    const last = merged.at(-1);
    if (compareTriples(next.from, next.to) >= 0) continue;
    if (last === undefined || compareTriples(last.to, next.from) < 0) merged.push(next);
    else if (compareTriples(last.to, next.to) < 0) merged[merged.length - 1] = { from: last.from, to: next.to };
  }
  return merged;
}

export function intersection(a: VersionRange, b: VersionRange): VersionRange {
  return a.flatMap((left) =>
    b.flatMap((right) => {
      const from = compareTriples(left.from, right.from) < 0 ? right.from : left.from;
      const to = compareTriples(left.to, right.to) < 0 ? left.to : right.to;
      return compareTriples(from, to) < 0 ? [{ from, to }] : [];
    }),
  );
}

export function complement(range: VersionRange): VersionRange {
  const ends = [FIRST, ...range.map(({ to }) => to)];
  return union(ends.map((from, at) => ({ from, to: range[at]?.from ?? END })));
}

/** The versions between the first and the last interval that are in neither of them. */
export function gapsIn(range: VersionRange): VersionRange {
  return complement(range).filter(({ from, to }) => compareTriples(from, FIRST) > 0 && compareTriples(to, END) < 0);
}

/** How {@link formatRange} writes a range without limits. */
export const EVERY_VERSION = 'every version';

/** `>=1.28.0 <1.32.0`. */
export function formatRange(range: VersionRange): string {
  if (range.length === 0) return 'no version';
  const text = range.map(({ from, to }) => {
    const [major, minor, patch] = from;
    if (compareTriples(to, [major, minor, patch + 1]) === 0) return from.join('.');
    const parts = [
      compareTriples(from, FIRST) > 0 && `>=${from.join('.')}`,
      compareTriples(to, END) < 0 && `<${to.join('.')}`,
    ];
    return parts.filter((part) => part !== false).join(' ');
  });
  return text.join(' || ') || EVERY_VERSION;
}

/**
 * Reads a range. The empty text contains every version. `kops` reads as kops does: a single character between spaces is
 * ignored, `~1.2.x` is `=1.2.0`, and nothing satisfies `!=1.2.x`; `native` refuses the former and reads the latter as it is
 * meant. Texts of more than 512 characters are refused by both.
 */
export function parseRange(text: string, rules: RangeRules): ParsedRange {
  if (text === '') return { range: ALL };
  if (text.length > MAX_LENGTH) return { problem: `it is longer than ${MAX_LENGTH} characters` };
  const alternatives: string[][] = [[]];
  for (const term of termsOf(text, rules)) {
    if (term === '||') alternatives.push([]);
    else alternatives.at(-1)?.push(term);
  }
  if (alternatives.some((terms) => terms.length === 0)) return { problem: 'a comparison is missing' };
  const intervals: Interval[] = [];
  for (const terms of alternatives) {
    let range = ALL;
    for (const term of terms) {
      const one = readTerm(term, rules);
      if (one === undefined) return { problem: `"${term.slice(0, 60)}" is not a comparison with a version` };
      range = intersection(range, one);
    }
    intervals.push(...range);
  }
  return { range: union(intervals) };
}

/** Split at spaces, but not after `<`, `>` and `=`. */
function termsOf(text: string, rules: RangeRules): readonly string[] {
  const terms = text.split(/(?<![<>=] *) /);
  const usable =
    rules === 'native' ? terms.filter((term) => term !== '') : terms.filter((term) => /..|[^\0-\x7f]/s.test(term));
  return usable.map((term) => term.replaceAll(' ', ''));
}

function readTerm(term: string, rules: RangeRules): VersionRange | undefined {
  const at = term.search(/\p{Nd}/u);
  if (at === -1) return undefined;
  const [sign, version] = [term.slice(0, at), term.slice(at)];
  if (rules === 'kops')
    return term.includes('x') ? readKopsWildcard(sign.trim(), version) : compared(sign.trim(), exactly(version));
  return compared(sign, /^\d+(?:\.\d+)?(?:\.x)+$/.test(version) ? wildcard(version) : exactly(version));
}

/** A version, with all three numbers. What has a pre-release is an interval without versions, before its numbers. */
function exactly(version: string): Interval | undefined {
  const parsed = /\s/.test(version) ? null : parse(version);
  if (parsed === null) return undefined;
  const { major, minor, patch } = parsed;
  const from: Triple = [major, minor, patch];
  return { from, to: parsed.prerelease.length > 0 ? from : [major, minor, patch + 1] };
}

/** `1.x`, `1.x.x` and `1.2.x`. */
function wildcard(version: string): Interval | undefined {
  const [major, minor, ...rest] = version.split('.');
  const from = exactly(`${major}.${minor === 'x' ? 0 : minor}.0`)?.from;
  if (from === undefined || rest.length > 1) return undefined;
  return { from, to: minor === 'x' ? [from[0] + 1, 0, 0] : [from[0], from[1] + 1, 0] };
}

function compared(sign: string, interval: Interval | undefined): VersionRange | undefined {
  if (interval === undefined) return undefined;
  const { from, to } = interval;
  if (sign === '' || sign === '=' || sign === '==') return union([interval]);
  if (sign === '!' || sign === '!=') return complement(union([interval]));
  if (sign === '<') return union([{ from: FIRST, to: from }]);
  if (sign === '<=') return union([{ from: FIRST, to }]);
  if (sign === '>') return union([{ from: to, to: END }]);
  return sign === '>=' ? union([{ from, to: END }]) : undefined;
}

/** Terms with an `x` anywhere are rewritten by kops before they are parsed, whatever their sign is. */
function readKopsWildcard(sign: string, version: string): VersionRange | undefined {
  const replaced = version.replace('.x.x', '.x').replace('.x', '.0');
  const flat = exactly(replaced.split('.').length === 2 ? `${replaced}.0` : replaced);
  if (flat === undefined || sign === '>=' || sign === '<') return compared(sign, flat);
  if (!['', '=', '==', '!', '!=', '>', '<='].includes(sign)) return compared('=', flat);
  const [major, minor] = flat.from;
  const width = version.endsWith('.x') ? version.split('.').length : 0;
  if (width !== 2 && width !== 3) return undefined;
  const to: Triple = width === 2 ? [major + 1, 0, 0] : [major, minor + 1, 0];
  // Below the wildcard and above it, at the same time.
  if (sign.startsWith('!')) return [];
  return compared(sign, { from: flat.from, to });
}
