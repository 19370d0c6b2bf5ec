/**
 * Writes the man pages: curlew.1, one of each command, and one of each family such as `curlew fleet`, from the same declarations as `--help`.
 * usage: tsx scripts/docs/man-pages.ts FOLDER
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from '../../src/cli/command.ts';
import { GLOBAL_OPTIONS } from '../../src/cli/command.ts';
import { COMMANDS, familyOf } from '../../src/cli/commands.ts';
import { operandsOf } from '../../src/cli/read-arguments.ts';
import type { Field } from '../../src/core/field.ts';
import { parametersOf } from '../../src/core/request.ts';
import { toolVersion } from '../../src/own/version.ts';

/** The pages by file name, such as `curlew-channel-plan.1`. */
export async function manPages(): Promise<ReadonlyMap<string, string>> {
  const pages = new Map([['curlew.1', mainPage()]]);
  for (const { load } of COMMANDS.values()) {
    const command = await load();
    pages.set(`${pageName(command.of.name)}.1`, commandPage(command));
  }
  for (const word of familyWords()) pages.set(`${pageName(word)}.1`, familyPage(word));
  return pages;
}

/** First words of commands of two words that are not commands themselves. */
function familyWords(): ReadonlySet<string> {
  const firsts = [...COMMANDS.keys()].flatMap((name) => (name.includes(' ') ? name.slice(0, name.indexOf(' ')) : []));
  return new Set(firsts.filter((word) => !COMMANDS.has(word)));
}

function pageName(command: string): string {
  return `curlew-${command.replaceAll(' ', '-')}`;
}

/** Text of roff: no character of it is a command, and hyphens stay hyphens. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('…', '\\&...').replace(/^[.']/gm, '\\&$&');
}

function heading(name: string, summary: string): string {
  const title = `.TH "${escaped(name.toUpperCase())}" 1 "" "curlew ${escaped(toolVersion())}" "curlew"`;
  return `${title}\n.SH NAME\n${escaped(name)} \\- ${escaped(summary)}`;
}

function item(left: string, help: string): string {
  return `.TP\n\\fB${escaped(left)}\\fR\n${escaped(help)}`;
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`.SH ${title.toUpperCase()}`, ...lines];
}

function optionItem([name, { takes, value, bare, short, help }]: readonly [string, Field]): string {
  const flag = short === undefined ? `--${name}` : `-${short}, --${name}`;
  return item(`${flag}${takes === 'nothing' ? '' : bare === undefined ? ` ${value}` : `[=${value}]`}`, help);
}

function commandPage({ of, details, examples }: Command): string {
  const summary = COMMANDS.get(of.name)?.summary ?? '';
  const { operands, options } = parametersOf({ ...of, options: { ...of.options, ...GLOBAL_OPTIONS } });
  const paragraphs = (details ?? '').split(/\n\s*\n/).map((text) => text.replaceAll(/\s+/g, ' ').trim());
  const groups = [...new Set(options.map(([, { group }]) => group ?? 'Options'))];
  return [
    heading(pageName(of.name), summary),
    ...section('Synopsis', [`\\fBcurlew ${escaped(of.name)}\\fR ${escaped(`${operandsOf(of)} [options]`.trim())}`]),
    ...section(
      'Description',
      [`${summary}.`, ...paragraphs].filter((text) => text !== '').map((text) => `.PP\n${escaped(text)}`),
    ),
    ...section(
      'Operands',
      operands.map(([, { value, help }]) => item(value, help)),
    ),
    ...groups.flatMap((group) =>
      section(group, options.filter(([, spec]) => (spec.group ?? 'Options') === group).map(optionItem)),
    ),
    ...section('Examples', [`.nf\n${examples.map(escaped).join('\n')}\n.fi`]),
    ...section('See also', [reference('curlew')]),
    '',
  ].join('\n');
}

function familyPage(word: string): string {
  const rows = familyOf(word);
  return [
    heading(pageName(word), `the commands of curlew ${word}`),
    ...section('Synopsis', [`\\fBcurlew ${escaped(word)}\\fR COMMAND [options]`]),
    ...section(
      'Commands',
      rows.map(([name, { summary }]) => item(name, summary)),
    ),
    ...section('See also', [['curlew', ...rows.map(([name]) => pageName(name))].map(reference).join(',\n')]),
    '',
  ].join('\n');
}

/** A page in `See also`. */
function reference(page: string): string {
  return `\\fB${escaped(page)}\\fR(1)`;
}

function mainPage(): string {
  const groups = [...new Set([...COMMANDS.values()].map(({ group }) => group))];
  return [
    heading('curlew', 'pack Kubernetes add-ons, and install them on machines without internet'),
    ...section('Synopsis', ['\\fBcurlew\\fR COMMAND [options]']),
    ...groups.flatMap((group) =>
      section(
        group,
        [...COMMANDS].filter(([, row]) => row.group === group).map(([name, { summary }]) => item(name, summary)),
      ),
    ),
    ...section('Options of every command', Object.entries<Field>(GLOBAL_OPTIONS).map(optionItem)),
    ...section('See also', [[...COMMANDS.keys()].map((name) => reference(pageName(name))).join(',\n')]),
    '',
  ].join('\n');
}

const [, script, folder] = process.argv;
if (script === import.meta.filename && folder !== undefined) {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of await manPages()) await writeFile(join(folder, name), text);
}
