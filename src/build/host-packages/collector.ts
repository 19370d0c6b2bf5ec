/** Fetching an operating system's packages with all they need: what is asked, and what comes back. */
import type { Report } from '../../core/events.ts';
import type { OsId } from '../../core/os.ts';
import type { Arch } from '../../core/ref.ts';
import type { LockedFile } from '../../manifest/lock.ts';

export interface CollectRequest {
  readonly os: OsId;
  readonly arch: Arch;
  /** Unique among all that is reported: the step that a backend's lines belong to. */
  readonly id: string;
  /** `requires`: fetch nothing, tell only what the package files in `known` require; rpm systems only. */
  readonly task: 'collect' | 'requires';
  /** Names whose files are wanted, resolved in one transaction; empty for `requires` only. */
  readonly names: readonly string[];
  /** Folder with package files of an earlier build, by file name; what the repository still has unchanged comes from there. */
  readonly known: string | undefined;
  /** Empty folder; afterwards it holds what becomes `<os>/archives/`: package files and metadata of a repository. */
  readonly folder: string;
  /** Empty folder for private state; the caller removes it. */
  readonly scratch: string;
}

export interface Collected {
  /** Sorted by file. */
  readonly packages: readonly LockedFile[];
  /** Names that the packages require directly and that are not among them, as the package manager gives them. */
  readonly requires: readonly string[];
  /** Bytes of packages that were not taken from `known`. */
  readonly fetched: number;
}

export interface Collector {
  readonly name: 'container' | 'host';
  /** What decides the result beside the names: the builder image's digest, or the repositories. Fetches no package. */
  readonly inputs: (os: OsId, options: { readonly signal: AbortSignal }) => Promise<string>;
  /**
   * Resolves the names in one transaction and fetches what comes of it. The same state of the repositories gives the
   * same bytes in the folder. A failure is one CurlewError with the package manager's reason.
   */
  readonly collect: (
    request: CollectRequest,
    options: { readonly report: Report; readonly signal: AbortSignal },
  ) => Promise<Collected>;
}
