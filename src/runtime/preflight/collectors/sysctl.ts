/** Kernel parameters. */
import * as v from 'valibot';
import { byKey } from '../../../core/schema.ts';
import { DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { outputOf } from '../program.ts';

export type SysctlFacts = Readonly<Record<string, string>>;

export const sysctl: Collector<SysctlFacts> = {
  kind: 'sysctl',
  defaultName: 'sysctl',
  shared: true,
  isProgram: true,
  settings: {},
  limitMs: () => DEFAULT_LIMIT_MS,
  collect: async (_, host) => {
    const lines = (await outputOf('sysctl', ['-a'], host)).split('\n');
    return Object.fromEntries(
      lines.flatMap((line) => {
        const [, key, value = ''] = /^(\S+)\s*=\s*(.*)$/.exec(line) ?? [];
        return key === undefined ? [] : [[key, value] as const];
      }),
    );
  },
  facts: byKey(v.string()),
};
