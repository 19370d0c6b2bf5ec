/**
 * Signed statements about a release: its catalog, and which release of a store is current. Pure.
 *
 * A statement next to the catalog binds the release string to this catalog forever. A statement next to `VERSION` declares
 * the current release, with a version that increases with each statement, and an expiry date.
 */
import type { KeyObject } from 'node:crypto';
import { isRelease } from '../../core/catalog.ts';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import {
  readStatement,
  signStatement,
  verifyStatement,
  type SignedStatement,
  type Statement,
  type VerifiedStatement,
} from '../../formats/signing/statement.ts';
import { claimFields, DAY, parseClaim, secondsOf, untimely, type Claim } from '../../formats/signing/claim.ts';
import type { TrustedKey } from '../../formats/signing/keys.ts';

const PREDICATE_TYPE = 'urn:curlew:release:v1';
const CATALOG = 'index.json';
const INPUTS = 'inputs.json';

/** `version` increases with each signature in a store. */
export interface ReleaseStatement extends Claim {
  /** A newer statement than a `current` one must exist after it expires, even if nothing has changed; no other one expires. */
  readonly role: 'release' | 'current';
  readonly release: string;
  readonly catalog: Digest;
  /** Undefined if the release has no `inputs.json`. */
  readonly inputs: Digest | undefined;
}

/** The signed files of a release. */
export interface ReleaseTexts {
  readonly release: string;
  readonly catalog: Uint8Array;
  readonly inputs: Uint8Array | undefined;
}

export function textsDigests({ release, catalog, inputs }: ReleaseTexts): Omit<ReleaseStatement, keyof Claim | 'role'> {
  return { release, catalog: digestOf(catalog), inputs: inputs === undefined ? undefined : digestOf(inputs) };
}

/** Signs a statement; returns the content of the signature file. */
export function signRelease(statement: ReleaseStatement, key: KeyObject): string {
  const { role, release, catalog, inputs } = statement;
  const subjects = [
    { name: CATALOG, digest: catalog },
    ...(inputs === undefined ? [] : [{ name: INPUTS, digest: inputs }]),
  ];
  const predicate = { role, release, ...claimFields(statement) };
  return signStatement({ subjects, predicateType: PREDICATE_TYPE, predicate }, key);
}

/** Verifies a statement of this role, signed with one of the keys; anything else is `SIGNATURE_INVALID`. */
export function verifyRelease(
  signed: SignedStatement,
  role: ReleaseStatement['role'],
  trusted: readonly TrustedKey[],
): VerifiedStatement<ReleaseStatement> {
  const parse = (statement: Statement): ReleaseStatement | undefined => {
    const parsed = parseReleaseStatement(statement);
    return parsed?.role === role ? parsed : undefined;
  };
  return verifyStatement(signed, trusted, parse, COPIED);
}

const COPIED = 'it was copied from another place: sign the store again, and check who can write to it';

/** Parses a statement without verifying its signature; undefined if it is not a release statement. */
export function readUnverified(text: string, from: string): ReleaseStatement | undefined {
  try {
    return parseReleaseStatement(readStatement(text, from));
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'SIGNATURE_INVALID') return undefined;
    throw error;
  }
}

function parseReleaseStatement({ subjects, predicateType, predicate }: Statement): ReleaseStatement | undefined {
  const { role, release } = predicate;
  const catalog = subjects.find(({ name }) => name === CATALOG)?.digest;
  const inputs = subjects.find(({ name }) => name === INPUTS)?.digest;
  const claim = parseClaim(predicate);
  if (predicateType !== PREDICATE_TYPE || catalog === undefined || claim === undefined) return undefined;
  if (typeof release !== 'string' || !isRelease(release)) return undefined;
  const common = { ...claim, release, catalog, inputs };
  if (role === 'release') return { ...common, role, expires: undefined };
  return role === 'current' && claim.expires !== undefined ? { ...common, role } : undefined;
}

/**
 * The version of the next statement: the clock in seconds, so that it increases even if the last statement was lost, and
 * always greater than the last one's. A last version more than a day in the future counts only if it is trusted, so that
 * a writer without the key cannot drive the version up.
 */
export function nextVersion(
  last: { readonly version: number; readonly trusted: boolean } | undefined,
  now: Date,
): number {
  const clock = Math.floor(now.getTime() / 1000);
  if (last === undefined || (!last.trusted && last.version > clock + DAY / 1000)) return clock;
  return Math.max(clock, last.version + 1);
}

/**
 * Why the statement about the current release is not accepted; undefined if it is. `highest` is the greatest version ever seen
 * in the store.
 */
export function staleness(
  { release, version, signed, expires }: ReleaseStatement,
  { now, highest }: { readonly now: Date; readonly highest: number | undefined },
): { readonly what: string; readonly hint: string } | undefined {
  const clock = `the clock of this machine says ${secondsOf(now)}`;
  if (highest !== undefined && version < highest) {
    return {
      what: `${release} is signed as version ${version}, and version ${highest} was seen before`,
      hint: 'an old state of the store was restored: ask its publisher',
    };
  }
  const problem = untimely({ signed, expires }, now);
  if (problem === 'early') {
    return { what: `${release} was signed at ${secondsOf(signed)}, and ${clock}`, hint: 'set the clock' };
  }
  if (problem === undefined) return undefined;
  return {
    what: `${release} was signed as the current release until ${secondsOf(expires ?? signed)}, and ${clock}`,
    hint: 'newer releases may be withheld: ask the publisher to run curlew sign --store again, or set the clock',
  };
}
