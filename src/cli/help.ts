/** Help on one topic: a command, a page, or an error code. */
import { readdirSync, readFileSync } from 'node:fs';
import { CurlewError, ERRORS, isErrorCode } from '../core/errors.ts';
import type { Field } from '../core/field.ts';
import { nearest } from '../core/nearest.ts';
import { parametersOf } from '../core/request.ts';
import { ownPages } from '../own/scripts.ts';
import { GLOBAL_OPTIONS, type Command } from './command.ts';
import { commandOf, COMMANDS, familyOf, offeredCommands, splitFirst } from './commands.ts';
import { commandList, familyHelp, overview, paragraphs, table, widthOf, type Row } from './overview.ts';
import { operandsOf } from './read-arguments.ts';

function optionRow([name, { takes, value, bare, short, help }]: readonly [string, Field]): Row {
  const flag = short === undefined ? `    --${name}` : `-${short}, --${name}`;
  return [`  ${flag}${takes === 'nothing' ? '' : bare === undefined ? ` ${value}` : `[=${value}]`}`, help];
}

/** Help text of one command. */
export function commandHelp(command: Pick<Command, 'of' | 'details' | 'examples'>): string {
  const { name, fields, options } = command.of;
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
    `${COMMANDS.get(name)?.summary}.`,
    ...[...groups].map(([group, rows]) => `${group}:\n${table(rows, width)}`),
    ...(command.details === undefined ? [] : [paragraphs(command.details)]),
    `Examples:\n${command.examples.map((line) => `  ${line}`).join('\n')}`,
  ].join('\n\n');
}

/** The meaning of an error code; undefined for any other word. */
function codeHelp(word: string): string | undefined {
  const code = word.toUpperCase();
  if (!isErrorCode(code)) return undefined;
  const { status, cause, cure } = ERRORS[code];
  return paragraphs(`${code}: exit status ${status}\n\n${cause}\n\n${cure}`);
}

/** Help on a command, on all that begin with a word, a page, an error code, or the program. Throws `USAGE` for anything else. */
export async function helpAbout(topic: readonly string[]): Promise<string> {
  if (topic.length === 0) return overview();
  const {
    name,
    args: [extra],
  } = splitFirst(topic.flatMap((words) => words.split(' ')));
  if (extra !== undefined) {
    const hint = 'usage: curlew help [COMMAND|PAGE|CODE]';
    throw new CurlewError('USAGE', `curlew help: unexpected argument "${extra}"`, { hint });
  }
  if (name === 'commands') return commandList();
  if (name === 'pages') return pageList();
  if (familyOf(name).length > 0) return familyHelp(name);
  const file = name.replace(/^(?:\.\/)?docs\//, '');
  const page = COMMANDS.has(name) ? undefined : pages().find((one) => one === name || `${one}.md` === file);
  // Pages are before codes: the page `usage` is listed by that name, and the code USAGE in upper case.
  if (page !== undefined) return pageText(page).trimEnd();
  const code = codeHelp(name);
  if (code !== undefined) return code;
  // Other words than codes are not spelled like one.
  const codes = /^[A-Z\d]+$|_/.test(name) ? Object.keys(ERRORS) : [];
  const near = COMMANDS.has(name)
    ? undefined
    : nearest(name, [...offeredCommands().keys(), ...pages(), ...codes], { isAnyWord: true });
  if (near !== undefined && !COMMANDS.has(near)) {
    throw new CurlewError('USAGE', `unknown command or page "${name}"`, { hint: `did you mean curlew help ${near}?` });
  }
  return commandHelp(await commandOf(name, 'curlew help'));
}

/** The words that may follow `curlew help` and the words after it. */
export function topics([first]: readonly string[]): readonly string[] {
  const names = [...offeredCommands().keys(), 'commands', 'pages', ...pages()];
  if (first === undefined) return [...new Set(names.map((name) => name.replace(/ .*/, '')))];
  return familyOf(first).map(([name]) => name.slice(first.length + 1));
}

/** Names of the pages that come with curlew. */
function pages(): readonly string[] {
  const folder = ownPages();
  if (folder === undefined) return [];
  // The README lists the others.
  const names = readdirSync(folder).filter((file) => file.endsWith('.md') && file !== 'README.md');
  return names.map((file) => file.slice(0, -'.md'.length));
}

function pageText(page: string): string {
  return readFileSync(`${ownPages()}/${page}.md`, 'utf8');
}

function pageList(): string {
  const rows = pages().map((page): Row => [`  ${page}`, /^# (.*)/m.exec(pageText(page))?.[1] ?? '']);
  if (rows.length === 0) return 'The executable for nodes has no pages; the npm package does.';
  return `Pages:\n${table(rows, widthOf(rows))}\n\ncurlew help PAGE shows a page; write PAGE.md if a command has the same name.`;
}
