/**
 * Starts a thread that runs frame-worker. The executable for nodes replaces this module with one that contains the thread's
 * code (scripts/node-tool/code.ts).
 */
import type { Worker, WorkerOptions } from 'node:worker_threads';
import { startWorker } from '../../platform/files/start-worker.ts';

export function startFrameWorker(options: WorkerOptions): Worker {
  return startWorker('frame-worker', import.meta.url, options);
}
