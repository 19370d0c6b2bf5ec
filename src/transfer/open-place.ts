/** One place that has a file: size, version and table of contents, read with a few small requests. */
import type { ArchiveIndex, RangeSource } from '../formats/archive/entry.ts';
import { readTocMember } from '../formats/archive/read.ts';
import { formatFooter, parseToc, tocText } from '../formats/archive/toc.ts';
import { CurlewError } from '../core/errors.ts';
import type { FetchPlace } from '../store/places.ts';
import type { StoredObject } from '../store/store.ts';

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
  /** Undefined for a file that is not an archive, and if the place sends no parts. */
  readonly end: ArchiveEnd | undefined;
}

interface PlaceOptions {
  /** Accept a file that is not an archive. */
  readonly anyFile: boolean;
  readonly signal: AbortSignal;
}

/** A TOC that arrives damaged is requested once more. Throws the errors of the store's reads. */
export async function openPlace(place: FetchPlace, { anyFile, signal }: PlaceOptions): Promise<OpenPlace> {
  const { store, key } = place;
  const name = `${store.address}/${key}`;
  const object = await store.head(key, { signal });
  if (object === undefined) throw new CurlewError('NOT_FOUND', `${store.address}: there is no ${key}`);
  const source = sourceAt(name, place, object);
  for (let again = false; ; again = true) {
    try {
      return { name, place, object, ranged: true, end: await readArchiveEnd(source, { signal }) };
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      if (error.code === 'UNSUPPORTED') return { name, place, object, ranged: false, end: undefined };
      if (error.code !== 'PACKAGE_INVALID') throw error;
      if (anyFile) return { name, place, object, ranged: true, end: undefined };
      if (again) throw notAnArchive(error);
    }
  }
}

function notAnArchive(error: CurlewError): CurlewError {
  return new CurlewError(error.code, error.message, {
    hint: 'to fetch a file that is neither a package nor a bundle, give its digest with --sha256 HEX',
    cause: error,
  });
}

function sourceAt(name: string, { store, key }: FetchPlace, object: StoredObject): RangeSource {
  return {
    name,
    size: object.size,
    async *read(offset, length, { signal }) {
      const options = { range: { offset, length }, ifMatch: object.etag, partsOnly: true, signal };
      yield* (await store.get(key, options)).body;
    },
  };
}

/** Reads footer and TOC; damage is `PACKAGE_INVALID`. */
export async function readArchiveEnd(
  source: RangeSource,
  options: { readonly signal: AbortSignal },
): Promise<ArchiveEnd> {
  const { member, tocOffset } = await readTocMember(source, options);
  return {
    index: parseToc(member, tocOffset, source.size, source.name),
    toc: tocText(member, source.name),
    bytes: Buffer.concat([member, formatFooter(tocOffset)]),
  };
}
