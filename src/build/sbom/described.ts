/** A package or bundle as read: the input of SBOMs and provenance. */
import type { BundleJson } from '../../core/bundle.ts';
import type { Digest } from '../../core/digest.ts';
import type { DescribedPackage } from './components.ts';

export interface DescribedBundle {
  readonly json: BundleJson;
  /** Digest of the included curlew; undefined if there is none. */
  readonly tool: Digest | undefined;
}

interface DescribedArchive {
  /** Digest of the table of contents, which signatures cover. */
  readonly contents: Digest;
}

/** A file that is one package, or a bundle with its packages in order. */
export type Described =
  | (DescribedArchive & { readonly bundle: undefined; readonly packages: readonly [DescribedPackage] })
  | (DescribedArchive & { readonly bundle: DescribedBundle; readonly packages: readonly DescribedPackage[] });
