import { firstOutcome, JudgeProblem, type Analyzer } from '../analyzer.ts';
import { time as collector, type TimeFacts } from '../collectors/time.ts';
import { wordsOf } from '../compare.ts';

const EQUAL: readonly string[] = ['=', '==', '==='];
const SYNCHRONIZED = ['synchronized', 'unsynchronized'];
const ACTIVE = ['active', 'inactive'];

export const time: Analyzer<TimeFacts> = {
  kind: 'time',
  collector,
  settings: {},
  title: () => 'Time',
  judge: firstOutcome(holds),
};

/** `ntp == synchronized+active`, `timezone != UTC`. */
function holds(when: string, facts: TimeFacts): boolean {
  const [subject = '', sign = '', wanted = ''] = wordsOf(when, 3, 'timezone == UTC');
  const unequal = subject === 'timezone' && sign === '!=';
  if (!EQUAL.includes(sign) && !unequal)
    throw new JudgeProblem(`${JSON.stringify(sign)} is no comparison of ${subject}`);
  if (subject === 'timezone') return (wanted === facts.timezone) !== unequal;
  if (subject !== 'ntp') throw new JudgeProblem(`${JSON.stringify(subject)} is neither timezone nor ntp`);
  const [synchronized = '', active = '', more] = wanted.split('+');
  if (!SYNCHRONIZED.includes(synchronized) || !ACTIVE.includes(active) || more !== undefined) {
    throw new JudgeProblem(`${JSON.stringify(wanted)} has not the form of synchronized+active`);
  }
  return facts.ntpSynchronized === (synchronized === 'synchronized') && facts.ntpActive === (active === 'active');
}
