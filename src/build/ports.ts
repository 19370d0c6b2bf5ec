/** What a build needs from outside, made once by whoever starts it. */
import type { FramePool } from '../formats/archive/frame-pool.ts';
import type { Report } from '../core/events.ts';
import type { ImageRef } from '../core/image-ref.ts';
import type { Arch } from '../core/ref.ts';
import type { ContainerBuildStep } from '../manifest/step.ts';
import type { Digest } from '../core/digest.ts';
import type { Http } from '../platform/http/http.ts';
import type { RegistryClient } from '../registry/client.ts';
import type { ResolvedImage } from '../formats/oci/image.ts';
import type { ContentFile } from './compile.ts';
import type { Donors } from './donors.ts';
import type { Collector } from './host-packages/collector.ts';
import type { Semaphore } from '../platform/limit/semaphore.ts';
import type { SingleFlightCache } from '../platform/limit/single-flight-cache.ts';

/** A Docker engine that can hand out images that only it has. */
export interface ImageEngine {
  /** Identity of what the reference names in the engine now, or undefined when it does not have it. */
  readonly identify: (ref: ImageRef, options: { readonly signal: AbortSignal }) => Promise<Digest | undefined>;
  /** The image, with its bytes kept in `folder` until the build of the add-on ends. */
  readonly export: (
    ref: ImageRef,
    options: { readonly folder: string; readonly arch: Arch; readonly signal: AbortSignal },
  ) => Promise<ResolvedImage>;
}

/** Where an add-on lies, and for which machines it is built. */
export interface BuildPlace {
  /** The add-on's folder. */
  readonly folder: string;
  /** Folder that holds `addons/`. */
  readonly root: string;
  readonly arch: Arch;
}

/** Runs the builds of `dockerout` in containers. */
export interface ContainerBuilder {
  /** Digest of all that goes into the build: Dockerfile, context, version, base images. Builds nothing. */
  readonly inputs: (
    step: ContainerBuildStep,
    place: BuildPlace,
    options: { readonly signal: AbortSignal },
  ) => Promise<Digest>;
  /** Builds and runs it; what it leaves in `/out` is in `folder` afterwards, and comes back as files of the package. */
  readonly build: (
    step: ContainerBuildStep,
    place: BuildPlace,
    options: { readonly id: string; readonly folder: string; readonly report: Report; readonly signal: AbortSignal },
  ) => Promise<readonly ContentFile[]>;
}

/** Where a payload lies that this run has written; the path changes when its package gets its name. */
export interface Written {
  readonly path: () => string;
  readonly offset: number;
}

/** What is being fetched, or has been, by this run: each blob comes over the wire once. */
export type BlobLedger = Map<Digest, Promise<Written | undefined>>;

export interface BuildPorts {
  readonly http: Http;
  readonly registry: RegistryClient;
  readonly engine: ImageEngine | undefined;
  /** Fetches host packages; chosen when first needed. `UNSUPPORTED` where neither backend can work. */
  readonly collector: () => Promise<Collector>;
  readonly containerBuilder: () => Promise<ContainerBuilder>;
  readonly pool: FramePool;
  /** Bounds how many blobs are on their way at once, over all add-ons. */
  readonly transfers: Semaphore;
  readonly ledger: BlobLedger;
  /** Paths of downloads by address: each comes over the wire once, however many add-ons want it. */
  readonly bodies: SingleFlightCache<string>;
  /** Finished packages of the output folder; asked once, when first needed. */
  readonly donors: () => Promise<Donors>;
  readonly report: Report;
  /** Where assets wait, and what is known of their addresses. */
  readonly cache: string;
  /** Folder for packages. */
  readonly out: string;
  /** Version of curlew, for `addon.json`. */
  readonly tool: string;
}
