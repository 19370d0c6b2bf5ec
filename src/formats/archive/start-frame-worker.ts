/**
 * Starts a thread that runs frame-worker. In the executable for nodes another module takes the place of this one, which
 * has the thread's code in it (scripts/node-tool/code.ts).
 */
import type { Worker, WorkerOptions } from 'node:worker_threads';
import { startWorker } from '../../platform/files/start-worker.ts';

export function startFrameWorker(options: WorkerOptions): Worker {
  return startWorker('frame-worker', import.meta.url, options);
}
