import { firstOutcome, AnalyzerProblem, type Analyzer } from '../analyzer.ts';
import { ipv4Interfaces as collector, type Ipv4Interface } from '../collectors/ipv4-interfaces.ts';
import { compareNumbers, wholeNumber, splitCondition } from '../compare.ts';

export const ipv4Interfaces: Analyzer<readonly Ipv4Interface[]> = {
  kind: 'ipv4Interfaces',
  collector,
  settings: {},
  title: () => 'IPv4 Interfaces',
  analyze: firstOutcome((when, interfaces) => {
    const [subject = '', sign = '', wanted = ''] = splitCondition(when, 3, 'count >= 1');
    if (subject !== 'count') throw new AnalyzerProblem(`${JSON.stringify(subject)} is not count`);
    return compareNumbers(sign, interfaces.length, wholeNumber(wanted));
  }),
};
