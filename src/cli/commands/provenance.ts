/** `curlew provenance`: a statement of where packages and bundles came from, signed where a key is given. */
import { ANYWHERE_OPTIONS } from '../options.ts';
import { basename, resolve } from 'node:path';
import type { KeyObject } from 'node:crypto';
import { digestAsStep } from '../../formats/archive/digest-all.ts';
import { describeDelta } from '../../bundle/delta/delta-read.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { writeText } from '../../platform/files/write-whole.ts';
import { provenanceOf, type Builder } from '../../build/sbom/provenance.ts';
import { readPrivateKey } from '../../formats/signing/keys.ts';
import { formatStatement, signStatement, type Statement } from '../../formats/signing/statement.ts';
import { BUILDER_OPTIONS, builderOf } from '../builder.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { besideOf, openAnywhere, requireOther } from '../../app/archives/open-anywhere.ts';
import { describeArchive } from '../../app/archives/describe-archive.ts';
import { fileOutputOf } from '../output.ts';
import { proveWhole } from '../../app/archives/prove-whole.ts';
import { readKeyText } from '../../app/ports/trust.ts';
import { passphraseOf } from '../../app/ports/trust.ts';

interface Stated {
  readonly path: string;
  /** The statement, or the signature around it. */
  readonly provenance: string;
  readonly sha256: Digest;
  readonly builder: string;
  readonly signed: boolean;
}

export const provenanceCommand: Command<readonly Stated[]> = {
  name: 'provenance',
  summary: 'State what packages or bundles were built from, and by whom',
  operands: 'FILE | ADDRESS…',
  options: {
    sign: { type: 'string', value: 'KEY', help: 'sign with this private key, as curlew keygen makes it' },
    output: { type: 'string', short: 'o', value: 'FILE', help: 'of one file: where to write (default: beside it)' },
    force: { type: 'boolean', help: 'with --output: replace the file if it is there' },
    ...BUILDER_OPTIONS,
    ...ANYWHERE_OPTIONS,
  },
  details: `Writes FILE.provenance.json (of an address into the current folder), an in-toto statement with SLSA provenance 1: the builder, the git commit, and every input with its digest as the package's lock has it. With --sign it is FILE.provenance.sigstore.json, a Sigstore bundle around the statement, which cosign verify-blob-attestation reads.

It is to be made where the package is made: builder and commit are what this job says of itself. Proves first that each file is whole. CURLEW_KEY_PASSPHRASE unlocks a key that is encrypted.`,
  examples: [
    'curlew provenance web-1.0.0.tar.gz',
    'curlew provenance packages/*.tar.gz --sign release.key',
    'curlew provenance bundle.tar.gz --builder https://ci.example/builder',
  ],
  run: async (args, context) => {
    const { cwd, env } = context;
    const [output, keyPath] = [fileOutputOf(args, 'provenance'), args.text('sign')];
    if (args.positionals.length === 0 || (output !== undefined && args.positionals.length > 1)) {
      throw new CurlewError('USAGE', 'curlew provenance: name files, and just one with --output', {
        hint: 'curlew provenance FILE…',
      });
    }
    // Words that say nonsense are refused before anything is read.
    builderOf(args, context, undefined);
    const key =
      keyPath === undefined
        ? undefined
        : readPrivateKey(await readKeyText(resolve(cwd, keyPath)), keyPath, passphraseOf(env));
    const stated: Stated[] = [];
    for (const path of args.positionals) {
      const { statement, sha256, builder, name } = await stateOf(path, args, context);
      const provenance = output ?? `${besideOf(path, name)}.provenance${key === undefined ? '' : '.sigstore'}.json`;
      requireOther(
        provenance,
        stated.map((one) => one.provenance),
      );
      const text = textOf(statement, key);
      if (output === undefined) await writeStateFile(resolve(cwd, provenance), text, 0o644);
      else await writeText(resolve(cwd, output), text, { force: args.flag('force') });
      stated.push({ path, provenance, sha256, builder: builder.id, signed: key !== undefined });
    }
    return stated;
  },
  render: (stated) =>
    stated
      .map(({ provenance, builder, signed }) => `${provenance}: ${signed ? 'signed, ' : ''}built by ${builder}`)
      .join('\n'),
};

function textOf(statement: Statement, key: KeyObject | undefined): string {
  return key === undefined ? `${formatStatement(statement)}\n` : signStatement(statement, key);
}

interface StatedFile {
  readonly statement: Statement;
  readonly sha256: Digest;
  readonly builder: Builder;
  /** Of the file, without a folder. */
  readonly name: string;
}

async function stateOf(path: string, args: Arguments, context: CommandContext): Promise<StatedFile> {
  const { signal } = context;
  await using source = await openAnywhere(path, args.options, context);
  const index = await proveWhole(source, path, context);
  if ((await describeDelta(source, index, { signal })) !== undefined) {
    throw new CurlewError('UNSUPPORTED', `state the provenance of ${path}: it is a delta`, {
      hint: 'state it of the whole bundle: curlew apply makes that',
    });
  }
  const described = await describeArchive(source, { index, directory: INSTALL_DIRECTORY, signal });
  const sha256 = await digestAsStep(source, context);
  const builder = builderOf(args, context, source.commit);
  const name = basename(source.whole);
  return { statement: provenanceOf({ name, sha256 }, described, builder), sha256, builder, name };
}
