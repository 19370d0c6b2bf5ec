/** The builder steps that directives request. JSON-safe; each kind has a fetcher in `src/build`. */
import type { OsId } from '../core/os.ts';

export interface ImageStep {
  readonly kind: 'image';
  readonly id: string;
  /** Normalized reference of a registry's image, or the name of the image in a local `.tar`, if the Manifest gives it one. */
  readonly reference: string | undefined;
  /** Path of a local image archive as written (relative to the Manifest's folder), or undefined. */
  readonly archive: string | undefined;
  /** kURL's fourth column `no_remote_load`: the image is not expected on remote nodes. */
  readonly remoteLoad: boolean;
}

export interface AssetStep {
  readonly kind: 'asset';
  /** Name under `assets/`. */
  readonly fileName: string;
  /** URL (https, or http) or a path as written (relative to the Manifest's folder). */
  readonly source: string;
  readonly local: boolean;
  /** From `#sha256=<hex>`, as `sha256:<hex>`. */
  readonly digest: string | undefined;
}

/** All packages of one kind of output for one operating system. */
export interface OsPackagesStep {
  readonly kind: 'os-packages';
  readonly os: OsId;
  /** `archives`: files and metadata; `deps`: only names that the operator must install. */
  readonly output: 'archives' | 'deps';
  readonly packages: readonly string[];
}

export interface ContainerBuildStep {
  readonly kind: 'container-build';
  /** OS folder that receives the container's output in `/out`. */
  readonly destination: string;
  readonly dockerfile: string;
  /** The value of the build argument. */
  readonly version: string;
  /** The name of the build argument; VERSION when undefined. */
  readonly argument?: string | undefined;
}

export type BuilderStep = ImageStep | AssetStep | OsPackagesStep | ContainerBuildStep;
