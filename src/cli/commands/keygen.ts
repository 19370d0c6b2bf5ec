/** `curlew keygen`: creates a key pair for signing bundles. */
import { KEYGEN } from '../../requests/archive.ts';
import { commandFor } from '../command.ts';

export const command = commandFor(KEYGEN, {
  details: `Writes NAME.key, which only you can read, and NAME.pub, for everyone who verifies. Never overwrites files. A passphrase in CURLEW_KEY_PASSPHRASE encrypts the private key.

  The keys are ECDSA P-256 in PEM. cosign can use the public key directly, and import the private key with import-key-pair.`,
  examples: ['curlew keygen', 'CURLEW_KEY_PASSPHRASE="$(cat passphrase)" curlew keygen release'],
  run: async ({ request }, context) => (await import('../../app/keygen.ts')).keygen(request, context),
  render: ({ privateKey, publicKey, encrypted }) =>
    `${privateKey}: private, ${encrypted ? 'encrypted' : 'not encrypted'}\n${publicKey}: public`,
});
