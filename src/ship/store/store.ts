/**
 * The interface of package stores: folders, object stores and web servers. `head` returns undefined for a missing object; a
 * failed condition is `STORE_CONFLICT`.
 */
import type { Cancellable } from '../../core/cancellable.ts';
import type { Digest } from '../../core/digest.ts';

/** An object in a listing. */
export interface ListedObject {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  /** Opaque: changes with the content. For `ifMatch` on the same key; never compared across keys. */
  readonly etag: string;
  /** The time of the last write or later, if known; always set in a listing. */
  readonly modified?: Date | undefined;
}

export interface StoredObject extends ListedObject {
  /** The metadata given to `put`; empty for a file that another program wrote. Names are lower case. */
  readonly metadata: Metadata;
  /**
   * The server's checksum of all bytes, prefixed with its algorithm: `crc32:oMwx0A==`. Equal for equal bytes with the same
   * algorithm; undefined if the server has none, or if it was not requested.
   */
  readonly checksum?: string | undefined;
}

export type Metadata = Readonly<Record<string, string>>;

interface ObjectBody extends StoredObject {
  /** The requested bytes. `STORE_CONFLICT` if the object has changed. Opens nothing before the first chunk is requested. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** A range of a new object that is identical to a range of an existing object. */
export interface CopiedRange {
  /** Start in the new object. */
  readonly at: number;
  readonly length: number;
  readonly place: StorePlace;
  readonly key: string;
  /** The object must still have this etag. */
  readonly etag: string;
  /** Start in the existing object. */
  readonly offset: number;
}

/** Bytes that can be read repeatedly and by range, so that an upload can be divided into parts and retried. */
export interface Upload {
  readonly size: number;
  readonly read: (
    offset: number,
    length: number,
    options: Pick<GetOptions, 'signal' | 'allocate'>,
  ) => AsyncIterable<Uint8Array>;
  /** Ordered. The store may copy ranges of its own server; these are not read. */
  readonly copies?: readonly CopiedRange[] | undefined;
  /** Called repeatedly with the number of bytes that the server has copied. */
  readonly onCopied?: ((bytes: number) => void) | undefined;
}

export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

export interface GetOptions extends Cancellable {
  readonly range?: ByteRange | undefined;
  /** The object must still have this etag. */
  readonly ifMatch?: string | undefined;
  /** The caller verifies the bytes: servers of a CDN that have different etags may each send some. Needs no `ifMatch`. */
  readonly verified?: boolean | undefined;
  /** Throw `UNSUPPORTED` if the server can only send whole objects, instead of skipping the other bytes. */
  readonly partsOnly?: boolean | undefined;
  /** Returns a buffer of at most `length` bytes for the next chunk; optional to use, and used for that chunk only. */
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
}

/** At most one of the two. All writes of a key must use conditions, or none of them. */
export interface Conditions {
  /** The key must not exist. */
  readonly ifNoneMatch?: '*' | undefined;
  /** The key must have an object with this etag. */
  readonly ifMatch?: string | undefined;
}

interface PutOptions extends Conditions, Cancellable {
  readonly metadata?: Metadata | undefined;
  /** The key was free a moment ago: skip the check before the transfer if the server supports conditions. */
  readonly isFree?: boolean | undefined;
  /** Digest of the bytes; checked before the object appears (`DIGEST_MISMATCH`). */
  readonly digest?: Digest | undefined;
  /** Called with the number of bytes that are not sent, because an interrupted upload has already sent them. */
  readonly onHeld?: ((bytes: number) => void) | undefined;
}

/** The location of a store's objects. */
export interface StorePlace {
  /** Equal for stores that can copy from each other without transferring bytes through the caller. */
  readonly server: string;
  /** The part before the keys: a folder, or bucket and prefix; without a trailing slash. */
  readonly base: string;
}

export interface CopyOptions extends Cancellable {
  /** The source's store, if different. `UNSUPPORTED` if it is on another server. */
  readonly from?: StorePlace | undefined;
  readonly ifNoneMatch?: '*' | undefined;
  readonly isFree?: PutOptions['isFree'];
  /** The source must still have this etag. */
  readonly sourceIfMatch?: string | undefined;
  /** Size of the source with that etag. Together with `metadata` it saves a request. */
  readonly sourceSize?: number | undefined;
  /** Metadata of the copy; the source's if absent. */
  readonly metadata?: Metadata | undefined;
}

interface SweepOptions extends Cancellable {
  /** Only count the uploads. */
  readonly dryRun: boolean;
}

interface ReadOptions extends Cancellable {
  /** Maximum size in bytes. */
  readonly limit: number;
}

/** A small object with its content. */
export interface ReadObject {
  readonly data: Uint8Array;
  readonly object: StoredObject;
}

/**
 * Every write is atomic for readers: an object exists completely or not at all. Keys are relative paths whose components do
 * not begin with a dot; any other key is `PACKAGE_INVALID`.
 */
export interface Store {
  /** For messages; without secrets. */
  readonly address: string;
  readonly place: StorePlace;
  readonly head: (key: string, options: Cancellable) => Promise<StoredObject | undefined>;
  /** What a server says of an object that it does not have, if anything; absent for stores that say nothing. */
  readonly whyMissing?: (key: string, options: Cancellable) => Promise<string | undefined>;
  /** A missing object is `NOT_FOUND`, also if it is deleted later. */
  readonly get: (key: string, options: GetOptions) => Promise<ObjectBody>;
  /** Reads a small object; undefined if it does not exist, `PACKAGE_INVALID` if it is too large. */
  readonly read: (key: string, options: ReadOptions) => Promise<ReadObject | undefined>;
  readonly put: (key: string, body: Uint8Array | Upload, options: PutOptions) => Promise<StoredObject>;
  /** Copies within the store, or from another store of its server; the bytes are not transferred through the caller. */
  readonly copy: (fromKey: string, toKey: string, options: CopyOptions) => Promise<StoredObject>;
  /** All objects whose key begins with the prefix, sorted by UTF-16 code units. */
  readonly list: (prefix: string, options: Cancellable) => AsyncIterable<ListedObject>;
  /** A missing object is not an error. */
  readonly delete: (key: string, options: Cancellable) => Promise<void>;
  /** Aborts unfinished uploads that started before the date, and returns their number; absent if the store has none. */
  readonly sweepUploads?: (before: Date, options: SweepOptions) => Promise<number>;
}
