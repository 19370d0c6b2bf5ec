/** Which part of a file lies on which medium. Pure. */
import { MOST_PARTS, partsPath } from '../../core/parts.ts';
import { CurlewError } from '../../core/errors.ts';

/** A folder that parts are written to, as it is found. */
export interface Medium {
  readonly folder: string;
  /** Names the file system: folders on the same one share its room. */
  readonly device: string;
  /** Of the file system, such as `vfat`; empty where that is not known. */
  readonly type: string;
  /** Bytes that are left for parts. */
  readonly free: number;
  /** What every file takes a multiple of, in bytes. */
  readonly block: number;
  /** Most bytes that a file can have there; undefined where that is no limit. */
  readonly fileLimit: number | undefined;
}

export interface PlannedPart {
  readonly name: string;
  readonly folder: string;
  /** Of its bytes, in the whole. */
  readonly offset: number;
  readonly size: number;
}

/** For the head file, the sums, a signature and the folder itself. */
const SET_ASIDE = 2 << 20;
/** A part is not smaller than this only because a medium has no more room. */
const LEAST = 1 << 20;

/**
 * Lays a file of `size` bytes onto the media, one after the other, each as full as it goes: parts of `limit` bytes, the
 * last one on each medium of what is left. `NO_SPACE` names what lacks, in bytes.
 */
export function planParts(
  { name, size }: { readonly name: string; readonly size: number },
  {
    media,
    limit = Number.MAX_SAFE_INTEGER,
  }: { readonly media: readonly Medium[]; readonly limit?: number | undefined },
): readonly PlannedPart[] {
  const rooms = new Map(media.map(({ device, free }) => [device, Math.max(0, free - SET_ASIDE)]));
  const parts: PlannedPart[] = [];
  let offset = 0;
  for (const { folder, device, block, fileLimit = limit } of media) {
    let room = Math.floor((rooms.get(device) ?? 0) / block) * block;
    while (offset < size) {
      const left = size - offset;
      const bytes = Math.min(limit, fileLimit, room, left);
      if (bytes === 0 || (bytes < LEAST && bytes === room && bytes < left)) break;
      if (parts.length === MOST_PARTS) throw tooMany(name, size);
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
  return new CurlewError('USAGE', `split ${name}: its ${size} bytes would make more than ${MOST_PARTS} parts`, {
    hint: `parts of ${Math.ceil(size / MOST_PARTS)} bytes or more are few enough`,
  });
}

function shortage(name: string, size: number, media: readonly Medium[], lacking: number): CurlewError {
  const free = media.map(({ folder, free: bytes }) => `${bytes} are free in ${folder}`).join(', ');
  return new CurlewError('NO_SPACE', `split ${name}: ${size} bytes are needed, ${lacking} do not fit: ${free}`, {
    hint: 'free some space, or name more folders, and run the same command again',
  });
}
