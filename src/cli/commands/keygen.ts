/** `curlew keygen`: a pair of keys to sign bundles with. */
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { requireFolder } from '../../platform/files/name-file.ts';
import { writeNew } from '../../platform/files/write-new.ts';
import { makeKeyPair } from '../../formats/signing/keys.ts';
import { passphraseOf } from '../../app/ports/trust.ts';
import type { Command } from '../command.ts';

interface MadeKeys {
  readonly privateKey: string;
  readonly publicKey: string;
  readonly encrypted: boolean;
}

export const keygen: Command<MadeKeys> = {
  name: 'keygen',
  summary: 'Make a pair of keys to sign with',
  operands: '[NAME]',
  details: `Writes NAME.key, which only you can read, and NAME.pub, which goes to whoever installs. Nothing is overwritten. With a passphrase in CURLEW_KEY_PASSPHRASE the private key is encrypted.

The keys are of ECDSA on P-256 in PEM. cosign takes the public one as it is, and the private one with import-key-pair.`,
  examples: ['curlew keygen', 'CURLEW_KEY_PASSPHRASE="$(cat passphrase)" curlew keygen release'],
  options: {},
  run: async (args, { cwd, env, report }) => {
    const [name = 'curlew'] = args.positionals;
    const passphrase = passphraseOf(env);
    const pair = makeKeyPair(passphrase);
    const made = { privateKey: `${name}.key`, publicKey: `${name}.pub`, encrypted: passphrase !== undefined };
    await writeKey(resolve(cwd, made.privateKey), pair.privateKey, 0o600);
    try {
      await writeKey(resolve(cwd, made.publicKey), pair.publicKey, 0o644);
    } catch (error) {
      await rm(resolve(cwd, made.privateKey), { force: true });
      throw error;
    }
    if (!made.encrypted) {
      const text = `${made.privateKey} is not encrypted: whoever can read it can sign; CURLEW_KEY_PASSPHRASE encrypts it`;
      report({ type: 'note', level: 'warning', text });
    }
    return made;
  },
  render: ({ privateKey, publicKey, encrypted }) =>
    `${privateKey}: private, ${encrypted ? 'encrypted' : 'not encrypted'}\n${publicKey}: public`,
};

async function writeKey(path: string, text: string, mode: number): Promise<void> {
  try {
    await requireFolder(path);
    await writeNew(path, text, mode);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') {
      throw new CurlewError('FILE_EXISTS', `write ${path}: it is there already`, {
        hint: 'name others: curlew keygen NAME',
        cause: error,
      });
    }
    throw fileError(`write ${path}`, error);
  }
}
