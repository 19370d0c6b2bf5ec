import { firstOutcome, JudgeProblem, type Analyzer } from '../analyzer.ts';
import { sysctl as collector, type SysctlFacts } from '../collectors/sysctl.ts';
import { compareNumbers, wholeNumber } from '../compare.ts';

export const sysctl: Analyzer<SysctlFacts> = {
  kind: 'sysctl',
  collector,
  settings: {},
  title: () => 'Sysctl',
  judge: firstOutcome(holds),
};

/** `net.ipv4.ip_forward = 1`, `fs.inotify.max_user_instances >= 128`. */
function holds(when: string, facts: SysctlFacts): boolean {
  const [, name, sign = '', wanted = ''] = /(\S+)\s+([><=]=*)\s+(.+)/.exec(when) ?? [];
  if (name === undefined)
    throw new JudgeProblem(`the condition ${JSON.stringify(when)} has not the form of "name = value"`);
  const actual = Object.hasOwn(facts, name) ? facts[name] : undefined;
  if (actual === undefined) throw new JudgeProblem(`the kernel has no parameter ${name}`);
  if (['=', '==', '==='].includes(sign)) return actual === wanted;
  return compareNumbers(sign, wholeNumber(actual), wholeNumber(wanted));
}
