/**
 * Where packages are kept, whatever holds them: a folder or an object store. Results are data; an object that is
 * missing is undefined from `head`, a condition that does not hold is `STORE_CONFLICT`.
 */
import type { Digest } from '../core/digest.ts';

/** What the listing of a store knows of an object. */
export interface ListedObject {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  /** Opaque: changes with the content; good for `ifMatch` on the same key, never compared across keys. */
  readonly etag: string;
  /** When the key got its bytes or later, where the store knows; always in a listing. */
  readonly modified?: Date | undefined;
}

export interface StoredObject extends ListedObject {
  /** As given to `put`; empty for a file that something else has put there. Names are lower case. */
  readonly metadata: Metadata;
  /**
   * Checksum of all bytes that the store has computed, behind the name of its algorithm: `crc32:oMwx0A==`. Equal for equal
   * bytes wherever the algorithm is the same; undefined where there is none, or it was not asked for.
   */
  readonly checksum?: string | undefined;
}

export type Metadata = Readonly<Record<string, string>>;

interface ObjectBody extends StoredObject {
  /** The bytes asked for. Changed since: `STORE_CONFLICT`. Nothing is held open before the first chunk is asked for. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** A run of an object to be that an object of some store holds just so. */
export interface CopiedRange {
  /** Where it begins in the object to be. */
  readonly at: number;
  readonly length: number;
  readonly place: StorePlace;
  readonly key: string;
  /** The object must still have this etag. */
  readonly etag: string;
  /** Where it begins in that object. */
  readonly offset: number;
}

/** Bytes that can be read more than once and by range, so that an upload can be cut into parts and retried. */
export interface Upload {
  readonly size: number;
  readonly read: (
    offset: number,
    length: number,
    options: Pick<GetOptions, 'signal' | 'allocate'>,
  ) => AsyncIterable<Uint8Array>;
  /** In order. Those that the store's own server holds it may copy by itself, and then they are not read. */
  readonly copies?: readonly CopiedRange[] | undefined;
  /** Told how many bytes the server has copied, now and then. */
  readonly onCopied?: ((bytes: number) => void) | undefined;
}

export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

interface Cancellable {
  readonly signal: AbortSignal;
}

export interface GetOptions extends Cancellable {
  readonly range?: ByteRange | undefined;
  /** The object must still have this etag. */
  readonly ifMatch?: string | undefined;
  /** A server that can only send whole objects is `UNSUPPORTED`, instead of being read past what is not wanted. */
  readonly partsOnly?: boolean | undefined;
  /** Memory of at most so many bytes for the next chunk, where it can be read into; only that chunk uses it. */
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
}

/** At most one of the two. A key is replaced either always with a condition or never. */
export interface Conditions {
  /** The key must be free. */
  readonly ifNoneMatch?: '*' | undefined;
  /** The key must hold the object with this etag. */
  readonly ifMatch?: string | undefined;
}

interface PutOptions extends Conditions, Cancellable {
  readonly metadata?: Metadata | undefined;
  /** The key was free a moment ago: where conditions decide, nobody looks again before the bytes move. */
  readonly isFree?: boolean | undefined;
  /** Of the bytes; checked before the object gets its name (`DIGEST_MISMATCH`). */
  readonly digest?: Digest | undefined;
  /** Told of bytes that are not sent, because an upload that was cut off has left them there. */
  readonly onHeld?: ((bytes: number) => void) | undefined;
}

/** Where the objects of a store lie. */
export interface StorePlace {
  /** Equal for stores that can copy from each other without moving bytes through the caller. */
  readonly server: string;
  /** What stands before the keys: a folder, or bucket and prefix; without a slash at its end. */
  readonly base: string;
}

export interface CopyOptions extends Cancellable {
  /** The store that holds the source, when it is another one. Not of this server: `UNSUPPORTED`. */
  readonly from?: StorePlace | undefined;
  readonly ifNoneMatch?: '*' | undefined;
  readonly isFree?: PutOptions['isFree'];
  /** The source must still have this etag. */
  readonly sourceIfMatch?: string | undefined;
  /** Bytes of the source with that etag. With `metadata` it spares a look at the source. */
  readonly sourceSize?: number | undefined;
  /** Of the copy; the source's when absent. */
  readonly metadata?: Metadata | undefined;
}

interface SweepOptions extends Cancellable {
  /** Only count them. */
  readonly dryRun: boolean;
}

interface ReadOptions extends Cancellable {
  /** Bytes. */
  readonly limit: number;
}

/** A small object as a whole. */
export interface ReadObject {
  readonly data: Uint8Array;
  readonly object: StoredObject;
}

/**
 * Every call is atomic to readers: an object is there whole or not at all. Keys are relative paths whose components do
 * not begin with a dot; any other key is `PACKAGE_INVALID`.
 */
export interface Store {
  /** For messages; without secrets. */
  readonly address: string;
  readonly place: StorePlace;
  readonly head: (key: string, options: Cancellable) => Promise<StoredObject | undefined>;
  /** A missing object is `NOT_FOUND`, also when it vanishes later. */
  readonly get: (key: string, options: GetOptions) => Promise<ObjectBody>;
  /** A whole small object, asked for once; undefined when it is missing, `PACKAGE_INVALID` when it is too large. */
  readonly read: (key: string, options: ReadOptions) => Promise<ReadObject | undefined>;
  readonly put: (key: string, body: Uint8Array | Upload, options: PutOptions) => Promise<StoredObject>;
  /** Copies within the store, or from another one of its server; the bytes do not pass through the caller. */
  readonly copy: (fromKey: string, toKey: string, options: CopyOptions) => Promise<StoredObject>;
  /** All objects whose key begins with the prefix, by key in code units. */
  readonly list: (prefix: string, options: Cancellable) => AsyncIterable<ListedObject>;
  /** Deleting what is not there is no error. */
  readonly delete: (key: string, options: Cancellable) => Promise<void>;
  /** Gives up uploads that were begun before then and never ended, and tells how many; absent where none can be left. */
  readonly sweepUploads?: (before: Date, options: SweepOptions) => Promise<number>;
}
