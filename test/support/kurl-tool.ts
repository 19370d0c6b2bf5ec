/** A program of kURL's inside of the process of a test. */
import type { ToolContext } from '../../src/cli/kurl/tools.ts';
import { runKurlTool } from '../../src/cli/kurl/tools.ts';
import { never } from './context.ts';

export type ToolGiven = Partial<Pick<ToolContext, 'env' | 'say' | 'signal'>> & { readonly input?: string };

/** What it prints at the end; no time passes where it waits. */
export async function kurlTool(words: readonly string[], { input = '', ...given }: ToolGiven = {}): Promise<string> {
  return runKurlTool(words, {
    input: async () => Promise.resolve(input),
    say: () => undefined,
    env: { KUBECONFIG: '/nowhere' },
    signal: never,
    // Only lets others run: a limit of time still ends it.
    pause: async (_ms, { signal }) => {
      await new Promise(setImmediate);
      signal.throwIfAborted();
    },
    ...given,
  });
}
