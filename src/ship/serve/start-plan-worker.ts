/** Starts a thread that runs plan-worker. The executable for nodes does not contain it (scripts/node-tool/code.ts). */
import type { Worker, WorkerOptions } from 'node:worker_threads';
import { startWorker } from '../../platform/files/start-worker.ts';

export function startPlanWorker(options: WorkerOptions): Worker {
  return startWorker('plan-worker', import.meta.url, options);
}
