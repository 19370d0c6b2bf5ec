/** Writes parts to folders and media, and reports them. */
import { basename, dirname, join, resolve } from 'node:path';
import type { PlannedPart } from '../../ship/bundle/parts/split-plan.ts';
import { writeParts, type SplitOptions, type Whole, type WrittenParts } from '../../ship/bundle/parts/split-write.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { formatBytes } from '../../core/units.ts';
import { requireFolder } from '../../platform/files/name-file.ts';
import { isAddress } from './open-anywhere.ts';
import type { Context } from '../../core/context.ts';
import type { PartsRequest } from '../../requests/bundle.ts';

interface PartsPlace {
  /** File name of the whole. */
  readonly name: string;
  readonly folders: readonly string[];
  readonly isMedia: boolean;
}

/** The name and folders of parts; `fallback` is the default name of the whole. */
export function partsPlace(
  { output, to = [] }: PartsRequest,
  { cwd }: Pick<Context, 'cwd'>,
  fallback: string,
): PartsPlace {
  const address = [...to, ...(output === undefined ? [] : [output])].find(isAddress);
  if (address !== undefined) {
    throw new CurlewError('USAGE', `parts are written to folders, not to ${redact(address)}`, {
      hint: 'an object in a store needs no parts; to store parts, write them to a folder and copy it',
    });
  }
  if (to.length === 0) {
    const path = resolve(cwd, output ?? fallback);
    return { name: basename(path), folders: [dirname(path)], isMedia: false };
  }
  if (output?.includes('/') === true) {
    throw new CurlewError('USAGE', '-o names a folder, and so does --to', {
      hint: 'with --to, -o is only the name of the bundle, such as bundle.tar.gz',
    });
  }
  const folders = [...new Set(to.map((folder) => resolve(cwd, folder)))];
  return { name: output ?? basename(fallback), folders, isMedia: true };
}

type PartsOptions = PartsPlace &
  Pick<SplitOptions, 'limit' | 'force' | 'mode' | 'verify' | 'extraFiles' | 'report' | 'signal'>;

/** Writes the parts, and reports the content of each medium. */
export async function writePartsTo(
  whole: Omit<Whole, 'name'>,
  { name, isMedia, report, ...options }: PartsOptions,
): Promise<WrittenParts> {
  const onLayout = (layout: readonly PlannedPart[]): void => {
    for (const folder of isMedia ? options.folders : []) {
      const parts = layout.filter((part) => part.folder === folder);
      report({ type: 'note', level: 'info', text: `${folder}: ${amountOf(parts)}` });
    }
  };
  // A folder of --to may be a medium that is not mounted yet, which has its own hint.
  for (const folder of isMedia ? [] : options.folders) await requireFolder(join(folder, name));
  const written = await writeParts({ ...whole, name }, { ...options, onLayout, report });
  if (isMedia) reportMedia(written, report);
  return written;
}

function amountOf(parts: readonly { readonly size: number }[]): string {
  const bytes = formatBytes(parts.reduce((sum, { size }) => sum + size, 0));
  return `${counted(parts.length, 'part')}, ${bytes}`;
}

function reportMedia({ media }: WrittenParts, report: Report): void {
  for (const { medium, parts } of media) {
    const text = `${medium.folder}: ${amountOf(parts)}, and the head file are on disk: it can be unmounted and removed`;
    report({ type: 'note', level: 'info', text });
  }
}
