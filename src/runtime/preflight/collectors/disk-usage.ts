/** Space of the file system of a folder, which need not exist yet. */
import { stat, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import * as v from 'valibot';
import { finite, type Read } from '../../../core/schema.ts';
import { asError, errnoOf } from '../../../core/errors.ts';
import { CollectProblem, DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { hostPath } from '../host-files.ts';

const facts = v.object({
  totalBytes: finite,
  /** Space that is reserved for root counts as free. */
  usedBytes: finite,
});
export type DiskFacts = Read<typeof facts>;

export const diskUsage: Collector<DiskFacts> = {
  kind: 'diskUsage',
  defaultName: 'diskUsage',
  shared: false,
  settings: { path: 'text!' },
  limitMs: () => DEFAULT_LIMIT_MS,
  collect: async (settings, host) => {
    const path = hostPath(host, resolve('/', settings.text('path') ?? '/'));
    try {
      const { bsize, blocks, bfree } = await statfs(await existingFolder(path));
      return { totalBytes: blocks * bsize, usedBytes: (blocks - bfree) * bsize };
    } catch (error) {
      throw new CollectProblem(`inspect ${settings.text('path') ?? '/'}: ${asError(error).message}`, { cause: error });
    }
  },
  facts,
};

/** The nearest existing folder above a path. */
export async function existingFolder(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    try {
      await stat(at);
      return at;
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || dirname(at) === at) throw error;
    }
  }
}
