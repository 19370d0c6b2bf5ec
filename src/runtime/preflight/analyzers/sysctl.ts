import { firstOutcome, AnalyzerProblem, type Analyzer } from '../analyzer.ts';
import { sysctl as collector, type SysctlFacts } from '../collectors/sysctl.ts';
import { compareNumbers, wholeNumber } from '../compare.ts';

export const sysctl: Analyzer<SysctlFacts> = {
  kind: 'sysctl',
  collector,
  settings: {},
  title: () => 'Sysctl',
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
