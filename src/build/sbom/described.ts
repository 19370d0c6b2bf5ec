/** A package or bundle as it was read: what SBOMs and provenance are made of. */
import type { BundleJson } from '../../core/bundle.ts';
import type { Digest } from '../../core/digest.ts';
import type { DescribedPackage } from './components.ts';

export interface DescribedBundle {
  readonly json: BundleJson;
  /** Of the curlew inside; undefined where there is none. */
  readonly tool: Digest | undefined;
}

interface DescribedArchive {
  /** Digest of the table of contents: what a signature covers. */
  readonly contents: Digest;
}

/** A file that is one package, or a bundle with its packages in their order. */
export type Described =
  | (DescribedArchive & { readonly bundle: undefined; readonly packages: readonly [DescribedPackage] })
  | (DescribedArchive & { readonly bundle: DescribedBundle; readonly packages: readonly DescribedPackage[] });
