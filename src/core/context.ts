/** The needs of a use case from its caller in addition to the request. */
import type { Report } from './events.ts';

/** Only `src/cli` reads the process itself: use cases get its properties from here. */
export interface Context {
  readonly signal: AbortSignal;
  readonly report: Report;
  /** Asks questions of hooks on the terminal; absent without a terminal. */
  readonly ask?: Ask | undefined;
  /** Prints a line of the result while the use case runs; lines that are not read in time are lost. */
  readonly print?: ((line: string) => void) | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Base folder of relative paths in the request; absolute. */
  readonly cwd: string;
  /** Effective user ID of the process; absent: not root. */
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

export interface Question {
  readonly addon: string;
  /** `yes` and `no` are the default answers; the answer to a `secret` must not be shown. */
  readonly kind: 'yes' | 'no' | 'text' | 'secret';
  /** Output of the hook since it started or since its last question; it contains the text of the question. */
  readonly lines: readonly string[];
}

/** Returns the user's answer, which may be empty; undefined if the terminal has closed. */
export type Ask = (question: Question, options: { readonly signal: AbortSignal }) => Promise<string | undefined>;
