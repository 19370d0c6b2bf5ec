/** SBOMs of packages and bundles, for vulnerability scanners. */
import { resolve } from 'node:path';
import { formatSbom, type Sbom } from '../build/sbom/cyclonedx.ts';
import { readIndex } from '../formats/archive/read.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { describeArchive } from '../steps/archives/describe-archive.ts';
import { documentPath, openAnywhere, requireUnwritten } from '../steps/archives/open-anywhere.ts';
import type { Context } from '../core/context.ts';
import { folderOf } from '../steps/node/install-folder.ts';
import { toolVersion } from '../own/version.ts';
import { SBOMS_BESIDE, WRITE_SBOM, MAKE_SBOM, type ReadRequest } from '../requests/archive.ts';
import { useCase } from '../core/request.ts';

export interface WrittenSbom {
  readonly file: string;
  readonly serialNumber: string;
  readonly components: number;
}

/** The CycloneDX document as JSON; always the same for the same file. */
export const sbom = useCase(MAKE_SBOM, async (request, context): Promise<Readonly<Record<string, unknown>>> => {
  const { text } = await makeSbom(request.file, request, context);
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
});

/** Writes the document to the file `output`, which may exist only with `force`. */
export const writeSbom = useCase(WRITE_SBOM, async (request, context): Promise<WrittenSbom> => {
  const file = resolve(context.cwd, request.output);
  const force = request.force === true;
  await refuseExisting(file, force);
  const { text, serialNumber, components } = await makeSbom(request.file, request, context);
  context.signal.throwIfAborted();
  await writeText(file, text, { force });
  return { file, serialNumber, components };
});

/** Writes FILE.cdx.json next to each file; for an address, into the current folder. */
export const writeSbomsBeside = useCase(SBOMS_BESIDE, async (request, context): Promise<readonly WrittenSbom[]> => {
  const { cwd, signal } = context;
  // One after another: the SBOM of a large bundle needs memory.
  const written: WrittenSbom[] = [];
  for (const word of request.files) {
    const { text, serialNumber, components, whole } = await makeSbom(word, request, context);
    const file = `${documentPath(word, whole)}.cdx.json`;
    requireUnwritten(
      file,
      written.map((one) => one.file),
    );
    signal.throwIfAborted();
    await writeStateFile(resolve(cwd, file), text, 0o644);
    written.push({ file, serialNumber, components });
  }
  return written;
});

async function makeSbom(
  word: string,
  request: ReadRequest,
  context: Context,
): Promise<Sbom & { readonly whole: string }> {
  const { signal } = context;
  await using source = await openAnywhere(word, request, context);
  const index = await readIndex(source, { signal });
  const described = await describeArchive(source, { index, directory: folderOf(request, context), signal });
  return { ...formatSbom(described, toolVersion()), whole: source.whole };
}
