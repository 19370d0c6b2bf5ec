/** `curlew provenance`: a statement of where packages and bundles came from, signed where a key is given. */
import { provenance } from '../../app/provenance.ts';
import { command } from '../command.ts';
import { ANYWHERE_OPTIONS } from '../options.ts';
import { fileOf } from '../output.ts';

export const provenanceCommand = command({
  name: 'provenance',
  operands: 'FILE | ADDRESS…',
  options: {
    sign: { type: 'string', value: 'KEY', help: 'sign with this private key, as curlew keygen makes it' },
    output: {
      type: 'string',
      read: fileOf('provenance'),
      short: 'o',
      value: 'FILE',
      help: 'of one file: where to write (default: beside it)',
    },
    force: { type: 'boolean', help: 'with --output: replace the file if it is there' },
    builder: { type: 'string', value: 'URI', help: 'who builds (default: the workflow or runner of the CI service)' },
    commit: {
      type: 'string',
      value: 'SHA',
      help: 'git commit of the add-ons (default: as published, or of the CI job)',
    },
    ...ANYWHERE_OPTIONS,
  },
  details: `Writes FILE.provenance.json (of an address into the current folder), an in-toto statement with SLSA provenance 1: the builder, the git commit, and every input with its digest as the package's lock has it. With --sign it is FILE.provenance.sigstore.json, a Sigstore bundle around the statement, which cosign verify-blob-attestation reads.

It is to be made where the package is made: builder and commit are what this job says of itself. Proves first that each file is whole. CURLEW_KEY_PASSPHRASE unlocks a key that is encrypted.`,
  examples: [
    'curlew provenance web-1.0.0.tar.gz',
    'curlew provenance packages/*.tar.gz --sign release.key',
    'curlew provenance bundle.tar.gz --builder https://ci.example/builder',
  ],
  run: async ({ operands: files, options }, context) => provenance({ files, ...options }, context),
  render: (stated) =>
    stated
      .map(({ provenance, builder, signed }) => `${provenance}: ${signed ? 'signed, ' : ''}built by ${builder}`)
      .join('\n'),
});
