/** Threads that run a module of this tool. */
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Starts a thread that runs the module `name` beside the module `from`, which is given by its `import.meta.url`. Where the
 * source is run directly, from the checkout, the thread registers the loader for it by itself: threads do not inherit one.
 */
export function startWorker(name: string, from: string, options: WorkerOptions): Worker {
  const ending = from.slice(-3);
  const file = new URL(`./${name}${ending}`, from);
  if (ending === '.js') return new Worker(file, options);
  const code = `import('tsx/esm/api').then(({ register }) => register()).then(() => import('${file.href}'));`;
  return new Worker(code, { ...options, eval: true });
}
