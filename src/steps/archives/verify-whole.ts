/** Verifies that an archive is complete and valid for `install`, with progress, and that it is the signed file. */
import type { Reporting } from '../../core/cancellable.ts';
import { digestAsStep } from '../../formats/archive/digest-all.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { readHolder } from '../../formats/archive/holder.ts';
import { readPayload } from '../../formats/archive/read.ts';
import { verifyArchive } from '../../formats/archive/verify.ts';
import { readDelta } from '../../ship/bundle/delta/delta-read.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { INSTALLER_YAML } from '../../core/layout.ts';
import { sourceFiles } from '../../runtime/images/folder-files.ts';
import { packageImages } from '../../runtime/images/required-images.ts';
import type { Context } from '../../core/context.ts';
import { checkArchive, type CheckedArchive } from './check-archive.ts';
import { parseInstaller } from '../../spec/parse.ts';

/** Runs {@link verifyArchive} as a step with this title, then checks metadata, the spec and the images. */
export async function verifyWhole(
  source: RangeSource,
  title: string,
  { report, signal }: Reporting,
): Promise<ArchiveIndex> {
  const onBytes = (bytes: number): void => {
    report({ type: 'step-progress', id: title, bytes });
  };
  return reportStep(
    report,
    { id: title, title, bytes: source.size },
    async () => {
      const index = await verifyArchive(source, { signal, onBytes });
      await checkContents(source, index, { signal });
      return index;
    },
    () => 'whole',
  );
}

/** Checks metadata, spec and images; of a delta, the payloads in it and the bundle that it creates. */
export async function checkContents(
  source: RangeSource,
  index: ArchiveIndex,
  { signal }: Pick<Context, 'signal'>,
): Promise<void> {
  const delta = await readDelta(source, index, { signal });
  if (delta === undefined) {
    const judged = await checkArchive(source, index, { read: (...of) => readPayload(source, ...of), signal });
    const spec = await judged.installerText();
    if (spec !== undefined) requireSpec(INSTALLER_YAML, spec);
    await checkImages(judged, signal);
    return;
  }
  const { full, included } = delta;
  await checkArchive(source, full, {
    has: ({ digest, size }) => size === 0 || included.has(digest),
    async *read(entry, options) {
      const holder = included.get(entry.digest);
      if (holder !== undefined) yield* readHolder(holder, entry, options);
    },
    signal,
  });
}

/** Reads manifests and configs of all images. */
async function checkImages({ packages }: CheckedArchive, signal: AbortSignal): Promise<void> {
  for (const source of packages) {
    const images = packageImages(sourceFiles(source), source.addon, `linux/${source.addon.arch}`);
    for (const { form } of images) await form({ signal });
  }
}

/** Throws if a file is not byte-identical to the signed one: the same contents could be compressed differently. */
export async function requireSignedFile(source: RangeSource, file: Digest, options: Reporting): Promise<void> {
  if ((await digestAsStep(source, options)) === file) return;
  throw new CurlewError('DIGEST_MISMATCH', `cannot verify ${source.name}: it is not the file that was signed`, {
    hint: 'its table of contents is signed, but other bytes differ: download the file again, or ask the signer',
  });
}

/** Throws `SPEC_INVALID` with places if a text is not a valid installer spec. */
function requireSpec(file: string, text: string): void {
  const { installer, diagnostics } = parseInstaller(file, text);
  if (installer === undefined) {
    throw new CurlewError('SPEC_INVALID', `cannot read ${file}: not a valid installer spec`, { diagnostics });
  }
}
