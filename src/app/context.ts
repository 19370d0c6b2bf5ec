/** What a use case needs of its caller beside the request. */
import type { Report } from '../core/events.ts';
import type { Ask } from '../runtime/hooks/questions.ts';

/** Nothing below `src/cli` reads the process itself: whatever a use case knows of it is here. */
export interface Context {
  readonly signal: AbortSignal;
  readonly report: Report;
  /** Puts questions of hooks to whoever sits at the terminal; absent when nobody does. */
  readonly ask?: Ask | undefined;
  /** Prints a line of the result while the use case is at work; lines that nobody reads in time are lost. */
  readonly print?: ((line: string) => void) | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder that relative paths of the request start from; absolute. */
  readonly cwd: string;
  /** Effective user id of the process; absent: of somebody who is not root. */
  readonly user?: number | undefined;
  /** The running curlew; without it, hooks have no curlew to call. */
  readonly program?: (() => Program) | undefined;
}

/** How hooks call the curlew that runs them. */
export interface Program {
  /** The command line without its arguments. */
  readonly command: readonly string[];
  /** Files and folders that it consists of: hooks in a sandbox can read them. */
  readonly files: readonly string[];
  /** Its only file; undefined if it runs in a separate Node. */
  readonly executable?: string | undefined;
}
