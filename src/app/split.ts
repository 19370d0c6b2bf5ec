/** Splits a bundle into parts that fit on media. */
import { realpath } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { Digest } from '../core/digest.ts';
import { CurlewError, redact } from '../core/errors.ts';
import { layoutOf } from '../ship/bundle/parts/split-write.ts';
import { isNamedAfter, type Part } from '../core/parts.ts';
import { readIndex } from '../formats/archive/read.ts';
import { SIGNATURE_LIMIT } from '../formats/signing/signature.ts';
import { modeLike } from '../platform/files/write-whole.ts';
import { readFound } from '../platform/files/state-file.ts';
import { isAddress } from '../steps/archives/open-anywhere.ts';
import { openArchive } from '../ship/bundle/open-archive.ts';
import { modeFor, secretsOfBundle } from '../steps/archives/private-bundle.ts';
import { partsPlace, writePartsTo } from '../steps/archives/write-parts.ts';
import { signaturePath, wholePath } from '../steps/open/trust.ts';
import { SPLIT } from '../requests/bundle.ts';
import { useCase } from '../core/request.ts';

type SplitPart = Omit<Part, 'digest'> & {
  /** Undefined in a dry run. */
  readonly digest?: Digest;
};

export interface SplitResult {
  readonly name: string;
  readonly size: number;
  readonly tocDigest: Digest;
  readonly dryRun: boolean;
  readonly media: readonly { readonly head: string; readonly parts: readonly SplitPart[] }[];
}

/** Without `output`, parts are named after the bundle. The same request resumes after an interruption. */
export const split = useCase(SPLIT, async (request, context): Promise<SplitResult> => {
  const { cwd, report, signal } = context;
  const { file, output, size: limit, force = false, verify = false, dryRun = false } = request;
  if (isAddress(file)) throw elsewhere(file);
  const requested = partsPlace(request, context, file);
  await using source = await openArchive(resolve(cwd, file), { signal, shown: file });
  const place = output === undefined ? { ...requested, name: basename(source.whole) } : requested;
  await requireApart(source.files, place);
  const index = await readIndex(source, { signal });
  if (dryRun) {
    const { size, tocDigest } = index;
    const media = await layoutOf({ name: place.name, index }, { ...place, limit, force, signal });
    return { name: place.name, size, tocDigest, dryRun, media };
  }
  const extraFiles = await signaturesOf(source.whole, place.name);
  const secrets = await secretsOfBundle(source, index, { signal });
  const mode = secrets.length > 0 ? modeFor(secrets, place.name, context) : await modeLike(source.files);
  const written = await writePartsTo(
    { source, index },
    { ...place, limit, force, mode, verify, extraFiles, report, signal },
  );
  const { name, size, tocDigest } = written.head;
  return { name, size, tocDigest, dryRun, media: written.media.map(({ path: head, parts }) => ({ head, parts })) };
});

/** Signatures next to the whole are copied next to its parts. The checksum contains the file name, so a new name gets none. */
async function signaturesOf(whole: string, name: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const signatures = new Map<string, Uint8Array>();
  for (const pathOf of [signaturePath, wholePath.signature, ...(basename(whole) === name ? [wholePath.sum] : [])]) {
    const data = await readFound(pathOf(whole), SIGNATURE_LIMIT);
    if (data !== undefined) signatures.set(pathOf(name), data);
  }
  return signatures;
}

/** Refuses to overwrite its own input, even with `--force`: an interrupted split would leave neither old nor new parts. */
async function requireApart(
  files: readonly string[],
  { name, folders }: { readonly name: string; readonly folders: readonly string[] },
): Promise<void> {
  const places = await Promise.all(folders.map(async (folder) => realpath(folder).catch(() => folder)));
  for (const file of files) {
    if (!isNamedAfter(name, basename(file)) || !places.includes(await realpath(dirname(file)))) continue;
    throw new CurlewError('USAGE', `curlew split: the new parts would replace their source ${file}`, {
      hint: 'write them to another folder with --to, or give them another name with -o',
    });
  }
}

function elsewhere(address: string): CurlewError {
  return new CurlewError('USAGE', `curlew split: ${redact(address)} is not a file`, {
    hint: 'download it first with curlew pull, or specify a file',
  });
}
