/** Starts a thread that runs layer-worker. The executable for nodes replaces this module (scripts/node-tool/code.ts). */
import type { Worker, WorkerOptions } from 'node:worker_threads';
import { startWorker } from '../../platform/files/start-worker.ts';

export function startLayerWorker(options: WorkerOptions): Worker {
  return startWorker('layer-worker', import.meta.url, options);
}
