/** Finds the container runtime of this machine. */
import { connect } from 'node:net';
import { availableParallelism } from 'node:os';
import { containerd } from './containerd.ts';
import { docker } from './docker.ts';
import type { ImageRuntime } from './image-runtime.ts';
import { ask, type Env } from './program.ts';
import { createTurns } from './turns.ts';
import type { Cancellable } from './wanted.ts';

const ANSWER_MS = 10_000;
const CONTAINERD_SOCKET = '/run/containerd/containerd.sock';
/** Unpacking layers keeps a processor busy; more than a few at once only wait for the disk. */
const LEAST_WIDTH = 2;
const MOST_WIDTH = 4;

/** containerd first, then docker; undefined when neither answers. */
export async function findImageRuntime({
  env,
  signal,
}: Cancellable & { readonly env: Env }): Promise<ImageRuntime | undefined> {
  const answers = async (...words: readonly [string, ...string[]]): Promise<boolean> =>
    (await ask(words, { env, signal, timeoutMs: ANSWER_MS })).status === 0;
  const width = Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, availableParallelism()));
  const turns = createTurns(width);
  // ctr tries for ten seconds to reach a socket where nobody listens.
  const isListening = await listens(env['CONTAINERD_ADDRESS'] ?? CONTAINERD_SOCKET);
  if (isListening && (await answers('ctr', 'version'))) return containerd(env, turns, width);
  if (await answers('docker', 'version', '--format', '{{.Server.Version}}')) return docker(env, turns, width);
  return undefined;
}

async function listens(address: string): Promise<boolean> {
  const path = address.replace(/^unix:\/\//, '');
  return new Promise((resolve) => {
    const socket = connect({ path, timeout: ANSWER_MS });
    const end = (isListening: boolean) => (): void => {
      socket.destroy();
      resolve(isListening);
    };
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false));
  });
}
