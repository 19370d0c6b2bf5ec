/** Writes of a controller that do not wait for each other. */
import { requireRefusal } from '../../../core/errors.ts';
import type { Backoff } from '../../../platform/limit/backoff.ts';
import { eachLimited } from '../../../platform/limit/each.ts';

const AT_ONCE = 8;

/** A write about one object: alone in failing, and in waiting after that. */
export interface Errand {
  readonly key: string;
  readonly run: () => Promise<void>;
}

/** Runs those that are due. Returns the keys of what was refused now or shortly before, and why the first one was. */
export async function eachJob(
  jobs: readonly Errand[],
  { signal, backoff }: { readonly signal: AbortSignal; readonly backoff: Backoff },
): Promise<{ readonly held: ReadonlySet<string>; readonly problem: string | undefined }> {
  const held = new Set<string>();
  let problem: string | undefined;
  const work = async ({ key, run }: Errand): Promise<void> => {
    try {
      if (!backoff.mayBegin(key)) return void held.add(key);
      await run();
      backoff.succeeded(key);
    } catch (error) {
      requireRefusal(error, signal);
      held.add(key);
      problem ??= error.message;
      backoff.failed(key);
    }
  };
  await eachLimited(jobs, work, { width: AT_ONCE, signal });
  return { held, problem };
}
