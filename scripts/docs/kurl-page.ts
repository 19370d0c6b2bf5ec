/** docs/kurl-compatibility.md from the tables beside this file. */
import { FLAGS } from './kurl-flags.ts';
import { FUNCTIONS } from './kurl-functions.ts';
import type { Row } from './kurl-rows.ts';
import { SETTINGS } from './kurl-settings.ts';
import { VARIABLES } from './kurl-variables.ts';

const HEAD = `# Compatibility with kURL

Made from the tables in \`scripts/docs\` by \`npm run docs\`; change those.

What add-ons written for kURL find here: **same**, **differs** and how, **absent** and why. Functions are defined in
[scripts/lib](../scripts/lib); those that are absent are defined as well, say so and end the hook.

Settings are plain text: \`$x\`, backticks and \`$(…)\` in a value stay as they are, where kURL's shell expands them.
`;

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [row(head), row(head.map(() => '---')), ...lines.map(row)].join('\n');
}

function cells({ name, status, note }: Row): readonly string[] {
  return [`\`${name}\``, status, note];
}

function count(all: readonly Row[]): string {
  const of = (status: Row['status']): string => `${all.filter((row) => row.status === status).length} ${status}`;
  return `${all.length} in all: ${of('same')}, ${of('differs')}, ${of('absent')}.`;
}

type Topics = readonly (readonly [topic: string, rows: readonly Row[]])[];

function chapter(title: string, head: string, topics: Topics): string {
  const parts = topics.map(([topic, all]) => `### ${topic}\n\n${table([head, '', 'remark'], all.map(cells))}`);
  return `## ${title}\n\n${count(topics.flatMap(([, all]) => all))}\n\n${parts.join('\n\n')}\n`;
}

export function kurlPage(): string {
  const settings = table(
    ['setting', 'variable', '', 'remark'],
    SETTINGS.map(({ name, variable, status, note }) => [`\`${name}\``, `\`${variable}\``, status, note]),
  );
  return [
    HEAD,
    chapter('Functions', 'function', FUNCTIONS),
    chapter('Variables', 'variable', VARIABLES),
    'Every setting below has its variable too.\n',
    `## Settings\n\n${count(SETTINGS)}\n\n${settings}\n`,
    `## Flags\n\n${count(FLAGS)}\n\n${table(['flag', '', 'remark'], FLAGS.map(cells))}\n`,
  ].join('\n');
}
