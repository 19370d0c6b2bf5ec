/** `curlew sign`: a signature beside each package or bundle, over its table of contents. */
import { relative, resolve } from 'node:path';
import { readTocText } from '../../archive/read.ts';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isHeadPath } from '../../core/parts.ts';
import { writeStateFile } from '../../files/state-file.ts';
import { readPrivateKey } from '../../trust/keys.ts';
import { signText } from '../../trust/signature.ts';
import type { Command } from '../command.ts';
import { openArchive } from '../open-archive.ts';
import { proveWhole } from '../prove-whole.ts';
import { readKeyText, signaturePath } from '../signed.ts';
import { passphraseOf } from './keygen.ts';

interface SignedArchive {
  readonly path: string;
  readonly signature: string;
  readonly digest: Digest;
}

export const signCommand: Command<readonly SignedArchive[]> = {
  name: 'sign',
  summary: 'Sign packages or bundles',
  operands: 'FILE…',
  details: `Proves first that each file is whole; then its table of contents, which names every other byte, is signed. The signature FILE.sigstore.json is a Sigstore bundle: curlew verify --key reads it, and so does cosign verify-blob for the text that tar -xOf FILE stargz.index.json prints.

CURLEW_KEY_PASSPHRASE unlocks a key that is encrypted. No network is needed, and nothing is sent anywhere.`,
  examples: ['curlew sign bundle.tar.gz --key curlew.key', 'curlew sign packages/*.tar.gz --key curlew.key'],
  options: { key: { type: 'string', value: 'FILE', help: 'private key to sign with, as curlew keygen makes it' } },
  run: async (args, context) => {
    const { cwd, env, signal } = context;
    const path = args.text('key');
    if (args.positionals.length === 0 || path === undefined) {
      throw new CurlewError('USAGE', 'curlew sign: files and a key are needed', {
        hint: 'curlew sign FILE… --key FILE',
      });
    }
    const key = readPrivateKey(await readKeyText(resolve(cwd, path)), path, passphraseOf(env));
    const signed: SignedArchive[] = [];
    for (const file of args.positionals) {
      await using source = await openArchive(resolve(cwd, file), { signal });
      const { tocDigest } = await proveWhole(source, file, context);
      const text = await readTocText(source, { signal });
      if (digestOf(text) !== tocDigest) throw new CurlewError('DIGEST_MISMATCH', `sign ${file}: it changes meanwhile`);
      // As it was named, where it was named whole.
      const signature = signaturePath(isHeadPath(file) ? relative(cwd, source.whole) : file);
      await writeStateFile(resolve(cwd, signature), signText(text, key), 0o644);
      signed.push({ path: file, signature, digest: tocDigest });
    }
    return signed;
  },
  render: (signed) => signed.map(({ signature, digest }) => `${signature}: of contents ${digest}`).join('\n'),
};
