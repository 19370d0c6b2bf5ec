import { firstOutcome, type Analyzer } from '../analyzer.ts';
import { memory as collector, type MemoryFacts } from '../collectors/memory.ts';
import { compareNumbers, wordsOf } from '../compare.ts';
import { quantityOf } from '../quantity.ts';

export const memory: Analyzer<MemoryFacts> = {
  kind: 'memory',
  collector,
  settings: {},
  title: () => 'Amount of Memory',
  judge: firstOutcome((when, { total }) => {
    const [sign = '', wanted = ''] = wordsOf(when, 2, '< 8G');
    return compareNumbers(sign, total, quantityOf(wanted));
  }),
};
