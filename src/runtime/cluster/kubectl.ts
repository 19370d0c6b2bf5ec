/** The program kubectl, for what is more than requests: commands in containers, waiting for a rollout. */
import { delimiter } from 'node:path';
import { visible } from '../../core/diagnostic.ts';
import { redact } from '../../core/errors.ts';
import { programPath } from '../../kube/exec-plugin.ts';
import { kubeconfigPaths } from '../../kube/session.ts';
import { runProgram } from '../../platform/process/run-program.ts';

/** Longer than a program in a container that waits for a cluster that is away. */
const DEADLINE_MS = 330_000;
const MAX_OUTPUT = 16 << 20;
const SAID_LIMIT = 500;

/** What kubectl printed, without the last line end, or why it failed. */
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
  const { stdout, stderr, error } = await runProgram('kubectl', words, {
    env: { ...env, PATH: programPath(env), KUBECONFIG: kubeconfigPaths(env).join(delimiter) },
    input,
    limitMs: DEADLINE_MS,
    outputLimit: MAX_OUTPUT,
    signal,
  });
  if (error === undefined) return { kind: 'output', text: stdout.replace(/\r?\n$/, '') };
  if (error.problem === 'missing') return { kind: 'problem', said: 'there is no kubectl on this machine' };
  if (error.problem !== 'status' && error.problem !== 'signal') return { kind: 'problem', said: error.reason };
  return { kind: 'problem', said: saidBy(stderr.trim() === '' ? 'it failed' : stderr.trim()) };
}

/** The end of what a program said, in one line that cannot drive a terminal. */
function saidBy(text: string): string {
  const lines = text.split('\n').slice(-3);
  const line = visible(redact(lines.join('; ')));
  return line.length > SAID_LIMIT ? `…${line.slice(-SAID_LIMIT)}` : line;
}
