/**
 * Signed statements about files: in-toto statements of version 1 (github.com/in-toto/attestation) in a DSSE envelope
 * (github.com/secure-systems-lab/dsse) in a Sigstore bundle. One file contains statement and signature, so that they stay
 * together; `cosign verify-blob-attestation` reads it.
 */
import { sign, verify, type KeyObject } from 'node:crypto';
import { canonicalJson, hexOf, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject, parseJson } from '../../core/json.ts';
import type { TrustedKey } from './keys.ts';
import { formatBundle, fromBase64, parseBundle, unreadable, type Unreadable } from './sigstore.ts';

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

/**
 * The statement of a bundle, and the trusted key that signed it. `SIGNATURE_INVALID` if it is unreadable or not signed by a
 * trusted key; nothing in it is used before that check.
 */
export function verifyStatement(
  { text, from, about }: SignedStatement,
  trusted: readonly TrustedKey[],
): { readonly statement: Statement; readonly signedBy: TrustedKey } {
  const bad = unreadable(from, 'fetch it again, or sign the file again');
  const { payload, signatures } = parseEnvelope(text, bad);
  const signed = preAuthentication(payload);
  const signedBy = trusted.find(({ key }) => signatures.some((bytes) => verify('sha256', signed, key, bytes)));
  if (signedBy !== undefined) return { statement: parseStatement(payload, bad), signedBy };
  const names = trusted.map(({ name }) => name).join(', ');
  throw new CurlewError('SIGNATURE_INVALID', `verify ${about}: the signature ${from} was not made with ${names}`, {
    hint: 'ask the signer for the public key',
  });
}

/** The statement of a bundle, without verifying its signature. */
export function readStatement(text: string, from: string): Statement {
  const bad = unreadable(from, 'sign it again');
  return parseStatement(parseEnvelope(text, bad).payload, bad);
}

const MOST_SIGNATURES = 16;

function parseEnvelope(text: string, bad: Unreadable): { readonly payload: Buffer; readonly signatures: Buffer[] } {
  const { dsseEnvelope, messageSignature } = parseBundle(text, bad);
  if (messageSignature !== undefined) throw bad('it has a messageSignature in addition to its statement');
  if (!isObject(dsseEnvelope)) throw bad('it has no dsseEnvelope');
  if (dsseEnvelope['payloadType'] !== PAYLOAD_TYPE) throw bad(`its payload is not ${PAYLOAD_TYPE}`);
  const payload = fromBase64(dsseEnvelope['payload']);
  if (payload === undefined) throw bad('its payload is damaged');
  const { signatures } = dsseEnvelope;
  const list: readonly unknown[] = Array.isArray(signatures) ? signatures : [];
  const found = list.map((one) => fromBase64(isObject(one) ? one['sig'] : undefined));
  const whole = found.filter((one) => one !== undefined);
  if (whole.length === 0 || whole.length < found.length || found.length > MOST_SIGNATURES) {
    throw bad('its signatures are damaged');
  }
  return { payload, signatures: whole };
}

function parseStatement(payload: Uint8Array, bad: Unreadable): Statement {
  let value: unknown;
  try {
    // Parsers disagree about which value of a duplicate key applies.
    value = parseJson(payload);
  } catch {
    throw bad('its payload is not JSON');
  }
  if (!isObject(value) || value['_type'] !== STATEMENT_TYPE) throw bad(`its payload is not ${STATEMENT_TYPE}`);
  const { subject, predicateType, predicate } = value;
  if (!Array.isArray(subject) || typeof predicateType !== 'string' || !isObject(predicate)) {
    throw bad('its statement is not complete');
  }
  const subjects = subject.map((one: unknown): Subject => {
    const { name, digest } = isObject(one) ? one : {};
    const hex = isObject(digest) ? digest['sha256'] : undefined;
    const text = `sha256:${typeof hex === 'string' ? hex : ''}`;
    if (typeof name !== 'string' || !isDigest(text)) throw bad('a subject has no name or no sha256');
    return { name, digest: text };
  });
  return { subjects, predicateType, predicate };
}
