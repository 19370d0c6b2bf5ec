/** Files of the machine that is inspected. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../../core/errors.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import type { Host } from './collector.ts';

const LIMIT = 8 << 20;

export function hostPath({ root }: Host, path: string): string {
  return join(root, path);
}

/** The text of a file; undefined if it does not exist. */
export async function readHostFile(host: Host, path: string, limit: number = LIMIT): Promise<string | undefined> {
  host.signal.throwIfAborted();
  const target = hostPath(host, path);
  try {
    await access(target);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
  return (await readLimited(target, limit)).toString('utf8');
}
