/** Help texts that need no request: the program, its commands, and families of commands; wrapped to the screen. */
import { ownPages } from '../own/scripts.ts';
import { COMMANDS, familyOf, offeredCommands } from './commands.ts';
import { EVERYWHERE } from './names.ts';
import { lastColumnAt, screen, wrap } from './render/columns.ts';

/** The help of longer options is on the next line. */
const MAX_OPTION_WIDTH = 32;

export type Row = readonly [left: string, help: string];

export function paragraphs(text: string): string {
  return text
    .split(/\n\s*\n/)
    .map((paragraph) => wrap(paragraph, screen.columns).join('\n'))
    .join('\n\n');
}

/** Columns before a help that is below its option. */
const BELOW = 10;

export function table(rows: readonly Row[], wanted: number): string {
  const width = lastColumnAt(wanted, BELOW);
  const blank = ' '.repeat(width);
  return rows
    .map(([left, help]) => {
      const lines = wrap(help, screen.columns - width);
      const first =
        left.length + 2 > width ? [left, blank + (lines[0] ?? '')] : [left.padEnd(width) + (lines[0] ?? '')];
      return [...first, ...lines.slice(1).map((line) => blank + line)].join('\n');
    })
    .join('\n');
}

export function widthOf(rows: readonly Row[]): number {
  return Math.min(MAX_OPTION_WIDTH, Math.max(...rows.map(([left]) => left.length))) + 2;
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

/** All commands, on a node those for nodes: a line each, in groups. */
export function commandList(hasPages = ownPages() !== undefined): string {
  const rows = [...offeredCommands(hasPages)].map(([name, { summary, group }]) => ({
    group,
    row: [`  ${name}`, summary] as const,
  }));
  const width = widthOf(rows.map(({ row }) => row));
  return [...new Set(rows.map(({ group }) => group))]
    .map((group) => {
      const own = rows.filter((one) => one.group === group).map(({ row }) => row);
      return `${group}:\n${table(own, width)}`;
    })
    .join('\n');
}

/** The commands of a first hour, in their order. */
const FIRST: readonly string[] = ['new', 'dev', 'publish', 'bundle', 'install', 'status', 'doctor'];
/** The same for the executable for nodes, which comes with a bundle and without pages. */
const FIRST_ON_NODE: readonly string[] = ['install', 'status', 'why', 'logs', 'resume', 'upgrade', 'rollback'];

/** The general help: where to start, and the names of the commands, on a node those for nodes; on one screen. */
export function overview(hasPages = ownPages() !== undefined): string {
  const first = (hasPages ? FIRST : FIRST_ON_NODE).map((name): Row => [`  ${name}`, COMMANDS.get(name)?.summary ?? '']);
  const names = new Map<string, Set<string>>();
  for (const [name, { group }] of offeredCommands(hasPages)) {
    names.set(group, (names.get(group) ?? new Set()).add(name.replace(/ .*/, '')));
  }
  const groups = [...names].map(([group, own]): Row => [`  ${group}`, [...own].join(' ')]);
  const width = widthOf([...first, ...groups]);
  const options = EVERYWHERE.map((name) => `--${name}`);
  return [
    `Usage: curlew COMMAND [options]\n${paragraphs('Packs Kubernetes add-ons, and installs them on machines without internet.')}`,
    `Start here:\n${table(first, width)}`,
    `Commands:\n${table(groups, width)}`,
    paragraphs(
      `Every command takes ${options.join(', ')}. curlew help COMMAND describes a command, curlew help commands lists all${hasPages ? ', curlew help pages what else to read' : ''}.`,
    ),
  ].join('\n\n');
}
