/** Creates a key pair for signatures. */
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { makeKeyPair } from '../formats/signing/keys.ts';
import { requireFolder } from '../platform/files/name-file.ts';
import { writeNew } from '../platform/files/write-new.ts';
import type { Context } from '../core/context.ts';
import { looseKeyText, passphraseOf } from '../steps/open/trust.ts';
import { KEYGEN } from '../requests/archive.ts';
import { useCase } from '../core/request.ts';

/** Encrypts the private key if `CURLEW_KEY_PASSPHRASE` is set. `FILE_EXISTS` if either file exists; then none is created. */
export const keygen = useCase(
  KEYGEN,
  async (
    { name: given = 'curlew' },
    { cwd, env, report }: Context,
  ): Promise<{ readonly privateKey: string; readonly publicKey: string; readonly encrypted: boolean }> => {
    // A name of one of the files is meant as the name of both.
    const name = given.replace(/\.(?:key|pub)$/, '');
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
      const text = looseKeyText(made.privateKey, 'set CURLEW_KEY_PASSPHRASE to encrypt it');
      report({ type: 'note', level: 'warning', text });
    }
    return made;
  },
);

async function writeKey(path: string, text: string, mode: number): Promise<void> {
  try {
    await requireFolder(path);
    await writeNew(path, text, mode);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') {
      throw new CurlewError('FILE_EXISTS', `cannot write ${path}: it already exists`, {
        hint: 'use another name: curlew keygen NAME',
        cause: error,
      });
    }
    throw fileError(`write ${path}`, error);
  }
}
