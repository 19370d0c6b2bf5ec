/** The program kubectl, for what is more than requests: commands in containers, waiting for a rollout. */
import { execa } from 'execa';
import { delimiter } from 'node:path';
import { visible } from '../../core/diagnostic.ts';
import { redact } from '../../core/errors.ts';
import { programPath } from '../../kube/exec-plugin.ts';
import { kubeconfigPaths } from '../../kube/session.ts';

/** Longer than a program in a container that waits for a cluster that is away. */
const DEADLINE_MS = 330_000;
const MAX_OUTPUT = 16 << 20;
const SAID_LIMIT = 500;

/** What kubectl printed, or why it failed. */
export type KubectlAnswer =
  | { readonly kind: 'output'; readonly text: string }
  | { readonly kind: 'problem'; readonly said: string };

export interface KubectlCall {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Its standard input, which no list of processes shows. */
  readonly input?: string;
  readonly signal: AbortSignal;
}

/** Runs kubectl of PATH with these words and the kubeconfig that requests go by. Nothing is thrown but the signal's reason. */
export async function callKubectl(
  words: readonly string[],
  { env, input = '', signal }: KubectlCall,
): Promise<KubectlAnswer> {
  const called = await execa('kubectl', words, {
    reject: false,
    env: { ...env, PATH: programPath(env), KUBECONFIG: kubeconfigPaths(env).join(delimiter) },
    extendEnv: false,
    cancelSignal: signal,
    timeout: DEADLINE_MS,
    forceKillAfterDelay: 2000,
    maxBuffer: MAX_OUTPUT,
    input,
  });
  signal.throwIfAborted();
  const { exitCode, stdout, stderr, timedOut, isMaxBuffer, code, originalMessage } = called;
  if (timedOut) return { kind: 'problem', said: `no answer in ${DEADLINE_MS / 1000} s` };
  if (isMaxBuffer) return { kind: 'problem', said: `more than ${MAX_OUTPUT} bytes of output` };
  if (code === 'ENOENT') return { kind: 'problem', said: 'there is no kubectl on this machine' };
  if (exitCode === 0) return { kind: 'output', text: stdout };
  return { kind: 'problem', said: saidBy(stderr.trim() === '' ? (originalMessage ?? 'it failed') : stderr.trim()) };
}

/** The end of what a program said, in one line that cannot drive a terminal. */
function saidBy(text: string): string {
  const lines = text.split('\n').slice(-3);
  const line = visible(redact(lines.join('; ')));
  return line.length > SAID_LIMIT ? `…${line.slice(-SAID_LIMIT)}` : line;
}
