/**
 * What is signed of a bundle or a package: what kind of archive it is, under which name and version, since when and until
 * when; the digest of the whole file; and that of its table of contents, which readers by range hold it to. Pure.
 */
import type { KeyObject } from 'node:crypto';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { DELTA_CONTENTS, ownerOf, prefixOf, TOC_NAME } from '../../core/layout.ts';
import { claimFields, parseClaim, secondsOf, untimely, type Claim } from './claim.ts';
import type { TrustedKey } from './keys.ts';
import { signStatement, verifyStatement, type SignedStatement, type Statement } from './statement.ts';

const PREDICATE_TYPE = 'urn:curlew:archive:v1';

/** A delta is a bundle, too. */
export type ArchiveRole = 'bundle' | 'package';

export interface ArchiveStatement extends Claim {
  readonly role: ArchiveRole;
  /** Of a package `addons/<name>/<version>`; of a bundle what its signer calls it, whatever its file is called. */
  readonly name: string;
  /** Of all bytes of the file. */
  readonly file: Digest;
  /** Of the text of its table of contents. */
  readonly contents: Digest;
  /** Of a delta: the contents of the bundle that it makes. */
  readonly makes: Digest | undefined;
}

const PACKAGE_NAME = /^(?:addons|packages)\/[a-z0-9][a-z0-9._-]{0,99}\/[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/;

/** True for what a bundle may be called: letters, digits, `.`, `_`, `+` and `-`, 100 characters, the first no sign. */
export function isBundleName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$/.test(text);
}

/** What an archive with these paths is, and what it is called if that follows from them: one package by itself, or a bundle. */
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
 * The statement about an archive with these contents that one of the keys has signed. Anything else, a statement about
 * other contents or other things, is `SIGNATURE_INVALID`.
 */
export function verifyArchive(
  signed: SignedStatement,
  contents: Digest,
  trusted: readonly TrustedKey[],
): { readonly statement: ArchiveStatement; readonly signedBy: TrustedKey } {
  const { statement, signedBy } = verifyStatement(signed, trusted);
  const found = parseArchive(statement);
  if (found === undefined) {
    throw invalid(`verify ${signed.about}: ${signed.from} is signed, but says something else`, FETCH_BOTH);
  }
  if (found.contents === contents) return { statement: found, signedBy };
  throw invalid(`verify ${signed.about}: the signature ${signed.from} is of another file`, FETCH_BOTH);
}

const FETCH_BOTH = 'fetch both again, from where they belong together';

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

/** The highest version of each bundle that was ever seen signed, by name, and the contents that it had. */
export type SeenBundles = ReadonlyMap<string, { readonly version: number; readonly contents: Digest }>;

/** The contents of what is there in the end: a delta and the bundle that it makes are the same thing. */
export function finalContents({ contents, makes }: Pick<ArchiveStatement, 'contents' | 'makes'>): Digest {
  return makes ?? contents;
}

export interface Wanted {
  /** Undefined where bundles and packages will do. */
  readonly role: ArchiveRole | undefined;
  /** What it must be called; undefined where any name will do that is known here, or is the first. */
  readonly name: string | undefined;
  readonly allowDowngrade: boolean;
  readonly seen: SeenBundles;
  readonly now: Date;
}

/**
 * Throws for a statement that holds, but not here: another kind, another name, one that is over or from the future are
 * `SIGNATURE_INVALID`; an older version than was seen is `DOWNGRADE`.
 */
export function requireWanted(statement: ArchiveStatement, about: string, wanted: Wanted): void {
  const { role, name, version } = statement;
  const words = `verify ${about}: it is signed as the ${role} ${name}`;
  if (wanted.role !== undefined && role !== wanted.role) {
    throw invalid(`${words}, and a ${wanted.role} is wanted`, 'name the right file');
  }
  if (wanted.name !== undefined && name !== wanted.name) {
    throw invalid(`${words}, not as ${wanted.name}`, `if ${name} is meant, say --signed-as ${name}`);
  }
  requireTimely(statement, words, wanted.now);
  if (role !== 'bundle' || wanted.seen.size === 0) return;
  const known = wanted.seen.get(name);
  if (known === undefined && wanted.name === undefined) {
    const names = [...wanted.seen.keys()].join(', ');
    throw invalid(
      `${words}; bundles of this key on this node are ${names}`,
      `if ${name} is meant, say --signed-as ${name}`,
    );
  }
  if (known === undefined || version >= known.version || finalContents(statement) === known.contents) return;
  if (wanted.allowDowngrade) return;
  throw new CurlewError(
    'DOWNGRADE',
    `${words}, version ${version}, and version ${known.version} was seen on this node`,
    {
      hint: 'use the newer bundle; --allow-downgrade takes this one, which somebody may have put back on purpose',
    },
  );
}

function requireTimely(statement: ArchiveStatement, words: string, now: Date): void {
  const problem = untimely(statement, now);
  if (problem === undefined) return;
  const clock = `and the clock of this machine says ${secondsOf(now)}`;
  if (problem === 'early' || statement.expires === undefined) {
    throw invalid(`${words} at ${secondsOf(statement.signed)}, ${clock}`, 'set the clock');
  }
  throw invalid(
    `${words} until ${secondsOf(statement.expires)}, ${clock}`,
    'ask who signed it for a newer one, or to sign it again; or set the clock',
  );
}

/** The same of a signature over contents alone: `SIGNATURE_INVALID` where a name is wanted, `DOWNGRADE` after statements. */
export function requireBareWanted(about: string, { name, allowDowngrade, seen }: Wanted): void {
  const words = `verify ${about}: its signature binds no name, version or time`;
  const hint = 'ask who signed it to sign it again with curlew sign';
  if (name !== undefined) throw invalid(`${words}, and it is to be ${name}`, hint);
  if (seen.size === 0 || allowDowngrade) return;
  throw new CurlewError('DOWNGRADE', `${words}, and bundles that are signed so were seen on this node`, {
    hint: `${hint}; --allow-downgrade takes it as it is`,
  });
}

function invalid(message: string, hint: string): CurlewError {
  return new CurlewError('SIGNATURE_INVALID', message, { hint });
}
