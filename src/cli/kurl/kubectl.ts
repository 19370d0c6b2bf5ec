/** Runs kubectl for operations that are not plain requests: commands in containers, waiting for a rollout. */
import { delimiter } from 'node:path';
import { visible } from '../../core/diagnostic.ts';
import { redact } from '../../core/errors.ts';
import { shortened } from '../../core/shortened.ts';
import { programPath } from '../../cluster/kube/exec-plugin.ts';
import { kubeconfigPaths } from '../../cluster/kube/session.ts';
import { tryProgram } from '../../platform/process/run-program.ts';

/** Longer than a program in a container waits for an unreachable cluster. */
const DEADLINE_MS = 330_000;
const MAX_OUTPUT = 16 << 20;
const MESSAGE_LIMIT = 500;

export interface KubectlCall {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Its standard input, which process lists do not show. */
  readonly input?: string;
  readonly signal: AbortSignal;
}

/** Its output without the last newline. Runs kubectl from PATH with curlew's kubeconfig. If it fails, throws what `failed` makes of the reason. */
export async function callKubectl(
  args: readonly string[],
  { env, input = '', signal }: KubectlCall,
  failed: (reason: string) => Error,
): Promise<string> {
  const options = {
    env: { ...env, PATH: programPath(env), KUBECONFIG: kubeconfigPaths(env).join(delimiter) },
    input,
    limitMs: DEADLINE_MS,
    outputLimit: MAX_OUTPUT,
    signal,
  };
  return tryProgram('kubectl', args, options, ({ stdout, stderr, error }) => {
    if (error === undefined) return stdout.replace(/\r?\n$/, '');
    if (error.problem === 'missing') throw failed('kubectl is not installed on this machine');
    if (error.problem !== 'status' && error.problem !== 'signal') throw failed(error.reason);
    throw failed(messageOf(stderr.trim() === '' ? 'it failed' : stderr.trim()));
  });
}

/** The end of a program's error output in one line without control characters. */
function messageOf(text: string): string {
  const lines = text.split('\n').slice(-3);
  const line = visible(redact(lines.join('; ')));
  return shortened(line, MESSAGE_LIMIT);
}
