/** docs/kurl-compatibility.md from the tables beside this file. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FLAG_ROWS } from './kurl-flags.ts';
import { FUNCTIONS } from '../../src/kurl/compatibility/functions.ts';
import { BIN_PROGRAMS, KURL_VERBS } from '../../src/kurl/compatibility/programs.ts';
import type { Row } from '../../src/kurl/compatibility/rows.ts';
import { SETTING_ROWS } from '../../src/kurl/compatibility/settings.ts';
import { TASKS } from '../../src/kurl/compatibility/tasks.ts';
import { formatDetails, formatTable, share, type RunReport } from '../../test/real-kurl/report.ts';
import { VARIABLES } from '../../src/kurl/compatibility/variables.ts';

const HEAD = `# Compatibility with kURL

Made from the tables in \`src/kurl/compatibility\` and \`scripts/docs\` by \`npm run docs\`; change those.

What add-ons written for kURL find here: **same**, **differs** and how, **absent** and why. Functions are defined in
[scripts/lib](../scripts/lib); those that are absent are defined as well, say so and end the hook.

Settings are plain text: \`$x\`, backticks and \`$(…)\` in a value stay as they are, where kURL's shell expands them.
`;

const MANIFEST_HEAD = `Manifests are read as kURL's own builder reads them, and as its documentation describes them where the two can be told
apart: \`asset SOURCE\` alone (the file name is the last part of the path) and \`dockerout OS DOCKERFILE
--build-arg=NAME=VALUE\`. kURL's builder takes neither as meant, and \`curlew lint --info\` says so. All else is in
[manifest.md](manifest.md).
`;

function variablesHead(): string {
  const here = VARIABLES.flatMap(([, all]) => all.map(({ name }) => name));
  const names = new Set([...here, ...SETTING_ROWS.map(({ variable }) => variable)]);
  return `kURL's add-ons read 113 variables of their shell. Here stand all that are known of it but those of settings, whether an
add-on reads them or not; each setting of the next chapter has its variable too. Together that is ${names.size} names. What a run
does not set is taken from the environment of whoever called it; variables of settings are not: unset ones are empty.`;
}

const FLAGS_HEAD = `Words behind \`install\`, \`join\` and \`upgrade\`, or the scripts of a bundle: \`./install.sh ha labels=a=b\`. One that is
unknown, lacks its value or stands twice ends the command, and all that is wrong is told at once. Flags are laid over the
spec and its overlay.`;

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

function chapter(title: string, head: string, topics: Topics, about?: string): string {
  const parts = topics.map(([topic, all]) => `### ${topic}\n\n${table([head, '', 'remark'], all.map(cells))}`);
  return `## ${title}\n\n${about === undefined ? '' : `${about}\n\n`}${count(topics.flatMap(([, all]) => all))}\n\n${parts.join('\n\n')}\n`;
}

const PROGRAMS_HEAD =
  "Those of kURL's package kurl-bin-utils count where the bundle has it. Where it has not, this tool stands in for them.";

const VERBS_HEAD = `Verbs of the program \`kurl\`, without the package. Those that ask a cluster take the kubeconfig that \`KUBECONFIG\`
names, else kubeadm's; pods are made, and commands run in them, through kubectl. The status of a failure is never 0; which one it is differs.`;

const TASKS_HEAD = `What \`tasks.sh\` of kURL does, word by word, with dashes or underscores. That of a bundle runs any command of curlew, and
says of the others what to do. No script of a bundle is read from a pipe: \`sudo ./install.sh airgap\`.`;

/** What `scripts/real-kurl TREE --json scripts/docs/kurl-run.json` found in kURL's own repository. */
function runChapter(): string {
  const report = JSON.parse(readFileSync(join(import.meta.dirname, 'kurl-run.json'), 'utf8')) as RunReport;
  const shortened = (line: string): string => (line.length > 300 ? `${line.slice(0, 300)}…` : line);
  const details = formatDetails(report.rows, { remarks: false }).map(
    (line) => `- ${shortened(line).replaceAll(/[<*|_]/g, String.raw`\$&`)}`,
  );
  return `## kURL's own add-ons

\`scripts/real-kurl TREE\` takes the add-ons of a checkout of kURL, as they are, through lint, plan, build and the hooks of an
installation. For *objects* kURL's own scripts install the same add-on before an empty API server of their own, and everything
that is in one cluster and not in the other is a difference; what is random, and moments, do not count. Lint and plan are over all
versions, in parentheses; the others over the newest of each. Images, downloads and host packages are small stand-ins, in a
cluster of an API server alone workloads are taken for ready; \`exec\` into pods and what operators would do is not there.

Of replicatedhq/kURL at ${report.commit ?? 'an unknown commit'}: the hooks of ${share(report, 'hooks')} versions run to their end, and
${share(report, 'objects')} make the same objects.

${formatTable(report)}

**explained**: kURL's own scripts fail the same way, or it needs what is not here; **pending**: to be mended.

${details.join('\n')}
`;
}

export function kurlPage(): string {
  const settings = table(
    ['setting', 'variable', '', 'remark'],
    SETTING_ROWS.map(({ name, variable, status, note }) => [`\`${name}\``, `\`${variable}\``, status, note]),
  );
  const flags = table(
    ['flag', 'fills', '', 'remark'],
    FLAG_ROWS.map(({ name, fills, status, note }) => [`\`${name}\``, fills, status, note]),
  );
  const programs = table(['program', '', 'remark'], BIN_PROGRAMS.map(cells));
  return [
    HEAD,
    runChapter(),
    `## Manifests\n\n${MANIFEST_HEAD}`,
    chapter('Functions', 'function', FUNCTIONS),
    chapter('Variables', 'variable', VARIABLES, variablesHead()),
    `## Programs below \`bin/\`\n\n${PROGRAMS_HEAD}\n\n${count(BIN_PROGRAMS)}\n\n${programs}\n`,
    `### Verbs of \`kurl\`\n\n${VERBS_HEAD}\n\n${count(KURL_VERBS)}\n\n${table(['verb', '', 'remark'], KURL_VERBS.map(cells))}\n`,
    `## Tasks\n\n${TASKS_HEAD}\n\n${count(TASKS)}\n\n${table(['task', '', 'remark'], TASKS.map(cells))}\n`,
    `## Settings\n\n${count(SETTING_ROWS)}\n\n${settings}\n`,
    `## Flags\n\n${FLAGS_HEAD}\n\n${count(FLAG_ROWS)}\n\n${flags}\n`,
  ].join('\n');
}
