/** The curlew for nodes of each architecture, opened on first use. */
import { openExecutable, type OpenExecutable } from '../../own/root-files.ts';
import { CurlewError } from '../../core/errors.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import type { Executable } from './bundles.ts';

export interface Executables extends AsyncDisposable {
  readonly of: Executable;
}

/** Calls `open` once for each architecture; default is the executable of this build. */
export function openExecutables({
  open = openExecutable,
  signal,
}: {
  readonly open?: typeof openExecutable;
  readonly signal: AbortSignal;
}): Executables {
  const opened = createSingleFlightCache<OpenExecutable>();
  return {
    of: async (arch) => {
      try {
        return await opened.get(arch, async () => open(arch, { signal }));
      } catch (error) {
        if (!(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw error;
        throw new CurlewError('UNSUPPORTED', `this server has no curlew for ${arch} nodes`, { cause: error });
      }
    },
    [Symbol.asyncDispose]: async () => {
      for (const one of await opened.drain()) await one[Symbol.asyncDispose]();
    },
  };
}
