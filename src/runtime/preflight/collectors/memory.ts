/** The amount of memory. */
import * as v from 'valibot';
import { finite, type Read } from '../../../core/schema.ts';
import { CollectProblem, DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { readHostFile } from '../host-files.ts';

const facts = v.object({
  /** Bytes. */
  total: finite,
});
export type MemoryFacts = Read<typeof facts>;

export const memory: Collector<MemoryFacts> = {
  kind: 'memory',
  defaultName: 'memory',
  shared: true,
  settings: {},
  limitMs: () => DEFAULT_LIMIT_MS,
  collect: async (_, host) => {
    const text = await readHostFile(host, 'proc/meminfo');
    const [, kibibytes] = /^MemTotal:\s+(\d+) kB$/m.exec(text ?? '') ?? [];
    if (kibibytes === undefined) throw new CollectProblem('the kernel provides no MemTotal in /proc/meminfo');
    return { total: Number(kibibytes) * 1024 };
  },
  facts,
};
