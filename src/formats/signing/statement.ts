/**
 * Signed statements about files: in-toto statements of version 1 (github.com/in-toto/attestation) in a DSSE envelope
 * (github.com/secure-systems-lab/dsse) in a Sigstore bundle. One file contains statement and signature, so that they stay
 * together; `cosign verify-blob-attestation` reads it.
 */
import { sign, verify, type KeyObject } from 'node:crypto';
import * as v from 'valibot';
import { canonicalJson, hexOf, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { parseJson, parseText } from '../../core/json.ts';
import { byKey, checked } from '../../core/schema.ts';
import type { TrustedKey } from './keys.ts';
import { base64, formatBundle, parseBundle, unreadable, type Unreadable } from './sigstore.ts';

const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
const PAYLOAD_TYPE = 'application/vnd.in-toto+json';

/** A file that a statement is about. */
export interface Subject {
  readonly name: string;
  readonly digest: Digest;
}

export interface Statement {
  readonly subjects: readonly Subject[];
  /** A URI that defines the meaning of the predicate. */
  readonly predicateType: string;
  readonly predicate: Readonly<Record<string, unknown>>;
}

/** Canonical text of a statement. */
export function formatStatement({ subjects, predicateType, predicate }: Statement): string {
  const subject = subjects.map(({ name, digest }) => ({ name, digest: { sha256: hexOf(digest) } }));
  return canonicalJson({ _type: STATEMENT_TYPE, subject, predicateType, predicate });
}

/** The signed bytes of an envelope: its type and its payload, each after its length. */
function preAuthentication(payload: Uint8Array): Uint8Array {
  const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.byteLength} `;
  return Buffer.concat([Buffer.from(head), payload]);
}

/** Signs a statement with a key of `readPrivateKey`; returns the bundle as JSON text. */
export function signStatement(statement: Statement, key: KeyObject): string {
  const payload = Buffer.from(formatStatement(statement));
  const signatures = [{ sig: sign('sha256', preAuthentication(payload), key).toString('base64') }];
  const dsseEnvelope = { payload: payload.toString('base64'), payloadType: PAYLOAD_TYPE, signatures };
  return formatBundle({ dsseEnvelope }, key);
}

/** A bundle from outside: `from` is its source, `about` its presumed subject, for messages. */
export interface SignedStatement {
  readonly text: string;
  readonly from: string;
  readonly about: string;
}

export interface VerifiedStatement<Parsed> {
  readonly statement: Parsed;
  readonly signedBy: TrustedKey;
}

/**
 * The result of `parse` for the statement of a bundle, and the trusted key that signed it. `SIGNATURE_INVALID` if it is unreadable,
 * not signed by a trusted key, or if `parse` makes nothing of it; nothing in it is used before the signature is checked.
 */
export function verifyStatement<Parsed>(
  { text, from, about }: SignedStatement,
  trusted: readonly TrustedKey[],
  parse: (statement: Statement) => Parsed | undefined,
  otherHint: string,
): VerifiedStatement<Parsed> {
  const bad = unreadable(from, 'fetch it again, or sign the file again');
  const { payload, signatures } = parseEnvelope(text, bad);
  const signed = preAuthentication(payload);
  const signedBy = trusted.find(({ key }) => signatures.some((bytes) => verify('sha256', signed, key, bytes)));
  const names = trusted.map(({ name }) => name).join(', ');
  if (signedBy === undefined) throw refused(about, `the signature ${from} was not made with ${names}`, UNKNOWN_KEY);
  const statement = parse(parseStatement(payload, bad));
  if (statement !== undefined) return { statement, signedBy };
  throw refused(about, `${from} has a valid signature, but is not a statement about it`, otherHint);
}

/** The statement of a bundle, without verifying its signature. */
export function readStatement(text: string, from: string): Statement {
  const bad = unreadable(from, 'sign it again');
  return parseStatement(parseEnvelope(text, bad).payload, bad);
}

/** For a signature by another key. */
export const UNKNOWN_KEY = 'ask the signer for the public key';

/** The `SIGNATURE_INVALID` for a signed file. */
export function refused(about: string, reason: string, hint: string): CurlewError {
  return new CurlewError('SIGNATURE_INVALID', `cannot verify ${about}: ${reason}`, { hint });
}

const MAX_SIGNATURES = 16;

const envelopeEntries = {
  messageSignature: v.optional(v.undefined()),
  dsseEnvelope: v.object({
    payloadType: v.literal(PAYLOAD_TYPE),
    payload: base64,
    signatures: v.pipe(
      v.array(v.object({ sig: base64 })),
      v.minLength(1, 'empty'),
      v.maxLength(MAX_SIGNATURES, `more than ${MAX_SIGNATURES}`),
    ),
  }),
};

function parseEnvelope(text: string, bad: Unreadable): { readonly payload: Buffer; readonly signatures: Buffer[] } {
  const { payload, signatures } = parseBundle(text, envelopeEntries, bad).dsseEnvelope;
  const bytesOf = (value: string): Buffer => Buffer.from(value, 'base64');
  return { payload: bytesOf(payload), signatures: signatures.map(({ sig }) => bytesOf(sig)) };
}

const statementSchema = v.object({
  _type: v.literal(STATEMENT_TYPE),
  subject: v.array(v.object({ name: v.string(), digest: v.object({ sha256: v.string() }) })),
  predicateType: v.string(),
  predicate: byKey(v.unknown()),
});

function parseStatement(payload: Uint8Array, bad: Unreadable): Statement {
  const inPayload = (what: string): CurlewError => bad(`its payload: ${what}`);
  // Parsers disagree about which value of a duplicate key applies.
  const value = parseText(payload, (json) => parseJson(json), inPayload);
  const { subject, predicateType, predicate } = checked(statementSchema, value, inPayload);
  const subjects = subject.map(({ name, digest: { sha256 } }): Subject => {
    const digest = `sha256:${sha256}`;
    if (!isDigest(digest)) throw inPayload('the sha256 of a subject is not valid');
    return { name, digest };
  });
  return { subjects, predicateType, predicate };
}
