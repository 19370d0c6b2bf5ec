/** `curlew provenance`: writes provenance statements of packages and bundles, optionally signed. */
import { PROVENANCE } from '../../requests/archive.ts';
import { commandFor, FILES_STAY } from '../command.ts';

export const command = commandFor(PROVENANCE, {
  details: `Writes FILE.provenance.json (for an address, to the current folder), an in-toto statement with SLSA provenance 1: the builder, the git commit, and every input with its digest in the package's lock. With --sign, writes FILE.provenance.sigstore.json, a Sigstore bundle with the statement for cosign verify-blob-attestation.

  Run it in the job that builds the package, because builder and commit are taken from the job. Verifies each file first. CURLEW_KEY_PASSPHRASE decrypts an encrypted key.`,
  examples: [
    'curlew provenance web-1.0.0.tar.gz',
    'curlew provenance packages/*.tar.gz --sign release.key',
    'curlew provenance bundle.tar.gz --builder https://ci.example/builder',
  ],
  left: FILES_STAY,
  run: async ({ request }, context) => (await import('../../app/provenance.ts')).provenance(request, context),
  render: (stated) =>
    stated
      .map(({ provenance, builder, signed }) => `${provenance}: ${signed ? 'signed, ' : ''}built by ${builder}`)
      .join('\n'),
});
