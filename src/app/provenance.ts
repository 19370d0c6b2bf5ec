/** Writes provenance statements of packages and bundles, signed if a key is named. */
import type { KeyObject } from 'node:crypto';
import { basename, resolve } from 'node:path';
import { provenanceOf, type Builder } from '../build/sbom/provenance.ts';
import { describeDelta } from '../bundle/delta/delta-read.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { digestAsStep } from '../formats/archive/digest-all.ts';
import { readPrivateKey } from '../formats/signing/keys.ts';
import { formatStatement, signStatement, type Statement } from '../formats/signing/statement.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { describeArchive } from './archives/describe-archive.ts';
import { documentPath, openAnywhere, requireUnwritten } from './archives/open-anywhere.ts';
import { verifyWhole } from './archives/verify-whole.ts';
import { builderOf } from './builder.ts';
import type { Context } from '../core/context.ts';
import { passphraseOf, readKeyText } from './ports/trust.ts';
import { PROVENANCE, type ProvenanceRequest } from './requests/archive.ts';
import { useCase } from '../core/request.ts';

export interface Stated {
  readonly path: string;
  /** File of the statement, or of its signature bundle. */
  readonly provenance: string;
  readonly sha256: Digest;
  readonly builder: string;
  readonly signed: boolean;
}

/** Verifies each file, then writes a statement next to it; for an address, into the current folder. */
export const provenance = useCase(PROVENANCE, async (request, context: Context): Promise<readonly Stated[]> => {
  const { cwd, env } = context;
  const { files, sign, output, force = false } = request;
  if (output !== undefined && files.length > 1) {
    throw new CurlewError('USAGE', 'curlew provenance: specify files, and only one with --output', {
      hint: 'curlew provenance FILE…',
    });
  }
  // Invalid arguments are refused before anything is read.
  builderOf(request, context, undefined);
  const key =
    sign === undefined ? undefined : readPrivateKey(await readKeyText(resolve(cwd, sign)), sign, passphraseOf(env));
  const stated: Stated[] = [];
  for (const path of files) {
    const { statement, sha256, builder, name } = await stateOf(path, request, context);
    const file = output ?? `${documentPath(path, name)}.provenance${key === undefined ? '' : '.sigstore'}.json`;
    requireUnwritten(
      file,
      stated.map((one) => one.provenance),
    );
    const text = textOf(statement, key);
    if (output === undefined) await writeStateFile(resolve(cwd, file), text, 0o644);
    else await writeText(resolve(cwd, output), text, { force });
    stated.push({ path, provenance: file, sha256, builder: builder.id, signed: key !== undefined });
  }
  return stated;
});

function textOf(statement: Statement, key: KeyObject | undefined): string {
  return key === undefined ? `${formatStatement(statement)}\n` : signStatement(statement, key);
}

interface StatedFile {
  readonly statement: Statement;
  readonly sha256: Digest;
  readonly builder: Builder;
  /** File name without its folder. */
  readonly name: string;
}

async function stateOf(path: string, request: ProvenanceRequest, context: Context): Promise<StatedFile> {
  const { signal } = context;
  await using source = await openAnywhere(path, request, context);
  const index = await verifyWhole(source, path, context);
  if ((await describeDelta(source, index, { signal })) !== undefined) {
    throw new CurlewError('UNSUPPORTED', `cannot write the provenance of ${path}: it is a delta`, {
      hint: 'use the whole bundle: curlew apply creates it',
    });
  }
  const described = await describeArchive(source, { index, directory: INSTALL_DIRECTORY, signal });
  const sha256 = await digestAsStep(source, context);
  const builder = builderOf(request, context, source.commit);
  const name = basename(source.whole);
  return { statement: provenanceOf({ name, sha256 }, described, builder), sha256, builder, name };
}
