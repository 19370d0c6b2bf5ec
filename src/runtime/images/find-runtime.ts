/** Finds the container runtime of this machine. */
import { connect } from 'node:net';
import { availableParallelism } from 'node:os';
import { CONTAINERD_SOCKET } from '../../core/layout.ts';
import { containerd } from './containerd.ts';
import { docker } from './docker.ts';
import { RUNTIME_NAMES, type ImageRuntime, type RuntimeName } from './image-runtime.ts';
import { runClient, type Env } from './program.ts';
import type { Cancellable } from '../../core/cancellable.ts';

const ANSWER_MS = 10_000;
/** Unpacking a layer uses one processor; more than a few at once only wait for the disk. */
const MIN_WIDTH = 2;
const MAX_WIDTH = 4;

/**
 * The order in which runtimes are tried: Docker includes its own containerd, so both answer if an add-on installed Docker.
 */
export function runtimeOrder(addons: readonly { readonly ref: { readonly name: string } }[]): readonly RuntimeName[] {
  const has = (name: RuntimeName): boolean => addons.some(({ ref }) => ref.name === name);
  return has('docker') && !has('containerd') ? RUNTIME_NAMES.toReversed() : RUNTIME_NAMES;
}

export interface FindOptions extends Cancellable {
  readonly env: Env;
  /** Runtimes to try, in this order. */
  readonly order?: readonly RuntimeName[];
}

/** The first runtime that answers; undefined if none does. */
export async function findImageRuntime({
  env,
  order = RUNTIME_NAMES,
  signal,
}: FindOptions): Promise<ImageRuntime | undefined> {
  const width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, availableParallelism()));
  for (const name of order) {
    if (name === 'containerd' && (await hasContainerd(env, signal))) return containerd(env, width);
    if (name === 'docker' && (await hasDocker(env, signal))) return docker(env, width);
  }
  return undefined;
}

async function hasContainerd(env: Env, signal: AbortSignal): Promise<boolean> {
  // ctr tries for ten seconds to connect to a socket without a listener.
  if (!(await listens(env['CONTAINERD_ADDRESS'] ?? CONTAINERD_SOCKET))) return false;
  return runClient(['ctr', 'version'], { env, signal, timeoutMs: ANSWER_MS }, ({ status }) => status === 0);
}

async function hasDocker(env: Env, signal: AbortSignal): Promise<boolean> {
  const command = ['docker', 'version', '--format', '{{.Server.Version}}'] as const;
  return runClient(command, { env, signal, timeoutMs: ANSWER_MS }, ({ status }) => status === 0);
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
