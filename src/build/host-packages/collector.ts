/** The interface for fetching an operating system's packages with their dependencies. */
import type { Reporting } from '../../core/cancellable.ts';
import type { OsId } from '../../core/os.ts';
import type { Arch } from '../../core/ref.ts';
import type { LockedFile } from '../../manifest/lock.ts';

export interface CollectRequest {
  readonly os: OsId;
  readonly arch: Arch;
  /** Id of the step for the backend's output, unique in the run. */
  readonly id: string;
  /** `requires`: fetches nothing, returns only the requirements of the package files in `known`; rpm systems only. */
  readonly task: 'collect' | 'requires';
  /** Names of requested packages, resolved in one transaction; empty only for `requires`. */
  readonly names: readonly string[];
  /** Folder with package files of an earlier build, by file name, reused if they are unchanged in the repository. */
  readonly known: string | undefined;
  /** Empty folder that receives the files of `<os>/archives/`: package files and metadata of a repository. */
  readonly folder: string;
  /** Empty folder for private state; the caller removes it. */
  readonly scratch: string;
}

export interface Collected {
  /** Sorted by file. */
  readonly packages: readonly LockedFile[];
  /** Names that the packages require directly and that are not included, in the package manager's form. */
  readonly requires: readonly string[];
  /** Bytes of packages that were fetched instead of reused from `known`. */
  readonly fetched: number;
}

export interface Collector {
  readonly name: 'container' | 'host';
  /** The other inputs of the result: the builder image's digest, or the repositories. Fetches no package. */
  readonly inputs: (os: OsId, options: { readonly signal: AbortSignal }) => Promise<string>;
  /**
   * Resolves the names in one transaction and fetches the packages. The same state of the repositories gives the same bytes
   * in the folder. A failure is one CurlewError with the package manager's reason.
   */
  readonly collect: (request: CollectRequest, options: Reporting) => Promise<Collected>;
}
