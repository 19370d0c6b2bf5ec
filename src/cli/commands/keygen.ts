/** `curlew keygen`: a pair of keys to sign bundles with. */
import { keygen } from '../../app/keygen.ts';
import { command } from '../command.ts';

export const keygenCommand = command({
  name: 'keygen',
  operands: '[NAME]',
  details: `Writes NAME.key, which only you can read, and NAME.pub, which goes to whoever installs. Nothing is overwritten. With a passphrase in CURLEW_KEY_PASSPHRASE the private key is encrypted.

The keys are of ECDSA on P-256 in PEM. cosign takes the public one as it is, and the private one with import-key-pair.`,
  examples: ['curlew keygen', 'CURLEW_KEY_PASSPHRASE="$(cat passphrase)" curlew keygen release'],
  options: {},
  run: async ({ operands: [name] }, context) => keygen({ name }, context),
  render: ({ privateKey, publicKey, encrypted }) =>
    `${privateKey}: private, ${encrypted ? 'encrypted' : 'not encrypted'}\n${publicKey}: public`,
});
