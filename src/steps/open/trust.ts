/** Signatures of archives: trusted keys, signature files, and verification. */
import type { KeyObject } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { readGivenFile, readStateFile } from '../../platform/files/state-file.ts';
import {
  requireBareAcceptable,
  requireAcceptable,
  verifyArchiveStatement,
  type ArchiveRole,
  type ArchiveStatement,
  type SignatureRequirements,
} from '../../formats/signing/archive-statement.ts';
import { readPrivateKey, readPublicKey, type TrustedKey } from '../../formats/signing/keys.ts';
import { isBareSignature, SIGNATURE_LIMIT, verifyText } from '../../formats/signing/signature.ts';
import type { Context } from '../../core/context.ts';
import { readConfig } from './config.ts';
import { readSeenBundles, rememberBundle } from './seen-versions.ts';
import type { TrustRequest } from '../../requests/trust.ts';

const KEY_LIMIT = 64 << 10;
/** Default path of a signature: next to the signed file. */
export function signaturePath(path: string): string {
  return `${path}.sigstore.json`;
}

/** Files next to a signed file for machines without curlew: a signature for openssl, and the SHA-256 checksum. */
export const wholePath = {
  signature: (path: string): string => `${path}.sig`,
  sum: (path: string): string => `${path}.sha256`,
} as const;

type SignatureReader = (path: string) => Promise<string | undefined>;

async function readSignatureFile(path: string): Promise<string | undefined> {
  return readStateFile(path, SIGNATURE_LIMIT);
}

/** The verified signature of an archive. */
export interface Signed {
  /** The file of the public key. */
  readonly by: string;
  /** Undefined for a signature of only the contents. */
  readonly statement: ArchiveStatement | undefined;
  /**
   * For a run that holds the lock of the node: checks again, because another run may have seen a newer version meanwhile, and
   * records the version.
   */
  readonly remember: () => Promise<void>;
}

/** Verifies an archive before anything in it is trusted. */
export interface Trust {
  readonly keys: readonly TrustedKey[];
  /**
   * Verifies the signature of a table of contents with the trusted keys, and compares its statement with the request; the
   * signature is next to `path`. `SIGNATURE_INVALID` if it is missing or invalid, `DOWNGRADE` if a newer version was seen. `read`
   * reads the signature if none is named and it is not in a file next to `path`; undefined if there is none.
   */
  readonly check: (name: string, text: Uint8Array, path: string, read?: SignatureReader) => Promise<Signed>;
}

export interface TrustOptions {
  /** Undefined if bundles and packages are accepted. */
  readonly role?: ArchiveRole;
  /** The install folder, with the versions that this node has seen; undefined if there is no node. */
  readonly directory?: string;
}

/** Undefined if no signatures are required. */
export async function trustOf(
  request: TrustRequest,
  context: Context,
  { role, directory }: TrustOptions = {},
): Promise<Trust | undefined> {
  const { cwd, report } = context;
  const { trustedKeys } = await readConfig(request.config, context);
  const paths = [...(request.key ?? []).map((path) => resolve(cwd, path)), ...trustedKeys];
  const [signatureFile, name] = [request.signature, request.signedAs];
  if (paths.length === 0) {
    if (request.requireSigned !== true && signatureFile === undefined && name === undefined) return undefined;
    throw new CurlewError('USAGE', 'no key to verify signatures was given', {
      hint: 'specify one with --key FILE, or in trustedKeys of the configuration',
    });
  }
  const readKey = async (path: string) => readPublicKey((await readLimited(path, KEY_LIMIT)).toString(), path);
  const keys = await Promise.all(paths.map(readKey));
  return {
    keys,
    check: async (about, text, path, read = readSignatureFile) => {
      const from = signatureFile === undefined ? signaturePath(path) : resolve(cwd, signatureFile);
      const signature = signatureFile === undefined ? await read(from) : await readGivenFile(from, SIGNATURE_LIMIT);
      if (signature === undefined) {
        throw new CurlewError('SIGNATURE_INVALID', `cannot verify ${about}: there is no signature ${from}`, {
          hint: 'specify it with --signature FILE, or ask the publisher for it; packages in a signed store have no signatures of their own: curlew versions --from STORE --key FILE verifies its catalog',
        });
      }
      const subject = { about, text, signature, from };
      const { allowDowngrade = false, requireStatement: statement = false } = request;
      const wanted = { role, name, allowDowngrade, statement, now: new Date() };
      return verifySignature(subject, { keys, wanted, directory, report });
    },
  };
}

interface Found {
  readonly about: string;
  readonly text: Uint8Array;
  readonly signature: string;
  readonly from: string;
}

interface Against {
  readonly keys: readonly TrustedKey[];
  readonly wanted: Omit<SignatureRequirements, 'seen'>;
  readonly directory: string | undefined;
  readonly report: Context['report'];
}

/** The statement of a signature is used only after the signature is verified. */
async function verifySignature({ about, text, signature, from }: Found, against: Against): Promise<Signed> {
  const { keys, directory, report } = against;
  const wantedNow = async (): Promise<SignatureRequirements> => ({
    ...against.wanted,
    seen: await readSeenBundles(directory, keys),
  });
  if (isBareSignature(signature)) {
    const { name: by } = verifyText({ name: about, text, signature, from }, keys);
    const check = async (): Promise<void> => requireBareAcceptable(about, await wantedNow());
    await check();
    const warning = 'its signature covers no name, version or time; ask the signer to sign it again with curlew sign';
    report({ type: 'note', level: 'warning', text: `${about}: ${warning}` });
    return { by, statement: undefined, remember: check };
  }
  const { statement, signedBy } = verifyArchiveStatement({ text: signature, from, about }, digestOf(text), keys);
  const check = async (): Promise<void> => requireAcceptable(statement, about, await wantedNow());
  await check();
  const remember = async (): Promise<void> => {
    await check();
    if (directory !== undefined && statement.role === 'bundle') await rememberBundle(directory, signedBy, statement);
  };
  return { by: signedBy.name, statement, remember };
}

/** Says of an unencrypted private key that those who can read its file can sign. */
export function looseKeyText(name: string, cure: string): string {
  return `${name} is not encrypted: anyone who can read it can sign; ${cure}`;
}

/** Reads the private key of a signer; warns about an unencrypted one that others than its owner can read. */
export async function readSigningKey(path: string, { cwd, env, report }: Context): Promise<KeyObject> {
  const file = resolve(cwd, path);
  const pem = (await readLimited(file, KEY_LIMIT)).toString();
  const key = readPrivateKey(pem, path, passphraseOf(env));
  const isLoose = !pem.includes('ENCRYPTED') && ((await stat(file)).mode & 0o044) !== 0;
  if (isLoose) {
    const text = looseKeyText(path, `others than its owner can: chmod 600 ${path}`);
    report({ type: 'note', level: 'warning', text });
  }
  return key;
}

/** An empty passphrase counts as none. */
export function passphraseOf(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const passphrase = env['CURLEW_KEY_PASSPHRASE'];
  return passphrase === '' ? undefined : passphrase;
}
