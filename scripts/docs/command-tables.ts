/** The reference of all commands in docs/cli.md, generated from the declarations of their requests. */
import { GLOBAL_OPTIONS } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { REQUESTS } from '../../src/cli/requests.ts';
import { operandsOf } from '../../src/cli/read-arguments.ts';
import type { Field } from '../../src/core/field.ts';
import { parametersOf, type Request } from '../../src/core/request.ts';

const BEGIN = '<!-- commands: made by npm run docs -->';
const END = '<!-- end of the commands -->';

type Parameter = readonly [name: string, field: Field];
type Groups = ReadonlyMap<string, ReadonlyMap<string, Field>>;

/** Text of a cell: the bars of `host|container` would end it. */
function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`);
}

function optionText([name, { takes, value, bare, short }]: Parameter): string {
  const flag = short === undefined ? `--${name}` : `-${short}, --${name}`;
  if (takes === 'nothing') return flag;
  return bare === undefined ? `${flag} ${value}` : `${flag}[=${value}]`;
}

function table(rows: readonly (readonly [what: string, help: string])[]): string {
  const lines = rows.map(([what, help]) => `| \`${cell(what)}\` | ${cell(help)} |`);
  return ['| | |', '| --- | --- |', ...lines].join('\n');
}

/** Options that several commands have under the same headline, with the same meaning. */
function sharedGroups(): Groups {
  const groups = new Map<string, Map<string, Field>>();
  for (const [name, field] of REQUESTS.flatMap((of) => parametersOf(of).options)) {
    if (field.group === undefined) continue;
    const group = groups.get(field.group) ?? new Map<string, Field>();
    groups.set(field.group, group.set(name, group.get(name) ?? field));
  }
  return groups;
}

function commandText(of: Request, groups: Groups): string {
  const { operands, options } = parametersOf(of);
  const isShared = ([name, { group = '', help }]: Parameter): boolean => groups.get(group)?.get(name)?.help === help;
  const own = options.filter((option) => !isShared(option));
  const rows = [
    ...operands.map(([, { value, takes, help }]) => [takes === 'many' ? `${value}…` : value, help] as const),
    ...own.map((option) => [optionText(option), option[1].help] as const),
  ];
  const shared = [...groups.keys()].flatMap((group) => {
    const names = options.filter((option) => isShared(option) && option[1].group === group).map(([name]) => name);
    return names.length === 0 ? [] : [`${group}: ${names.map((name) => `\`--${name}\``).join(', ')}.`];
  });
  const words = ['curlew', of.name, operandsOf(of), '[options]'].filter((word) => word !== '');
  return [
    `### curlew ${of.name}`,
    `${COMMANDS.get(of.name)?.summary}: \`${words.join(' ')}\``,
    ...(rows.length === 0 ? [] : [table(rows)]),
    ...(shared.length === 0 ? [] : [shared.join('\n')]),
  ].join('\n\n');
}

/** The page with the generated part made again. */
export function withCommands(page: string): string {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`docs/cli.md has no ${BEGIN} … ${END}`);
  const groups = sharedGroups();
  const common = [...groups].map(([group, options]) => [group, [...options]] as const);
  const parts = [
    ...REQUESTS.map((of) => commandText(of, groups)),
    ...[...common, ['Options of every command', Object.entries(GLOBAL_OPTIONS)] as const].map(
      ([group, options]) => `### ${group}\n\n${table(options.map((one) => [optionText(one), one[1].help] as const))}`,
    ),
  ];
  return `${before}${BEGIN}\n\n${parts.join('\n\n')}\n\n${END}${after}`;
}
