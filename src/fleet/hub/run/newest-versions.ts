/** The newest versions of charts, which are asked for apart from passes: a repository that is slow or away holds nothing. */
import { CurlewError } from '../../../core/errors.ts';

/** Seconds after which a repository is asked again, and after a failure. */
const AGAIN_S = 600;
const FAILED_S = 60;

interface Known {
  readonly version: string | undefined;
  readonly problem: string;
  /** When it is asked again, in seconds since 1970; infinite while it is asked. */
  readonly next: number;
}

export class NewestVersions {
  readonly #known = new Map<string, Known>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** The version that was found last, or why none was. `key` is what is asked about, and `find` asks, whose errors are kept. */
  of(
    key: string,
    find: () => Promise<string>,
    { now, signal }: { readonly now: number; readonly signal: AbortSignal },
  ): Pick<Known, 'version' | 'problem'> {
    const before = this.#known.get(key) ?? { version: undefined, problem: 'its newest version is asked for', next: 0 };
    if (before.next > now) return before;
    this.#known.set(key, { ...before, next: Infinity });
    const begun = performance.now();
    const keep = (found: Pick<Known, 'version' | 'problem'>, seconds: number): void => {
      if (signal.aborted) return;
      this.#known.set(key, { ...found, next: now + (performance.now() - begun) / 1000 + seconds });
      this.#onChange();
    };
    find().then(
      (version) => keep({ version, problem: '' }, AGAIN_S),
      (error: unknown) => {
        const problem = error instanceof CurlewError ? error.message : String(error);
        keep({ version: before.version, problem }, FAILED_S);
      },
    );
    return before;
  }

  /** Milliseconds until one is asked again. Only these keys are kept. */
  keep(keys: ReadonlySet<string>, now: number): number {
    for (const key of this.#known.keys()) if (!keys.has(key)) this.#known.delete(key);
    return Math.min(...[...this.#known.values()].map(({ next }) => Math.max(0, next - now) * 1000));
  }
}
