/** Starts threads that run a module of this tool. */
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Starts a thread that runs the module `name` next to the module `from`, given by its `import.meta.url`. If the source runs
 * directly from the checkout, the thread registers the TypeScript loader itself: threads do not inherit it.
 */
export function startWorker(name: string, from: string, options: WorkerOptions): Worker {
  const ending = from.slice(-3);
  const file = new URL(`./${name}${ending}`, from);
  if (ending === '.js') return new Worker(file, options);
  const code = `import('tsx/esm/api').then(({ register }) => register()).then(() => import('${file.href}'));`;
  return new Worker(code, { ...options, eval: true });
}
