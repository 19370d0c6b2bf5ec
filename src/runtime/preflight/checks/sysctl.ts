/** Kernel parameters. */
import * as v from 'valibot';
import { byKey } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { outputOf } from '../host.ts';
import { AnalyzerProblem, compareNumbers, firstOutcome, wholeNumber } from '../outcome.ts';

type SysctlFacts = Readonly<Record<string, string>>;

export const sysctl: Check<SysctlFacts> = {
  kind: 'sysctl',
  shared: true,
  isProgram: true,
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
  title: 'Sysctl',
  analyze: firstOutcome(holds),
};

/** `net.ipv4.ip_forward = 1`, `fs.inotify.max_user_instances >= 128`. */
function holds(when: string, facts: SysctlFacts): boolean {
  const [, name, sign = '', wanted = ''] = /(\S+)\s+([><=]=*)\s+(.+)/.exec(when) ?? [];
  if (name === undefined)
    throw new AnalyzerProblem(`the condition ${JSON.stringify(when)} does not have the form "name = value"`);
  const actual = Object.hasOwn(facts, name) ? facts[name] : undefined;
  if (actual === undefined) throw new AnalyzerProblem(`the kernel has no parameter ${name}`);
  if (['=', '==', '==='].includes(sign)) return actual === wanted;
  return compareNumbers(sign, wholeNumber(actual), wholeNumber(wanted));
}
