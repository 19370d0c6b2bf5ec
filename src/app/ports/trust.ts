/** Signatures of archives: which keys are trusted, where a signature lies, and what without one is refused. */
import { resolve } from 'node:path';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { readGivenFile, readStateFile } from '../../platform/files/state-file.ts';
import {
  requireBareAcceptable,
  requireAcceptable,
  verifyArchive,
  type ArchiveRole,
  type ArchiveStatement,
  type SignatureRequirements,
} from '../../formats/signing/archive-statement.ts';
import { readPublicKey, type TrustedKey } from '../../formats/signing/keys.ts';
import { isBareSignature, SIGNATURE_LIMIT, verifyText } from '../../formats/signing/signature.ts';
import type { Context } from '../context.ts';
import { readConfig } from './config.ts';
import { readSeenBundles, rememberBundle } from './seen-bundles.ts';

const KEY_LIMIT = 64 << 10;
/** Where a signature lies when nobody says so: beside what it is of. */
export function signaturePath(path: string): string {
  return `${path}.sigstore.json`;
}

/** What lies beside a signed file for machines without curlew: its bytes signed as openssl reads it, and its sha256. */
export const wholePath = {
  signature: (path: string): string => `${path}.sig`,
  sum: (path: string): string => `${path}.sha256`,
} as const;

/** Of what reads a release. */
export interface KeyRequest {
  /** Files of public keys: what none of them has signed is refused. */
  readonly key?: readonly string[] | undefined;
  /** It is an error when neither `key` nor the configuration names a key. */
  readonly requireSigned?: boolean | undefined;
  /** Configuration file; the user's own when absent. */
  readonly config?: string | undefined;
}

/** Of what takes a bundle from somebody else. */
export interface TrustRequest extends KeyRequest {
  /** File of the signature; beside the bundle when absent. */
  readonly signature?: string | undefined;
  /** What is signed under another name is refused. */
  readonly signedAs?: string | undefined;
  /** What is signed, and older than what was seen, is taken. */
  readonly allowDowngrade?: boolean | undefined;
}

type SignatureReader = (path: string) => Promise<string | undefined>;

async function readFileBeside(path: string): Promise<string | undefined> {
  return readStateFile(path, SIGNATURE_LIMIT);
}

/** Who signed an archive, and what was said of it. */
export interface Signed {
  /** The file of the public key. */
  readonly by: string;
  /** Undefined for a signature over the contents alone. */
  readonly statement: ArchiveStatement | undefined;
  /**
   * For a run that holds the lock of the node: asks once more, since another run may have seen more meanwhile, and notes
   * which version was seen.
   */
  readonly remember: () => Promise<void>;
}

/** What is asked of an archive before anything in it is believed. */
export interface Trust {
  readonly keys: readonly TrustedKey[];
  /**
   * Holds the signature of a table of contents against the trusted keys, and what it says against what is wanted; `path` is
   * what lies beside the signature. `SIGNATURE_INVALID` when there is none or it does not hold, `DOWNGRADE` when a newer
   * version was seen. `read` gets the signature where none is named and it is not beside a file: its text, or undefined when
   * there is none.
   */
  readonly check: (name: string, text: Uint8Array, path: string, read?: SignatureReader) => Promise<Signed>;
}

export interface TrustOptions {
  /** Undefined where bundles and packages will do. */
  readonly role?: ArchiveRole;
  /** The install folder, which knows what was seen on this node; undefined where there is no node. */
  readonly directory?: string;
}

/** Undefined when nobody asks for signatures. */
export async function trustOf(
  request: TrustRequest,
  context: Context,
  { role, directory }: TrustOptions = {},
): Promise<Trust | undefined> {
  const { cwd, report } = context;
  const { trustedKeys } = await readConfig(request.config, context);
  const paths = [...(request.key ?? []).map((path) => resolve(cwd, path)), ...trustedKeys];
  const [given, name] = [request.signature, request.signedAs];
  if (paths.length === 0) {
    if (request.requireSigned !== true && given === undefined && name === undefined) return undefined;
    throw new CurlewError('USAGE', 'no key is named that signatures could be held against', {
      hint: 'name one with --key FILE, or in trustedKeys of the configuration',
    });
  }
  const keys = await readPublicKeys(paths);
  return {
    keys,
    check: async (about, text, path, read = readFileBeside) => {
      const from = given === undefined ? signaturePath(path) : resolve(cwd, given);
      const signature = given === undefined ? await read(from) : await readGivenFile(from, SIGNATURE_LIMIT);
      if (signature === undefined) {
        throw new CurlewError('SIGNATURE_INVALID', `verify ${about}: there is no signature ${from}`, {
          hint: 'name it with --signature FILE, or ask for the one that came with it',
        });
      }
      const found = { about, text, signature, from };
      const wanted = { role, name, allowDowngrade: request.allowDowngrade === true, now: new Date() };
      return judge(found, { keys, wanted, directory, report });
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

/** Nothing of what a signature says is looked at before it is proved. */
async function judge({ about, text, signature, from }: Found, against: Against): Promise<Signed> {
  const { keys, directory, report } = against;
  const wantedNow = async (): Promise<SignatureRequirements> => ({
    ...against.wanted,
    seen: await readSeenBundles(directory, keys),
  });
  if (isBareSignature(signature)) {
    const { name: by } = verifyText({ name: about, text, signature, from }, keys);
    const ask = async (): Promise<void> => requireBareAcceptable(about, await wantedNow());
    await ask();
    const warning = 'its signature binds no name, version or time; ask who signed it to sign it again with curlew sign';
    report({ type: 'note', level: 'warning', text: `${about}: ${warning}` });
    return { by, statement: undefined, remember: ask };
  }
  const { statement, signedBy } = verifyArchive({ text: signature, from, about }, digestOf(text), keys);
  const ask = async (): Promise<void> => requireAcceptable(statement, about, await wantedNow());
  await ask();
  const remember = async (): Promise<void> => {
    await ask();
    if (directory !== undefined && statement.role === 'bundle') await rememberBundle(directory, signedBy, statement);
  };
  return { by: signedBy.name, statement, remember };
}

async function readPublicKeys(paths: readonly string[]): Promise<readonly TrustedKey[]> {
  return Promise.all(paths.map(async (path) => readPublicKey((await readLimited(path, KEY_LIMIT)).toString(), path)));
}

/** The text of a private key's file. */
export async function readKeyText(path: string): Promise<string> {
  return (await readLimited(path, KEY_LIMIT)).toString();
}

/** An empty passphrase is none. */
export function passphraseOf(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const found = env['CURLEW_KEY_PASSPHRASE'];
  return found === '' ? undefined : found;
}
