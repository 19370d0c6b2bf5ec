/** `curlew split`: a bundle in parts that fit onto media. */
import { realpath } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { readIndex } from '../../formats/archive/read.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { isNamedAfter, type Part } from '../../core/parts.ts';
import { readFound } from '../../platform/files/state-file.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import type { Command } from '../command.ts';
import { isAddress } from '../../app/archives/open-anywhere.ts';
import { openArchive } from '../../app/archives/open-archive.ts';
import { fileOutputOf } from '../output.ts';
import { PARTS_OPTIONS, partsWords, writePartsTo } from '../parts-target.ts';
import { formatBytes } from '../render/units.ts';
import { signaturePath, wholePath } from '../../app/ports/trust.ts';

interface SplitResult {
  readonly name: string;
  readonly size: number;
  readonly tocDigest: Digest;
  readonly media: readonly { readonly head: string; readonly parts: readonly Part[] }[];
}

export const splitCommand: Command<SplitResult> = {
  name: 'split',
  summary: 'Split a bundle into parts that fit onto media',
  operands: 'FILE',
  options: {
    size: { type: 'string', value: 'SIZE', help: 'most bytes of a part, as 4480M or 1.5G' },
    output: { type: 'string', short: 'o', value: 'FILE', help: 'name parts after this (default: the bundle itself)' },
    ...PARTS_OPTIONS,
    verify: { type: 'boolean', help: 'prove every byte of the bundle while copying' },
    force: { type: 'boolean', help: 'replace parts that are there' },
  },
  details: `Beside the parts FILE.part-001, FILE.part-002… lie the head file FILE.parts.json, which says what they are, and FILE.parts.sha256 for sha256sum --check. Signatures of the bundle go with them.

Every command that takes a bundle takes the head file as well: nothing has to be joined. curlew join-parts makes one file of them again. What was cut off is gone on with by the same command.`,
  examples: ['curlew split bundle.tar.gz --size 4480M', 'curlew split bundle.tar.gz --to /media/one,/media/two'],
  run: async (args, context) => {
    const { cwd, report, signal } = context;
    const [path] = args.positionals;
    if (path === undefined) throw usage('name one file');
    if (args.text('size') === undefined && args.texts('to').length === 0) throw usage('say with --size how large');
    if (isAddress(path)) throw elsewhere(path);
    const output = fileOutputOf(args, 'split');
    const asked = partsWords(args, context, { size: 'size', fallback: path });
    await using source = await openArchive(resolve(cwd, path), { signal });
    const words = output === undefined ? { ...asked, name: basename(source.whole) } : asked;
    await requireApart(source.files, words);
    const index = await readIndex(source, { signal });
    const beside = await signaturesOf(source.whole, words.name);
    const isMedia = args.texts('to').length > 0;
    const [force, verify] = [args.flag('force'), args.flag('verify')];
    const written = await writePartsTo({ source, index }, { ...words, isMedia, force, verify, beside, report, signal });
    const { name, size, tocDigest } = written.head;
    return { name, size, tocDigest, media: written.media.map(({ path: head, parts }) => ({ head, parts })) };
  },
  render: ({ media }) =>
    media
      .map(({ head, parts }) => {
        const bytes = parts.reduce((sum, { size }) => sum + size, 0);
        return `${head}: ${parts.length} ${parts.length === 1 ? 'part' : 'parts'}, ${formatBytes(bytes)}`;
      })
      .join('\n'),
};

/** What lies beside the whole goes beside its parts; the sum names the file that it is of, so a new name gets none. */
async function signaturesOf(whole: string, name: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  for (const pathOf of [signaturePath, wholePath.signature, ...(basename(whole) === name ? [wholePath.sum] : [])]) {
    const data = await readFound(pathOf(whole), SIGNATURE_LIMIT);
    if (data !== undefined) found.set(pathOf(name), data);
  }
  return found;
}

/** What is read is not written over, `--force` or not: a split that is cut off would leave neither the old nor the new. */
async function requireApart(
  files: readonly string[],
  { name, folders }: { readonly name: string; readonly folders: readonly string[] },
): Promise<void> {
  const places = await Promise.all(folders.map(async (folder) => realpath(folder).catch(() => folder)));
  for (const file of files) {
    if (!isNamedAfter(name, basename(file)) || !places.includes(await realpath(dirname(file)))) continue;
    throw new CurlewError(
      'USAGE',
      `curlew split: the new parts would take the place of ${file}, which they come from`,
      {
        hint: 'write them to another folder with --to, or name them otherwise with -o',
      },
    );
  }
}

function elsewhere(address: string): CurlewError {
  return new CurlewError('USAGE', `curlew split: ${redact(address)} is no file`, {
    hint: 'fetch it first with curlew pull, or name a file',
  });
}

function usage(what: string): CurlewError {
  return new CurlewError('USAGE', `curlew split: ${what}`, { hint: 'curlew split FILE --size SIZE' });
}
