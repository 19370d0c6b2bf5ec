/** Waiting for a file by which another process or a hook signals its progress. */
import { stat } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

/** Resolves when the file exists, or when `writer` has ended without creating it. */
export async function appears(path: string, writer?: { readonly exitCode: number | null }): Promise<void> {
  while ((await stat(path).catch(() => undefined)) === undefined) {
    if (typeof writer?.exitCode === 'number') return;
    await wait(1);
  }
}
