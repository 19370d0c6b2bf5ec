/** The proof that an archive is whole, and what `install` asks of it, with its progress; and that it is the signed file. */
import { digestAsStep } from '../../formats/archive/digest-all.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { readHolder } from '../../formats/archive/holder.ts';
import { readPayload } from '../../formats/archive/read.ts';
import { verifyArchive } from '../../formats/archive/verify.ts';
import { readDelta } from '../../bundle/delta/delta-read.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { INSTALLER_YAML } from '../../core/layout.ts';
import { sourceFiles } from '../../runtime/images/folder-files.ts';
import { packageImages } from '../../runtime/images/required.ts';
import type { Context } from '../context.ts';
import { judgeArchive, type JudgedArchive } from './judge-archive.ts';
import { requireSpec } from '../ports/run-source.ts';

/** Like {@link verifyArchive}, as a step of this title; then what {@link judgeArchive}, the spec and the images say. */
export async function proveWhole(
  source: RangeSource,
  title: string,
  { report, signal }: Pick<Context, 'report' | 'signal'>,
): Promise<ArchiveIndex> {
  const onBytes = (bytes: number): void => {
    report({ type: 'step-progress', id: title, bytes });
  };
  return reportStep(
    report,
    { id: title, title, bytes: source.size },
    async () => {
      const index = await verifyArchive(source, { signal, onBytes });
      await judgeContents(source, index, signal);
      return index;
    },
    () => 'whole',
  );
}

/** Of a delta, what it brings and what it makes of it. */
async function judgeContents(source: RangeSource, index: ArchiveIndex, signal: AbortSignal): Promise<void> {
  const delta = await readDelta(source, index, { signal });
  if (delta === undefined) {
    const judged = await judgeArchive(source, index, { read: (...of) => readPayload(source, ...of), signal });
    const spec = await judged.installerText();
    if (spec !== undefined) requireSpec(INSTALLER_YAML, spec);
    await judgeImages(judged, signal);
    return;
  }
  const { full, included } = delta;
  await judgeArchive(source, full, {
    has: ({ digest, size }) => size === 0 || included.has(digest),
    async *read(entry, options) {
      const holder = included.get(entry.digest);
      if (holder !== undefined) yield* readHolder(holder, entry, options);
    },
    signal,
  });
}

/** Manifests and configs of all images; of archives, what they say is in them. */
async function judgeImages({ packages }: JudgedArchive, signal: AbortSignal): Promise<void> {
  for (const source of packages) {
    const images = packageImages(sourceFiles(source), source.addon, `linux/${source.addon.arch}`);
    for (const { form } of images) await form({ signal });
  }
}

/** Throws for a file that is not byte for byte the one that was signed: what is whole may still be packed otherwise. */
export async function requireSignedFile(
  source: RangeSource,
  file: Digest,
  options: Pick<Context, 'report' | 'signal'>,
): Promise<void> {
  if ((await digestAsStep(source, options)) === file) return;
  throw new CurlewError('DIGEST_MISMATCH', `verify ${source.name}: it is not the file that was signed`, {
    hint: 'its table of contents is signed, other bytes of it are not: fetch it again, or ask who signed it',
  });
}
