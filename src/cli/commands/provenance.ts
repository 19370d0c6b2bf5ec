/** `curlew provenance`: writes provenance statements of packages and bundles, optionally signed. */
import { command, useCase } from '../command.ts';
import { ANYWHERE_OPTIONS } from '../options.ts';
import { fileOf } from '../output.ts';

const provenance = useCase(async () => (await import('../../app/provenance.ts')).provenance);

export const provenanceCommand = command({
  name: 'provenance',
  operands: 'FILE | ADDRESS…',
  options: {
    sign: { type: 'string', value: 'KEY', help: 'sign with this private key from curlew keygen' },
    output: {
      type: 'string',
      read: fileOf('provenance'),
      short: 'o',
      value: 'FILE',
      help: 'with one file: the output file (default: next to it)',
    },
    force: { type: 'boolean', help: 'with --output: replace an existing file' },
    builder: { type: 'string', value: 'URI', help: 'the builder (default: the workflow or runner of the CI service)' },
    commit: {
      type: 'string',
      value: 'SHA',
      help: 'git commit of the add-ons (default: as published, or from the CI job)',
    },
    ...ANYWHERE_OPTIONS,
  },
  details: `Writes FILE.provenance.json (for an address, to the current folder), an in-toto statement with SLSA provenance 1: the builder, the git commit, and every input with its digest in the package's lock. With --sign, writes FILE.provenance.sigstore.json, a Sigstore bundle with the statement for cosign verify-blob-attestation.

  Run it in the job that builds the package, because builder and commit are taken from the job. Verifies each file first. CURLEW_KEY_PASSPHRASE decrypts an encrypted key.`,
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
