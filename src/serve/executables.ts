/** The curlew for nodes of each architecture, opened when it is first asked for. */
import { openExecutable, type OpenExecutable } from '../bundle/root-files.ts';
import { CurlewError } from '../core/errors.ts';
import type { Arch } from '../core/ref.ts';
import type { Executable } from './bundles.ts';

export interface Executables extends AsyncDisposable {
  readonly of: Executable;
}

/** `open` is asked once an architecture; by default what this build has. */
export function openExecutables({
  open = openExecutable,
  signal,
}: {
  readonly open?: typeof openExecutable;
  readonly signal: AbortSignal;
}): Executables {
  const opened = new Map<Arch, Promise<OpenExecutable>>();
  return {
    of: async (arch) => {
      const one = opened.get(arch) ?? open(arch, { signal });
      opened.set(arch, one);
      try {
        return await one;
      } catch (error) {
        opened.delete(arch);
        if (!(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw error;
        throw new CurlewError('UNSUPPORTED', `there is no curlew for ${arch} nodes here`, { cause: error });
      }
    },
    [Symbol.asyncDispose]: async () => {
      for (const one of opened.values()) await (await one.catch(() => undefined))?.[Symbol.asyncDispose]();
    },
  };
}
