/** One place that has a file: size, version and table of contents, read with a few small requests. */
import type { Cancellable } from '../../core/cancellable.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { readTocMember } from '../../formats/archive/read.ts';
import { formatFooter, parseToc, tocText } from '../../formats/archive/toc.ts';
import { CurlewError } from '../../core/errors.ts';
import type { FetchPlace } from '../store/places.ts';
import type { GetOptions, StoredObject } from '../store/store.ts';

/** The end of an archive, which describes all other bytes. */
export interface ArchiveEnd {
  readonly index: ArchiveIndex;
  /** The bytes that a signature covers. */
  readonly toc: Uint8Array;
  /** All bytes from the TOC's offset on. */
  readonly bytes: Uint8Array;
}

export interface OpenPlace {
  /** For messages. */
  readonly name: string;
  readonly place: FetchPlace;
  readonly object: StoredObject;
  /** The place sends parts of the file. */
  readonly ranged: boolean;
  /** Only the table of contents shows that it is still the same file: servers of the place have different etags. */
  readonly unpinned: boolean;
  /** Undefined for a file that is not an archive, and if the place sends no parts. */
  readonly end: ArchiveEnd | undefined;
}

interface PlaceOptions extends Cancellable {
  /** Accept a file that is not an archive. */
  readonly anyFile: boolean;
  /** An etag of this place has changed before. */
  readonly unpinned: boolean;
}

/** A TOC that arrives damaged is requested once more. Throws the errors of the store's reads. */
export async function openPlace(place: FetchPlace, { anyFile, unpinned, signal }: PlaceOptions): Promise<OpenPlace> {
  const { store, key } = place;
  const name = `${store.address}/${key}`;
  const object = await store.head(key, { signal });
  if (object === undefined) {
    const told = await store.whyMissing?.(key, { signal });
    const reason = told === undefined ? '' : ` (${told})`;
    throw new CurlewError('NOT_FOUND', `${store.address}: there is no ${key}${reason}`, {
      hint: 'check the path or address',
    });
  }
  const source = sourceAt(name, place, object, unpinned);
  const opened = { name, place, object, unpinned };
  for (let again = false; ; again = true) {
    try {
      return { ...opened, ranged: true, end: await readArchiveEnd(source, { signal }) };
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      if (error.code === 'UNSUPPORTED') return { ...opened, ranged: false, end: undefined };
      if (error.code !== 'PACKAGE_INVALID') throw error;
      if (anyFile) return { ...opened, ranged: true, end: undefined };
      if (again) throw error.with({ hint: GIVE_DIGEST, cause: error });
    }
  }
}

/** Which version of an object to read: this one, or any, whose bytes the caller verifies. */
export function placeVersion({ etag }: StoredObject, unpinned: boolean): Pick<GetOptions, 'ifMatch' | 'verified'> {
  return unpinned ? { verified: true } : { ifMatch: etag };
}

/** For what is not an archive. */
const GIVE_DIGEST = 'to fetch a file that is neither a package nor a bundle, give its digest with --sha256 HEX';

function sourceAt(name: string, { store, key }: FetchPlace, object: StoredObject, unpinned: boolean): RangeSource {
  return {
    name,
    size: object.size,
    async *read(offset, length, { signal }) {
      const version = placeVersion(object, unpinned);
      yield* (await store.get(key, { ...version, range: { offset, length }, partsOnly: true, signal })).body;
    },
  };
}

/** Reads footer and TOC; damage is `PACKAGE_INVALID`. */
export async function readArchiveEnd(source: RangeSource, options: Cancellable): Promise<ArchiveEnd> {
  const { member, tocOffset } = await readTocMember(source, options);
  return {
    index: parseToc(member, tocOffset, source.size, source.name),
    toc: tocText(member, source.name),
    bytes: Buffer.concat([member, formatFooter(tocOffset)]),
  };
}
