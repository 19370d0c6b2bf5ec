/** Where parts go, by the words of commands that write them. */
import { basename, dirname, resolve } from 'node:path';
import { writeParts, type Whole, type WrittenParts } from '../bundle/parts/split-write.ts';
import { CurlewError, redact } from '../core/errors.ts';
import type { Report } from '../core/events.ts';
import type { PlannedPart } from '../bundle/parts/split-plan.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { formatBytes } from './render/units.ts';
import { isAddress } from '../app/archives/open-anywhere.ts';
import { size as parseSize } from './values.ts';

export const PARTS_OPTIONS = {
  to: {
    type: 'string',
    multiple: true,
    value: 'FOLDER[,FOLDER…]',
    help: 'write parts to these media, each as full as it goes',
  },
} satisfies OptionSpecs;

interface PartsWords {
  /** File name of the whole. */
  readonly name: string;
  readonly folders: readonly string[];
  readonly limit: number | undefined;
}

/** `size` is the option that says how large parts are; `output` names the whole, as does `fallback` where it is absent. */
export function partsWords(
  args: Arguments,
  { cwd }: Pick<CommandContext, 'cwd'>,
  { size, fallback }: { readonly size: 'split' | 'size'; readonly fallback: string },
): PartsWords {
  const output = args.text('output');
  const media = args.texts('to').flatMap((word) => word.split(','));
  const amount = args.text(size);
  const limit = amount === undefined ? undefined : parseSize(amount, `--${size}`);
  const address = [...media, ...(output === undefined ? [] : [output])].find(isAddress);
  if (address !== undefined) {
    throw new CurlewError('USAGE', `parts are written to folders, not to ${redact(address)}`, {
      hint: 'an object in a store needs no parts; for parts there, write them to a folder and copy that',
    });
  }
  if (media.length === 0) {
    const path = resolve(cwd, output ?? fallback);
    return { name: basename(path), folders: [dirname(path)], limit };
  }
  if (media.includes('')) throw new CurlewError('USAGE', `--to ${args.texts('to').join(' ')}: a folder has no name`);
  if (output?.includes('/') === true) {
    throw new CurlewError('USAGE', '-o names a folder, and so does --to', {
      hint: 'beside --to, -o is only the name of the bundle, such as bundle.tar.gz',
    });
  }
  const folders = [...new Set(media.map((folder) => resolve(cwd, folder)))];
  return { name: output ?? basename(fallback), folders, limit };
}

export interface PartsResult extends PartsWords, Pick<CommandContext, 'report' | 'signal'> {
  readonly isMedia: boolean;
  readonly force: boolean;
  readonly verify: boolean;
  readonly beside?: ReadonlyMap<string, Uint8Array>;
}

/** Writes the parts, and says of each medium what it holds. */
export async function writePartsTo(
  { source, index }: Omit<Whole, 'name'>,
  { name, isMedia, report, ...options }: PartsResult,
): Promise<WrittenParts> {
  const onLayout = (layout: readonly PlannedPart[]): void => {
    for (const folder of isMedia ? options.folders : []) {
      const parts = layout.filter((part) => part.folder === folder);
      report({ type: 'note', level: 'info', text: `${folder}: ${amountOf(parts)}` });
    }
  };
  const written = await writeParts({ name, source, index }, { ...options, onLayout, report });
  if (isMedia) tellMedia(written, report);
  return written;
}

function amountOf(parts: readonly { readonly size: number }[]): string {
  const bytes = formatBytes(parts.reduce((sum, { size }) => sum + size, 0));
  return `${parts.length} ${parts.length === 1 ? 'part' : 'parts'}, ${bytes}`;
}

function tellMedia({ media }: WrittenParts, report: Report): void {
  for (const { medium, parts } of media) {
    const text = `${medium.folder}: ${amountOf(parts)}, and the head file are on disk: it can be unmounted and taken out`;
    report({ type: 'note', level: 'info', text });
  }
}
