import { firstOutcome, AnalyzerProblem, type Analyzer } from '../analyzer.ts';
import { time as collector, type TimeFacts } from '../collectors/time.ts';
import { splitCondition } from '../compare.ts';

const EQUAL: readonly string[] = ['=', '==', '==='];
const SYNCHRONIZED = ['synchronized', 'unsynchronized'];
const ACTIVE = ['active', 'inactive'];

export const time: Analyzer<TimeFacts> = {
  kind: 'time',
  collector,
  settings: {},
  title: () => 'Time',
  analyze: firstOutcome(holds),
};

/** `ntp == synchronized+active`, `timezone != UTC`. */
function holds(when: string, facts: TimeFacts): boolean {
  const [subject = '', sign = '', wanted = ''] = splitCondition(when, 3, 'timezone == UTC');
  const unequal = subject === 'timezone' && sign === '!=';
  if (!EQUAL.includes(sign) && !unequal)
    throw new AnalyzerProblem(`${JSON.stringify(sign)} is not a comparison of ${subject}`);
  if (subject === 'timezone') return (wanted === facts.timezone) !== unequal;
  if (subject !== 'ntp') throw new AnalyzerProblem(`${JSON.stringify(subject)} is neither timezone nor ntp`);
  const [synchronized = '', active = '', more] = wanted.split('+');
  if (!SYNCHRONIZED.includes(synchronized) || !ACTIVE.includes(active) || more !== undefined) {
    throw new AnalyzerProblem(`${JSON.stringify(wanted)} does not have the form synchronized+active`);
  }
  return facts.ntpSynchronized === (synchronized === 'synchronized') && facts.ntpActive === (active === 'active');
}
