import { firstOutcome, type Analyzer } from '../analyzer.ts';
import { memory as collector, type MemoryFacts } from '../collectors/memory.ts';
import { compareNumbers, quantityOf, splitCondition } from '../compare.ts';

export const memory: Analyzer<MemoryFacts> = {
  kind: 'memory',
  collector,
  settings: {},
  title: () => 'Amount of Memory',
  analyze: firstOutcome((when, { total }) => {
    const [sign = '', wanted = ''] = splitCondition(when, 2, '< 8G');
    return compareNumbers(sign, total, quantityOf(wanted));
  }),
};
