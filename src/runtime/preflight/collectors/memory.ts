/** The amount of memory. */
import { CollectProblem, DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { hasShape } from '../fact-shapes.ts';
import { readHostFile } from '../host-files.ts';

export type MemoryFacts = {
  /** Bytes. */
  readonly total: number;
};

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
  isFacts: (value): value is MemoryFacts => hasShape(value, { total: 'number' }),
};
