/** Signatures of archives: which keys are trusted, where a signature lies, and what without one is refused. */
import { resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { readLimited } from '../files/read-limited.ts';
import { readStateFile } from '../files/state-file.ts';
import { readPublicKey, type TrustedKey } from '../trust/keys.ts';
import { SIGNATURE_LIMIT, verifyText } from '../trust/signature.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { readConfig } from './config.ts';

const KEY_LIMIT = 64 << 10;
const group = 'Options of signatures';

/** Options of every command that reads a release. */
export const KEY_OPTIONS = {
  key: {
    type: 'string',
    multiple: true,
    value: 'FILE',
    help: 'refuse what no such public key has signed; may be repeated',
    group,
  },
  'require-signed': { type: 'boolean', help: 'stop where neither --key nor the configuration names a key', group },
} satisfies OptionSpecs;

/** Options of every command that takes a bundle from somebody else. */
export const SIGNED_OPTIONS = {
  ...KEY_OPTIONS,
  signature: { type: 'string', value: 'FILE', help: 'the signature (default: beside it, .sigstore.json)', group },
} satisfies OptionSpecs;

/** Where a signature lies when nobody says so: beside what it is of. */
export function signaturePath(path: string): string {
  return `${path}.sigstore.json`;
}

type SignatureReader = (path: string) => Promise<string | undefined>;

async function readFileBeside(path: string): Promise<string | undefined> {
  return readStateFile(path, SIGNATURE_LIMIT);
}

/** What is asked of an archive before anything in it is believed. */
export interface Trust {
  readonly keys: readonly TrustedKey[];
  /**
   * Holds the signature of a table of contents against the trusted keys; `path` is what lies beside the signature.
   * Returns the name of the key that made it. `SIGNATURE_INVALID` when there is none or it does not hold. `read` gets the
   * signature where none is named and it is not beside a file: its text, or undefined when there is none.
   */
  readonly check: (name: string, text: Uint8Array, path: string, read?: SignatureReader) => Promise<string>;
}

/** Undefined when nobody asks for signatures. */
export async function trustOf(args: Arguments, context: CommandContext): Promise<Trust | undefined> {
  const { cwd } = context;
  const { trustedKeys } = await readConfig(args.text('config'), context);
  const paths = [...args.texts('key').map((path) => resolve(cwd, path)), ...trustedKeys];
  const given = args.text('signature');
  if (paths.length === 0) {
    if (!args.flag('require-signed') && given === undefined) return undefined;
    throw new CurlewError('USAGE', 'no key is named that signatures could be held against', {
      hint: 'name one with --key FILE, or in trustedKeys of the configuration',
    });
  }
  const keys = await readPublicKeys(paths);
  return {
    keys,
    check: async (name, text, path, read = readFileBeside) => {
      const from = given === undefined ? signaturePath(path) : resolve(cwd, given);
      const signature = given === undefined ? await read(from) : await readFileBeside(from);
      if (signature !== undefined) return verifyText({ name, text, signature, from }, keys).name;
      throw new CurlewError('SIGNATURE_INVALID', `verify ${name}: there is no signature ${from}`, {
        hint: 'name it with --signature FILE, or ask for the one that came with it',
      });
    },
  };
}

async function readPublicKeys(paths: readonly string[]): Promise<readonly TrustedKey[]> {
  return Promise.all(paths.map(async (path) => readPublicKey((await readLimited(path, KEY_LIMIT)).toString(), path)));
}

/** The text of a private key's file. */
export async function readKeyText(path: string): Promise<string> {
  return (await readLimited(path, KEY_LIMIT)).toString();
}
