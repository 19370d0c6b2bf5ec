/**
 * Starts a thread that runs frame-worker. In the executable for nodes another module takes the place of this one, which
 * has the thread's code in it (scripts/node-tool/code.ts).
 */
import { Worker, type WorkerOptions } from 'node:worker_threads';

export function startFrameWorker(options: WorkerOptions): Worker {
  // Under a loader that runs the source directly the sibling is a .ts file too.
  const file = new URL(`./frame-worker${import.meta.url.slice(-3)}`, import.meta.url);
  return new Worker(file, options);
}
