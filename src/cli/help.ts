/** Help texts of commands, wrapped to 80 columns. */
import { GLOBAL_OPTIONS, type Command, type OptionSpec, type OptionSpecs } from './command.ts';
import { COMMANDS, familyOf } from './commands.ts';
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

function optionRow([name, { type, value = 'VALUE', bare, short, help }]: readonly [string, OptionSpec]): Row {
  const flag = short === undefined ? `    --${name}` : `-${short}, --${name}`;
  return [`  ${flag}${type === 'boolean' ? '' : bare === undefined ? ` ${value}` : `[=${value}]`}`, help];
}

/** Help text of one command. */
export function commandHelp(
  command: Pick<Command<never>, 'name' | 'operands' | 'options' | 'details' | 'examples'>,
): string {
  const all: OptionSpecs = { ...command.options, ...GLOBAL_OPTIONS };
  const specs = Object.entries(all);
  const width = widthOf(specs.map(optionRow));
  const groups = new Map<string, Row[]>();
  for (const [name, spec] of specs) {
    const group = name in GLOBAL_OPTIONS ? 'General options' : (spec.group ?? 'Options');
    groups.set(group, [...(groups.get(group) ?? []), optionRow([name, spec])]);
  }
  const operands = command.operands === '' ? '' : ` ${command.operands}`;
  return [
    `Usage: curlew ${command.name}${operands} [options]`,
    `${COMMANDS.get(command.name)?.summary ?? command.name}.`,
    ...[...groups].map(([group, rows]) => `${group}:\n${table(rows, width)}`),
    ...(command.details === undefined ? [] : [paragraphs(command.details)]),
    ...(command.examples === undefined ? [] : [`Examples:\n${command.examples.map((line) => `  ${line}`).join('\n')}`]),
  ].join('\n\n');
}

/** The help of all commands that begin with a word. */
export function familyHelp(word: string): string {
  const rows = familyOf(word).map(([name, { summary }]) => [`  ${name}`, summary] as const);
  return [
    `Usage: curlew ${word} COMMAND [options]`,
    `Commands:\n${table(rows, widthOf(rows))}`,
    `curlew help ${word} COMMAND describes a command.`,
  ].join('\n\n');
}

/** The general help: one line per command, in groups. */
export function overview(): string {
  const rows = [...COMMANDS].map(([name, { summary, group }]) => ({ group, row: [`  ${name}`, summary] as const }));
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
