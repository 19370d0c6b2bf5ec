/** Help texts of commands, wrapped to 80 columns. */
import type { Field } from '../core/field.ts';
import { parametersOf } from '../core/request.ts';
import { GLOBAL_OPTIONS, type Command } from './command.ts';
import { COMMANDS, familyOf } from './commands.ts';
import { operandsOf } from './read-arguments.ts';
import { wrap } from './render/columns.ts';

const COLUMNS = 80;
/** The help of longer options is on the next line. */
const MAX_OPTION_WIDTH = 32;

type Row = readonly [left: string, help: string];

function paragraphs(text: string): string {
  return text
    .split(/\n\s*\n/)
    .map((paragraph) => wrap(paragraph, COLUMNS).join('\n'))
    .join('\n\n');
}

function table(rows: readonly Row[], width: number): string {
  const blank = ' '.repeat(width);
  return rows
    .map(([left, help]) => {
      const lines = wrap(help, COLUMNS - width);
      const first =
        left.length + 2 > width ? [left, blank + (lines[0] ?? '')] : [left.padEnd(width) + (lines[0] ?? '')];
      return [...first, ...lines.slice(1).map((line) => blank + line)].join('\n');
    })
    .join('\n');
}

function widthOf(rows: readonly Row[]): number {
  return Math.min(MAX_OPTION_WIDTH, Math.max(...rows.map(([left]) => left.length))) + 2;
}

function optionRow([name, { takes, value, bare, short, help }]: readonly [string, Field]): Row {
  const flag = short === undefined ? `    --${name}` : `-${short}, --${name}`;
  return [`  ${flag}${takes === 'nothing' ? '' : bare === undefined ? ` ${value}` : `[=${value}]`}`, help];
}

/** Help text of one command. */
export function commandHelp(command: Pick<Command, 'of' | 'details' | 'examples'>): string {
  const { name, summary, fields, options } = command.of;
  const specs = parametersOf({ fields, options: { ...options, ...GLOBAL_OPTIONS } }).options;
  const width = widthOf(specs.map(optionRow));
  const groups = new Map<string, Row[]>();
  for (const [option, spec] of specs) {
    const group = option in GLOBAL_OPTIONS ? 'General options' : (spec.group ?? 'Options');
    groups.set(group, [...(groups.get(group) ?? []), optionRow([option, spec])]);
  }
  const operands = operandsOf(command.of);
  return [
    `Usage: curlew ${name}${operands === '' ? '' : ` ${operands}`} [options]`,
    `${summary}.`,
    ...[...groups].map(([group, rows]) => `${group}:\n${table(rows, width)}`),
    ...(command.details === undefined ? [] : [paragraphs(command.details)]),
    `Examples:\n${command.examples.map((line) => `  ${line}`).join('\n')}`,
  ].join('\n\n');
}

/** The help of all commands that begin with a word. */
export function familyHelp(word: string): string {
  const rows = familyOf(word).map(([name, { of }]) => [`  ${name}`, of.summary] as const);
  return [
    `Usage: curlew ${word} COMMAND [options]`,
    `Commands:\n${table(rows, widthOf(rows))}`,
    `curlew help ${word} COMMAND describes a command.`,
  ].join('\n\n');
}

/** The general help: one line per command, in groups. */
export function overview(): string {
  const rows = [...COMMANDS].map(([name, { of, group }]) => ({ group, row: [`  ${name}`, of.summary] as const }));
  const width = widthOf(rows.map(({ row }) => row));
  const groups = [...new Set(rows.map(({ group }) => group))].map((group) => {
    const own = rows.filter((one) => one.group === group).map(({ row }) => row);
    return `${group}:\n${table(own, width)}`;
  });
  const options = Object.keys(GLOBAL_OPTIONS).map((name) => `--${name}`);
  return [
    'Usage: curlew COMMAND [options]\nPacks Kubernetes add-ons, and installs them on machines without internet.',
    groups.join('\n'),
    `Every command takes ${options.join(', ')}. curlew --version shows the version;\n` +
      'curlew help COMMAND describes a command.',
  ].join('\n\n');
}
