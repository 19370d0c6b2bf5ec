/** Space of the file system of a folder, which need not exist yet. */
import { stat, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import * as v from 'valibot';
import { asError, errnoOf } from '../../../core/errors.ts';
import { finite, type Read } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { CollectProblem, hostPath } from '../host.ts';
import { AnalyzerProblem, compareNumbers, firstOutcome, quantityOf, splitCondition } from '../outcome.ts';

const schema = v.object({
  totalBytes: finite,
  /** Space that is reserved for root counts as free. */
  usedBytes: finite,
});
type DiskFacts = Read<typeof schema>;

export const diskUsage: Check<DiskFacts> = {
  kind: 'diskUsage',
  settings: { path: 'text!' },
  collect: async (settings, host) => {
    const path = hostPath(host, resolve('/', settings.text('path') ?? '/'));
    try {
      const { bsize, blocks, bfree } = await statfs(await existingFolder(path));
      return { totalBytes: blocks * bsize, usedBytes: (blocks - bfree) * bsize };
    } catch (error) {
      throw new CollectProblem(`inspect ${settings.text('path') ?? '/'}: ${asError(error).message}`, { cause: error });
    }
  },
  facts: schema,
  title: (name) => `Disk Usage ${name}`,
  analyze: firstOutcome(holds),
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

/** `total < 30Gi`, `used > 1Gi`, `available < 10Gi`, `used/total > 80%`, `available/total < 0.2`. */
function holds(when: string, { totalBytes, usedBytes }: DiskFacts): boolean {
  const [subject = '', sign = '', wanted = ''] = splitCondition(when, 3, 'total < 30Gi');
  const availableBytes = totalBytes - usedBytes;
  switch (subject.toLowerCase()) {
    case 'total':
      return compareNumbers(sign, totalBytes, quantityOf(wanted));
    case 'used':
      return compareNumbers(sign, usedBytes, quantityOf(wanted));
    case 'available':
      return compareNumbers(sign, availableBytes, quantityOf(wanted));
    case 'used/total':
      return compareNumbers(sign, usedBytes / totalBytes, shareOf(wanted));
    case 'available/total':
      return compareNumbers(sign, availableBytes / totalBytes, shareOf(wanted));
    default:
      throw new AnalyzerProblem(
        `${JSON.stringify(subject)} is not one of total, used, available, used/total, available/total`,
      );
  }
}

/** `80%` or `0.8`. */
function shareOf(text: string): number {
  const [, number, percent] = /^([+-]?(?:\d+\.?\d*|\.\d+))(%?)$/.exec(text) ?? [];
  if (number === undefined) throw new AnalyzerProblem(`${JSON.stringify(text)} is not a share such as 80%`);
  return percent === '%' ? Number(number) / 100 : Number(number);
}
