/**
 * The signed statement about a bundle or a package: its kind, name, version, and period of validity; the digest of the whole
 * file; and that of its table of contents, which range readers verify. Pure.
 */
import type { KeyObject } from 'node:crypto';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { DELTA_CONTENTS, ownerOf, prefixOf, TOC_NAME } from '../../core/layout.ts';
import { claimFields, parseClaim, secondsOf, untimely, type Claim } from './claim.ts';
import type { TrustedKey } from './keys.ts';
import {
  refused,
  signStatement,
  verifyStatement,
  type SignedStatement,
  type Statement,
  type VerifiedStatement,
} from './statement.ts';

const PREDICATE_TYPE = 'urn:curlew:archive:v1';

/** A delta is also a bundle. */
export type ArchiveRole = 'bundle' | 'package';

export interface ArchiveStatement extends Claim {
  readonly role: ArchiveRole;
  /** A package is named `addons/<name>/<version>`; a bundle has the name that its signer chose, not that of its file. */
  readonly name: string;
  /** Digest of all bytes of the file. */
  readonly file: Digest;
  /** Digest of the text of its table of contents. */
  readonly contents: Digest;
  /** Contents of the bundle that a delta recreates; undefined for other files. */
  readonly makes: Digest | undefined;
}

const PACKAGE_NAME = /^(?:addons|packages)\/[a-z0-9][a-z0-9._-]{0,99}\/[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/;

/** True for a valid bundle name: up to 100 letters, digits, `.`, `_`, `+` and `-`, with a letter or digit first. */
export function isBundleName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$/.test(text);
}

/** The role of an archive with these paths, and its name if the paths determine it: a single package, or a bundle. */
export function archiveOf(paths: readonly string[]): { readonly role: ArchiveRole; readonly name: string | undefined } {
  const names = new Set<string | undefined>();
  for (const path of paths) {
    const owner = ownerOf(path);
    names.add(owner === undefined ? undefined : prefixOf(owner).slice(0, -1));
    if (names.size > 1) break;
  }
  const [name] = names;
  return names.size === 1 && name !== undefined ? { role: 'package', name } : { role: 'bundle', name: undefined };
}

/** Signs a statement; returns the Sigstore bundle as JSON text. */
export function signArchive(statement: ArchiveStatement, key: KeyObject): string {
  const { role, name, file, contents, makes } = statement;
  const subjects = [
    { name: fileSubject(role), digest: file },
    { name: TOC_NAME, digest: contents },
    ...(makes === undefined ? [] : [{ name: DELTA_CONTENTS, digest: makes }]),
  ];
  return signStatement(
    { subjects, predicateType: PREDICATE_TYPE, predicate: { role, name, ...claimFields(statement) } },
    key,
  );
}

function fileSubject(role: ArchiveRole): string {
  return `${role}.tar.gz`;
}

/**
 * The statement about an archive with these contents, signed by one of the keys. Anything else, such as a statement about
 * other contents, is `SIGNATURE_INVALID`.
 */
export function verifyArchiveStatement(
  signed: SignedStatement,
  contents: Digest,
  trusted: readonly TrustedKey[],
): VerifiedStatement<ArchiveStatement> {
  const verified = verifyStatement(signed, trusted, parseArchive, FETCH_BOTH);
  if (verified.statement.contents === contents) return verified;
  throw refused(signed.about, `the signature ${signed.from} belongs to another file`, FETCH_BOTH);
}

const FETCH_BOTH = 'fetch both again from the same source';

function parseArchive({ subjects, predicateType, predicate }: Statement): ArchiveStatement | undefined {
  const { role, name } = predicate;
  const claim = parseClaim(predicate);
  const digests = new Map(subjects.map((subject) => [subject.name, subject.digest]));
  if (predicateType !== PREDICATE_TYPE || claim === undefined || digests.size !== subjects.length) return undefined;
  if ((role !== 'bundle' && role !== 'package') || typeof name !== 'string') return undefined;
  const [file, contents] = [digests.get(fileSubject(role)), digests.get(TOC_NAME)];
  const isNamed = role === 'bundle' ? isBundleName(name) : PACKAGE_NAME.test(name);
  if (!isNamed || file === undefined || contents === undefined) return undefined;
  return { role, name, file, contents, makes: digests.get(DELTA_CONTENTS), ...claim };
}

/** The highest signed version of each bundle that this node has seen, by name, and its contents. */
export type SeenBundles = ReadonlyMap<string, { readonly version: number; readonly contents: Digest }>;

/** The contents of the resulting bundle: a delta and the bundle that it recreates are equivalent. */
export function finalContents({ contents, makes }: Pick<ArchiveStatement, 'contents' | 'makes'>): Digest {
  return makes ?? contents;
}

export interface SignatureRequirements {
  /** Required role; undefined accepts bundles and packages. */
  readonly role: ArchiveRole | undefined;
  /** Required name; undefined accepts any name that this node has seen, or the first one. */
  readonly name: string | undefined;
  readonly allowDowngrade: boolean;
  /** Refuse signatures without a statement. */
  readonly statement: boolean;
  readonly seen: SeenBundles;
  readonly now: Date;
}

/**
 * Throws for a valid statement that does not meet the requirements: another role, another name, an expired one or one from
 * the future are `SIGNATURE_INVALID`; an older version than this node has seen is `DOWNGRADE`.
 */
export function requireAcceptable(statement: ArchiveStatement, about: string, required: SignatureRequirements): void {
  const { role, name, version } = statement;
  const prefix = `cannot verify ${about}: it is signed as the ${role} ${name}`;
  if (required.role !== undefined && role !== required.role) {
    throw invalid(`${prefix}, but a ${required.role} is required`, `use a ${required.role}`);
  }
  if (required.name !== undefined && name !== required.name) {
    throw invalid(`${prefix}, not as ${required.name}`, `if ${name} is intended, add --signed-as ${name}`);
  }
  requireTimely(statement, prefix, required.now);
  if (role !== 'bundle' || required.seen.size === 0) return;
  const known = required.seen.get(name);
  if (known === undefined && required.name === undefined) {
    const names = [...required.seen.keys()].join(', ');
    throw invalid(
      `${prefix}; this node has bundles of this key named ${names}`,
      `if ${name} is intended, add --signed-as ${name}`,
    );
  }
  if (known === undefined || version >= known.version || finalContents(statement) === known.contents) return;
  if (required.allowDowngrade) return;
  throw new CurlewError(
    'DOWNGRADE',
    `${prefix}, version ${version}, but this node has already seen version ${known.version}`,
    { hint: 'use the newer bundle; if the older one is intended, add --allow-downgrade' },
  );
}

function requireTimely(statement: ArchiveStatement, prefix: string, now: Date): void {
  const problem = untimely(statement, now);
  if (problem === undefined) return;
  const clock = `but the clock of this machine shows ${secondsOf(now)}`;
  if (problem === 'early' || statement.expires === undefined) {
    throw invalid(`${prefix} at ${secondsOf(statement.signed)}, ${clock}`, 'set the clock');
  }
  throw invalid(
    `${prefix} until ${secondsOf(statement.expires)}, ${clock}`,
    'ask the signer for a newer bundle or a new signature; if the clock is wrong, set it',
  );
}

/** For a signature over contents alone: `SIGNATURE_INVALID` if a name or a statement is required, `DOWNGRADE` after a statement was seen. */
export function requireBareAcceptable(about: string, wanted: SignatureRequirements): void {
  const { name, allowDowngrade, seen, statement } = wanted;
  const prefix = `cannot verify ${about}: its signature covers no name, version or time`;
  const hint = 'ask the signer to sign it again with curlew sign';
  if (name !== undefined) throw invalid(`${prefix}, but the name ${name} is required`, hint);
  if (statement) throw invalid(`${prefix}, and --require-statement refuses such signatures`, hint);
  if (seen.size === 0 || allowDowngrade) return;
  throw new CurlewError('DOWNGRADE', `${prefix}, but this node has already seen bundles whose signatures do`, {
    hint: `${hint}; --allow-downgrade accepts it unchanged`,
  });
}

function invalid(message: string, hint: string): CurlewError {
  return new CurlewError('SIGNATURE_INVALID', message, { hint });
}
