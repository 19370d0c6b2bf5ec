import { firstOutcome, AnalyzerProblem, type Analyzer } from '../analyzer.ts';
import { diskUsage as collector, type DiskFacts } from '../collectors/disk-usage.ts';
import { compareNumbers, quantityOf, splitCondition } from '../compare.ts';

export const diskUsage: Analyzer<DiskFacts> = {
  kind: 'diskUsage',
  collector,
  settings: {},
  title: (name) => `Disk Usage ${name}`,
  analyze: firstOutcome(holds),
};

/** `total < 30Gi`, `used > 1Gi`, `available < 10Gi`, `used/total > 80%`, `available/total < 0.2`. */
function holds(when: string, { totalBytes, usedBytes }: DiskFacts): boolean {
  const [subject = '', sign = '', wanted = ''] = splitCondition(when, 3, 'total < 30Gi');
  const availableBytes = totalBytes - usedBytes;
  switch (subject.toLowerCase()) {
    case 'total':
      return compareNumbers(sign, totalBytes, quantityOf(wanted));
    case 'used':
      return compareNumbers(sign, usedBytes, quantityOf(wanted));
    case 'available':
      return compareNumbers(sign, availableBytes, quantityOf(wanted));
    case 'used/total':
      return compareNumbers(sign, usedBytes / totalBytes, shareOf(wanted));
    case 'available/total':
      return compareNumbers(sign, availableBytes / totalBytes, shareOf(wanted));
    default:
      throw new AnalyzerProblem(
        `${JSON.stringify(subject)} is not one of total, used, available, used/total, available/total`,
      );
  }
}

/** `80%` or `0.8`. */
function shareOf(text: string): number {
  const [, number, percent] = /^([+-]?(?:\d+\.?\d*|\.\d+))(%?)$/.exec(text) ?? [];
  if (number === undefined) throw new AnalyzerProblem(`${JSON.stringify(text)} is not a share such as 80%`);
  return percent === '%' ? Number(number) / 100 : Number(number);
}
