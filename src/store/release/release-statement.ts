/**
 * What is signed of a release: its catalogue, and which release of a store is the current one. Pure.
 *
 * A statement beside the catalogue says that the release is this catalogue, for ever. One beside `VERSION` says that it is
 * the current release, under a version that grows with each such statement, and until when that may be believed.
 */
import type { KeyObject } from 'node:crypto';
import { isRelease } from '../../core/catalogue.ts';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import {
  readStatement,
  signStatement,
  verifyStatement,
  type SignedStatement,
  type Statement,
} from '../../formats/signing/statement.ts';
import { claimFields, DAY, parseClaim, secondsOf, untimely } from '../../formats/signing/claim.ts';
import type { TrustedKey } from '../../formats/signing/keys.ts';

const PREDICATE_TYPE = 'urn:curlew:release:v1';
const CATALOGUE = 'index.json';
const INPUTS = 'inputs.json';

interface Common {
  readonly release: string;
  /** Grows with each signature of a store. */
  readonly version: number;
  readonly signed: Date;
  readonly catalogue: Digest;
  /** Undefined when the release has no `inputs.json`. */
  readonly inputs: Digest | undefined;
}

export type ReleaseStatement =
  | ({ readonly role: 'release' } & Common)
  /** After `expires` a newer one must have come, even if nothing has changed. */
  | ({ readonly role: 'current'; readonly expires: Date } & Common);

/** The texts of a release that a statement is about. */
export interface ReleaseTexts {
  readonly release: string;
  readonly catalogue: Uint8Array;
  readonly inputs: Uint8Array | undefined;
}

export function textsDigests({ release, catalogue, inputs }: ReleaseTexts): Omit<Common, 'version' | 'signed'> {
  return { release, catalogue: digestOf(catalogue), inputs: inputs === undefined ? undefined : digestOf(inputs) };
}

/** Signs a statement; returns what is put into the store. */
export function signRelease(statement: ReleaseStatement, key: KeyObject): string {
  const { role, release, version, signed, catalogue, inputs } = statement;
  const expires = role === 'current' ? statement.expires : undefined;
  const subjects = [
    { name: CATALOGUE, digest: catalogue },
    ...(inputs === undefined ? [] : [{ name: INPUTS, digest: inputs }]),
  ];
  const predicate = { role, release, ...claimFields({ version, signed, expires }) };
  return signStatement({ subjects, predicateType: PREDICATE_TYPE, predicate }, key);
}

/** The statement of this role that one of the keys has signed; anything else is `SIGNATURE_INVALID`. */
export function verifyRelease<Role extends ReleaseStatement['role']>(
  signed: SignedStatement,
  role: Role,
  trusted: readonly TrustedKey[],
): { readonly statement: Extract<ReleaseStatement, { role: Role }>; readonly signedBy: TrustedKey } {
  const { statement, signedBy } = verifyStatement(signed, trusted);
  const found = parseRelease(statement);
  if (isOf(found, role)) return { statement: found, signedBy };
  throw new CurlewError(
    'SIGNATURE_INVALID',
    `verify ${signed.about}: ${signed.from} is signed, but says something else`,
    {
      hint: 'it was put there from somewhere else: sign the store again, and see who writes to it',
    },
  );
}

function isOf<Role extends ReleaseStatement['role']>(
  statement: ReleaseStatement | undefined,
  role: Role,
): statement is Extract<ReleaseStatement, { role: Role }> {
  return statement?.role === role;
}

/** What a text says, whoever signed it; undefined when it says nothing of releases. */
export function readRelease(text: string, from: string): ReleaseStatement | undefined {
  try {
    return parseRelease(readStatement(text, from));
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'SIGNATURE_INVALID') return undefined;
    throw error;
  }
}

function parseRelease({ subjects, predicateType, predicate }: Statement): ReleaseStatement | undefined {
  const { role, release } = predicate;
  const catalogue = subjects.find(({ name }) => name === CATALOGUE)?.digest;
  const inputs = subjects.find(({ name }) => name === INPUTS)?.digest;
  const claim = parseClaim(predicate);
  if (predicateType !== PREDICATE_TYPE || catalogue === undefined || claim === undefined) return undefined;
  if (typeof release !== 'string' || !isRelease(release)) return undefined;
  const { version, signed, expires } = claim;
  const common = { release, version, signed, catalogue, inputs };
  if (role === 'release') return { role, ...common };
  return role === 'current' && expires !== undefined ? { role, expires, ...common } : undefined;
}

/**
 * The version of the next statement: seconds of the clock, so that it grows even where the last statement was lost, and
 * more than the last one's. Who may write to a store without having its key cannot drive it up: a last version beyond the
 * next day counts only when it is trusted.
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
 * Why the current release is not believed, in words; undefined when it is. `highest` is the greatest version that was ever
 * seen of the store.
 */
export function staleness(
  { release, version, signed, expires }: Extract<ReleaseStatement, { role: 'current' }>,
  { now, highest }: { readonly now: Date; readonly highest: number | undefined },
): { readonly what: string; readonly hint: string } | undefined {
  const clock = `the clock of this machine says ${secondsOf(now)}`;
  if (highest !== undefined && version < highest) {
    return {
      what: `${release} is signed as version ${version}, and version ${highest} was seen before`,
      hint: 'somebody has put an old state of the store back: ask who publishes it',
    };
  }
  const problem = untimely({ signed, expires }, now);
  if (problem === 'early') {
    return { what: `${release} was signed at ${secondsOf(signed)}, and ${clock}`, hint: 'set the clock' };
  }
  if (problem === undefined) return undefined;
  return {
    what: `${release} was signed as the current release until ${secondsOf(expires)}, and ${clock}`,
    hint: 'newer releases may be kept from you: ask who publishes to sign again with curlew sign --store; or set the clock',
  };
}
