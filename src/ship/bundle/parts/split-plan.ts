/** Assigns parts of a file to media. Pure. */
import { MAX_PARTS, partsPath } from '../../../core/parts.ts';
import { CurlewError } from '../../../core/errors.ts';
import { formatBytes } from '../../../core/units.ts';

/** A target folder for parts. */
export interface Medium {
  readonly folder: string;
  /** Identifies the file system: folders on the same one share its free space. */
  readonly device: string;
  /** File system type, such as `vfat`; empty if unknown. */
  readonly type: string;
  /** Free bytes for parts. */
  readonly free: number;
  /** Allocation unit in bytes. */
  readonly block: number;
  /** Maximum file size in bytes; undefined for no limit. */
  readonly fileLimit: number | undefined;
}

export interface PlannedPart {
  readonly name: string;
  readonly folder: string;
  /** Offset in the whole file. */
  readonly offset: number;
  readonly size: number;
}

/** Reserve for the head file, the checksums, a signature and the folder itself. */
const RESERVED = 2 << 20;
/** Minimum size of a part at the end of a medium. */
const MIN_SIZE = 1 << 20;

/**
 * Divides a file of `size` bytes over the media and fills one after the other with parts of `limit` bytes. The last part on
 * each medium is smaller. `NO_SPACE` reports the missing bytes.
 */
export function planParts(
  { name, size }: { readonly name: string; readonly size: number },
  {
    media,
    limit = Number.MAX_SAFE_INTEGER,
  }: { readonly media: readonly Medium[]; readonly limit?: number | undefined },
): readonly PlannedPart[] {
  const rooms = new Map(media.map(({ device, free }) => [device, Math.max(0, free - RESERVED)]));
  const parts: PlannedPart[] = [];
  let offset = 0;
  for (const { folder, device, block, fileLimit = limit } of media) {
    let room = Math.floor((rooms.get(device) ?? 0) / block) * block;
    while (offset < size) {
      const remaining = size - offset;
      const bytes = Math.min(limit, fileLimit, room, remaining);
      if (bytes === 0 || (bytes < MIN_SIZE && bytes === room && bytes < remaining)) break;
      if (parts.length === MAX_PARTS) throw tooMany(name, size);
      parts.push({ name: partsPath.part(name, parts.length + 1), folder, offset, size: bytes });
      offset += bytes;
      room = Math.max(0, room - Math.ceil(bytes / block) * block);
    }
    rooms.set(device, room);
  }
  if (offset < size) throw shortage(name, size, media, size - offset);
  return parts;
}

function tooMany(name: string, size: number): CurlewError {
  return new CurlewError('USAGE', `cannot write ${name} in parts: ${size} bytes need more than ${MAX_PARTS} parts`, {
    hint: `use parts of at least ${Math.ceil(size / MAX_PARTS)} bytes`,
  });
}

function shortage(name: string, size: number, media: readonly Medium[], shortfall: number): CurlewError {
  const free = media.map(({ folder, free: bytes }) => `${formatBytes(bytes)} free in ${folder}`).join(', ');
  return new CurlewError(
    'NO_SPACE',
    `cannot write ${name} in parts: it needs ${formatBytes(size)}, ${formatBytes(shortfall)} more than available: ${free}`,
    { hint: 'free some space, or add more folders, and run the same command again' },
  );
}
