/** The external services of a build, created once by its caller. */
import type { Cancellable } from '../core/cancellable.ts';
import type { FramePool } from '../formats/archive/frame-pool.ts';
import type { Report } from '../core/events.ts';
import type { ImageRef } from '../core/image-ref.ts';
import type { Arch } from '../core/ref.ts';
import type { ContainerBuildStep } from '../manifest/step.ts';
import type { Digest } from '../core/digest.ts';
import type { Http } from '../platform/http/http.ts';
import type { RegistryClient } from './registry/client.ts';
import type { LayerCheck } from '../formats/oci/check-layers.ts';
import type { ResolvedImage } from '../formats/oci/image.ts';
import type { ContentFile } from './compile.ts';
import type { LocalPayloads } from './local-payloads.ts';
import type { Collector } from './host-packages/collector.ts';
import type { Semaphore } from '../platform/limit/semaphore.ts';
import type { SingleFlightCache } from '../platform/limit/single-flight-cache.ts';

/** A Docker engine that can export images. */
export interface ImageEngine {
  /** Current identity of the reference in the engine, or undefined if the engine does not have it. */
  readonly identify: (ref: ImageRef, options: Cancellable) => Promise<Digest | undefined>;
  /** The image, whose bytes are in `folder` until the build of the add-on ends. */
  readonly export: (
    ref: ImageRef,
    options: { readonly folder: string; readonly arch: Arch; readonly signal: AbortSignal },
  ) => Promise<ResolvedImage>;
}

/** The location of an add-on, and the architecture to build for. */
export interface BuildPlace {
  /** The add-on's folder. */
  readonly folder: string;
  /** Folder that contains `addons/`. */
  readonly root: string;
  readonly arch: Arch;
}

/** Runs the builds of `dockerout` in containers. */
export interface ContainerBuilder {
  /** Digest of all inputs of the build: Dockerfile, context, version, base images. Builds nothing. */
  readonly inputs: (step: ContainerBuildStep, place: BuildPlace, options: Cancellable) => Promise<Digest>;
  /** Builds and runs it; its output in `/out` is copied to `folder`, and returned as files of the package. */
  readonly build: (
    step: ContainerBuildStep,
    place: BuildPlace,
    options: { readonly id: string; readonly folder: string; readonly report: Report; readonly signal: AbortSignal },
  ) => Promise<readonly ContentFile[]>;
}

/** Location of a payload that this run has written; the path changes when its package is renamed. */
export interface Written {
  readonly path: () => string;
  readonly offset: number;
}

/** Blobs that this run is fetching or has fetched: each is fetched once. */
export type BlobLedger = Map<Digest, Promise<Written | undefined>>;

export interface BuildPorts {
  readonly http: Http;
  readonly registry: RegistryClient;
  readonly engine: ImageEngine | undefined;
  /** Fetches host packages; chosen when first needed. `UNSUPPORTED` if neither backend works. */
  readonly collector: () => Promise<Collector>;
  readonly containerBuilder: () => Promise<ContainerBuilder>;
  readonly pool: FramePool;
  /** Limits concurrent blob transfers over all add-ons. */
  readonly transfers: Semaphore;
  readonly ledger: BlobLedger;
  /** Unpacks layers before a node does. */
  readonly layers: LayerCheck;
  /** Paths of downloads by address: each is fetched once, even if several add-ons need it. */
  readonly bodies: SingleFlightCache<string>;
  /** Finished packages of the output folder; loaded on first use. */
  readonly localPayloads: () => Promise<LocalPayloads>;
  readonly report: Report;
  /** Folder for downloaded assets and records of their addresses. */
  readonly cache: string;
  /** Folder for packages. */
  readonly out: string;
  /** Manifests may name files outside their repository. */
  readonly outsideFiles: boolean;
  /** Version of curlew, for `addon.json`. */
  readonly tool: string;
}
