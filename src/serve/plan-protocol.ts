/** What the server and its planning thread send each other: data that can be cloned. */
import type { MessagePort } from 'node:worker_threads';
import type { ArchiveIndex } from '../formats/archive/entry.ts';
import type { Segment } from '../formats/archive/splice.ts';
import type { ResolvedPackage } from '../bundle/resolve.ts';
import type { Catalogue } from '../core/catalogue.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import type { Digest } from '../core/digest.ts';
import { asError, CurlewError, type ErrorCode } from '../core/errors.ts';
import type { Arch } from '../core/ref.ts';
import type { Installer } from '../spec/installer.ts';
import type { ByteRange, Store, StoredObject } from '../store/store.ts';
import type { BlobTable } from './blob-table.ts';

/** Where every byte of a bundle comes from: all that is needed to send it. */
export interface Layout {
  /** Bytes of the bundle. */
  readonly size: number;
  readonly tocDigest: Digest;
  /** In order. Bytes that are in no source are in one piece of memory that holds nothing else. */
  readonly segments: readonly Segment[];
  /** Of the store, as they were when their indexes were read; undefined for the tool for nodes. */
  readonly sources: readonly (StoredObject | undefined)[];
}

export interface BundleJob {
  readonly kind: 'bundle';
  /** Bytes of the spec, as the bundle holds them. */
  readonly spec: Uint8Array;
  readonly installer: Installer;
  readonly catalogue: Catalogue;
  readonly arch: Arch;
  readonly settings: 'enforce' | 'allow';
  /** Of the archive with the tool for nodes. */
  readonly executable: ArchiveIndex;
  /** Version of curlew. */
  readonly tool: string;
}

export interface PackagesJob {
  readonly kind: 'packages';
  readonly resolved: readonly ResolvedPackage[];
}

export interface SettingsJob {
  readonly kind: 'settings';
  readonly installer: Installer;
  readonly resolved: readonly ResolvedPackage[];
}

/** Where the blobs of a package's images lie. */
export interface BlobsJob {
  readonly kind: 'blobs';
  readonly key: string;
  /** Of the package's entries. */
  readonly prefix: string;
}

/** What the table of contents of a package is, without its meaning. */
export interface TocJob {
  readonly kind: 'toc';
  readonly object: StoredObject;
}

export type PlanJob = BundleJob | PackagesJob | SettingsJob | BlobsJob | TocJob;

/** As the object was when its index was read. */
export interface FoundBlobs {
  readonly object: StoredObject;
  readonly blobs: BlobTable;
}

/** What comes of each kind of job. */
export interface PlanResults {
  readonly bundle: Layout;
  readonly packages: Layout;
  readonly settings: readonly Diagnostic[];
  readonly blobs: FoundBlobs;
  readonly toc: Digest;
}

export type PlanResult = PlanResults[PlanJob['kind']];

/** What the thread is given to work on. */
export interface PlanOrder {
  readonly job: PlanJob;
  readonly store: Pick<Store, 'address' | 'place'>;
  /** Most bytes of all tables of contents that the job reads. */
  readonly maxTocBytes: number;
  /** What this job asks, and its result. */
  readonly port: MessagePort;
}

/** What the thread asks of the store, which only the server can reach. */
export type StoreQuestion =
  | { readonly kind: 'head'; readonly key: string }
  | { readonly kind: 'get'; readonly key: string; readonly range: ByteRange; readonly ifMatch: string | undefined };

export type StoreAnswer =
  | { readonly kind: 'head'; readonly object: StoredObject | undefined }
  | { readonly kind: 'get'; readonly object: StoredObject; readonly data: Uint8Array };

/** To the server. */
export type FromPlanner =
  | { readonly type: 'ask'; readonly id: number; readonly question: StoreQuestion }
  | { readonly type: 'done'; readonly result: PlanResult }
  | { readonly type: 'failed'; readonly error: ErrorParts };

/** To the thread. The port's close says that nobody waits for the result. */
export type ToPlanner =
  | { readonly type: 'answer'; readonly id: number; readonly answer: StoreAnswer }
  | { readonly type: 'refused'; readonly id: number; readonly error: ErrorParts };

/** An error as data; its cause stays where it was thrown. */
export interface ErrorParts {
  /** Undefined for an error that no user is meant to meet. */
  readonly code: ErrorCode | undefined;
  readonly message: string;
  readonly hint: string | undefined;
  readonly diagnostics: readonly Diagnostic[];
  readonly stack: string | undefined;
}

export function errorParts(thrown: unknown): ErrorParts {
  const { message, stack } = asError(thrown);
  if (!(thrown instanceof CurlewError)) return { code: undefined, message, hint: undefined, diagnostics: [], stack };
  const { code, hint, diagnostics } = thrown;
  return { code, message, hint, diagnostics, stack };
}

export function errorOf({ code, message, hint, diagnostics, stack }: ErrorParts): Error {
  const error = code === undefined ? new Error(message) : new CurlewError(code, message, { hint, diagnostics });
  return Object.assign(error, { stack });
}
