/** What a person sees of a run: lines that fit into 80 columns, failures at once, a summary at the end. */
import type { Job, Result } from './schedule.ts';

const SLOWEST = 10;

/** `[ 12/273] ok     3.1 s   1:20 left  test/core/ref.test.ts` */
export function progressLine(
  { name }: Job,
  { failed, seconds }: Result,
  { done, all, left }: { readonly done: number; readonly all: number; readonly left: number | undefined },
): string {
  const width = String(all).length;
  const place = `[${String(done).padStart(width)}/${all}]`;
  const time = `${seconds.toFixed(1)} s`.padStart(8);
  return `${place} ${failed === 0 ? 'ok  ' : 'FAIL'} ${time} ${remaining(left)}  ${name}`;
}

function remaining(left: number | undefined): string {
  if (left === undefined) return ' '.repeat(10);
  return `${minutes(left)} left`.padStart(10);
}

/** `1:20` */
export function minutes(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/** The output of a failed job, followed by the lines that run each failed test alone. */
export function failureText({ command }: Job, { output }: Result): string {
  const options = failedTests(output).map((title) => ` --only ${quoted(title)}`);
  const lines = (options.length === 0 ? [''] : options).map((option) => `  to run it alone: ${command}${option}`);
  return `${output.trimEnd()}\n\n${lines.join('\n')}\n`;
}

/** Titles in what uvu prints: `   FAIL  suite  "title"`. */
export function failedTests(output: string): readonly string[] {
  return [...output.matchAll(/^ *FAIL {2}.*?"(.*)"$/gm)].map(([, title = '']) => title);
}

function quoted(text: string): string {
  return /^[\w-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The files that took longest, one a line, with the processor seconds that are known. */
export function slowestLines(results: ReadonlyMap<string, Pick<Result, 'seconds' | 'cpu'>>): readonly string[] {
  const slowest = [...results].toSorted(([, a], [, b]) => b.seconds - a.seconds).slice(0, SLOWEST);
  return slowest.map(([name, { seconds, cpu }]) => {
    const processor = cpu === undefined ? '' : `${cpu.toFixed(1)} CPU-s`;
    return `${seconds.toFixed(1).padStart(7)} s ${processor.padStart(11)}  ${name}`;
  });
}

/** One line for each reason for which tests could not run. */
export function skippedLines(reasons: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].map(([reason, tests]) => `SKIPPED ${tests} ${tests === 1 ? 'test' : 'tests'}: ${reason}`);
}
