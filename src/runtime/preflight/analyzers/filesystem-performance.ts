import { firstOutcome, AnalyzerProblem, resultOf, type Analyzer, type AnalyzerResult } from '../analyzer.ts';
import {
  filesystemPerformance as collector,
  PERCENTILES,
  type FilesystemFacts,
} from '../collectors/filesystem-performance.ts';
import { compareNumbers, splitCondition } from '../compare.ts';
import { formatDuration, parseDuration } from '../go-notation.ts';
import type { AnalyzerSpec } from '../spec.ts';
import { messageOf } from '../message.ts';

const NOT_COLLECTED = 'fileNotCollected';
const analyze = firstOutcome(holds);

export const filesystemPerformance: Analyzer<FilesystemFacts> = {
  kind: 'filesystemPerformance',
  collector,
  settings: {},
  title: () => 'Filesystem Performance',
  analyze: (facts, spec): readonly AnalyzerResult[] =>
    analyze(facts, spec).map((one) => ({ ...one, message: messageOf(one.message, durations(facts)) })),
  withoutFacts: ({ outcomes: [first] }: AnalyzerSpec): readonly AnalyzerResult[] | undefined =>
    first?.when === NOT_COLLECTED ? [resultOf(first)] : undefined,
};

/** `p99 < 10ms`, `average >= 1s`. */
function holds(when: string, facts: FilesystemFacts): boolean {
  if (when === NOT_COLLECTED) return false;
  const [subject = '', sign = '', wanted = ''] = splitCondition(when, 3, 'p99 < 10ms');
  const duration = parseDuration(wanted);
  if (duration === undefined) throw new AnalyzerProblem(`${JSON.stringify(wanted)} is not a duration such as 10ms`);
  const name = subject.toLowerCase();
  if (!['min', 'max', 'average'].includes(name) && !Object.hasOwn(PERCENTILES, name)) {
    throw new AnalyzerProblem(`${JSON.stringify(subject)} is not one of min, max, average, p1 … p9999`);
  }
  return compareNumbers(sign, facts[name] ?? 0, duration);
}

/** For messages: `{{ .P99 }}`, `{{ .Average }}`, and all of them as `{{ .String }}`. */
function durations(facts: FilesystemFacts): Readonly<Record<string, string>> {
  const rows = ['min', 'max', 'average', ...Object.keys(PERCENTILES)].map(
    (name) => [`${name.charAt(0).toUpperCase()}${name.slice(1)}`, formatDuration(facts[name] ?? 0)] as const,
  );
  const table = rows.map(([name, duration]) => `${name.toLowerCase().padStart(8)}: ${duration}`).join('\n');
  return { ...Object.fromEntries(rows), String: `\n${table}` };
}
