/** Measurements as Markdown: tables, and the targets with whether they were met. */
import type { Spread } from './measure.ts';

export interface Target {
  readonly name: string;
  /** What must hold, such as `≤ 0.9`. */
  readonly wanted: string;
  readonly measured: string;
  readonly met: boolean;
}

export interface Section {
  readonly title: string;
  readonly about: string;
  /** First row: the heads. */
  readonly table: readonly (readonly string[])[];
  readonly targets: readonly Target[];
}

/** Four figures at most: `0.53`, `12.4`, `246`. */
export function figure(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (value < 1) return value.toFixed(2);
  return value < 100 ? value.toFixed(1) : value.toFixed(0);
}

/** The median with the least and the most: `1.8 (1.7–2.1)`. */
export function range({ median, least, most }: Spread): string {
  return least === most ? figure(median) : `${figure(median)} (${figure(least)}–${figure(most)})`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function markdownTable([heads = [], ...rows]: readonly (readonly string[])[]): string {
  return [row(heads), row(heads.map(() => '---')), ...rows.map(row)].join('\n');
}

export function markdownSection({ title, about, table, targets }: Section): string {
  const wanted = targets.map(({ name, wanted: limit, measured, met }) => [
    name,
    limit,
    measured,
    met ? 'met' : 'MISSED',
  ]);
  const parts = [`## ${title}`, about, markdownTable(table)];
  if (wanted.length > 0) parts.push(markdownTable([['target', 'wanted', 'measured', ''], ...wanted]));
  return parts.join('\n\n');
}
