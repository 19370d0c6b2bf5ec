/** The amount of memory. */
import * as v from 'valibot';
import { finite, type Read } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { CollectProblem, readHostFile } from '../host.ts';
import { compareNumbers, firstOutcome, quantityOf, splitCondition } from '../outcome.ts';

const schema = v.object({
  /** Bytes. */
  total: finite,
});
type MemoryFacts = Read<typeof schema>;

export const memory: Check<MemoryFacts> = {
  kind: 'memory',
  shared: true,
  collect: async (_, host) => {
    const text = await readHostFile(host, 'proc/meminfo');
    const [, kibibytes] = /^MemTotal:\s+(\d+) kB$/m.exec(text ?? '') ?? [];
    if (kibibytes === undefined) throw new CollectProblem('the kernel provides no MemTotal in /proc/meminfo');
    return { total: Number(kibibytes) * 1024 };
  },
  facts: schema,
  title: 'Amount of Memory',
  analyze: firstOutcome((when, { total }) => {
    const [sign = '', wanted = ''] = splitCondition(when, 2, '< 8G');
    return compareNumbers(sign, total, quantityOf(wanted));
  }),
};
