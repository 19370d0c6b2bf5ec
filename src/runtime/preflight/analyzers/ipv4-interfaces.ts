import { firstOutcome, JudgeProblem, type Analyzer } from '../analyzer.ts';
import { ipv4Interfaces as collector, type Ipv4Interface } from '../collectors/ipv4-interfaces.ts';
import { compareNumbers, wholeNumber, wordsOf } from '../compare.ts';

export const ipv4Interfaces: Analyzer<readonly Ipv4Interface[]> = {
  kind: 'ipv4Interfaces',
  collector,
  settings: {},
  title: () => 'IPv4 Interfaces',
  judge: firstOutcome((when, interfaces) => {
    const [subject = '', sign = '', wanted = ''] = wordsOf(when, 3, 'count >= 1');
    if (subject !== 'count') throw new JudgeProblem(`${JSON.stringify(subject)} is not count`);
    return compareNumbers(sign, interfaces.length, wholeNumber(wanted));
  }),
};
