/** docs/kurl-compatibility.md, generated from the tables of src/kurl/compatibility and of this folder. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FLAG_ROWS } from './kurl-flags.ts';
import { KURL_FUNCTIONS } from '../../src/kurl/compatibility/functions.ts';
import { BIN_PROGRAMS, KURL_VERBS } from '../../src/kurl/compatibility/programs.ts';
import type { Row } from '../../src/kurl/compatibility/rows.ts';
import { SETTING_ROWS } from '../../src/kurl/compatibility/settings.ts';
import { TASKS } from '../../src/kurl/compatibility/tasks.ts';
import { formatDetails, formatTable, share, type RunReport } from '../../test/real-kurl/report.ts';
import { VARIABLES } from '../../src/kurl/compatibility/variables.ts';

const HEAD = `# Compatibility with kURL

\`npm run docs\` generates this page from the tables in \`src/kurl/compatibility\` and \`scripts/docs\`; change those.

This page lists what add-ons written for kURL can use: **same**, **differs** and how, **absent** and why.
[scripts/lib](../scripts/lib) defines the functions; absent ones print an error and end the hook.

Settings are literal text: kURL's shell expands \`$x\`, backticks and \`$(…)\` in a value; curlew does not.
`;

const MANIFEST_HEAD = `curlew reads Manifests as kURL's own builder does. It also accepts two forms from kURL's documentation that the builder
misreads: \`asset SOURCE\` without a file name (the default is the last part of the path) and \`dockerout OS DOCKERFILE
--build-arg=NAME=VALUE\`. \`curlew lint --info\` reports them.
[manifest.md](manifest.md) describes all directives.
`;

function variablesHead(): string {
  const here = VARIABLES.flatMap(([, all]) => all.map(({ name }) => name));
  const names = new Set([...here, ...SETTING_ROWS.map(({ variable }) => variable)]);
  return `kURL's add-ons read 113 shell variables. This section lists all known variables except those of settings, whether an
add-on reads them or not; the section [Settings](#settings) lists those of settings. Together these are ${names.size} names. A variable that a run
does not set comes from the caller's environment; a variable of a setting that is not set is empty.`;
}

const FLAGS_HEAD = `Flags are arguments of \`install\`, \`join\` and \`upgrade\`, or of the scripts of a bundle: \`./install.sh ha labels=a=b\`. Flags that
are unknown, duplicate or missing a value end the command with one error that lists them all. Flags override the
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
  "If the bundle has kURL's package kurl-bin-utils, its programs are used. Otherwise curlew replaces them.";

const VERBS_HEAD = `These are the verbs of the program \`kurl\` without the package. Verbs that contact a cluster use the kubeconfig in \`KUBECONFIG\`,
otherwise kubeadm's; kubectl creates pods and runs commands in them. A failure never exits with 0, but its status differs from kURL's.`;

const TASKS_HEAD = `These are the tasks of kURL's \`tasks.sh\`, with dashes or underscores. A bundle's \`tasks.sh\` runs any command of curlew; for
other tasks it prints what to do instead. Run the scripts of a bundle by path, not from a pipe: \`sudo ./install.sh airgap\`.`;

/** What `scripts/real-kurl TREE --json scripts/docs/kurl-run.json` found in kURL's own repository. */
function runChapter(): string {
  const report = JSON.parse(readFileSync(join(import.meta.dirname, 'kurl-run.json'), 'utf8')) as RunReport;
  const { imported } = report;
  const shortened = (line: string): string => (line.length > 300 ? `${line.slice(0, 300)}…` : line);
  const details = formatDetails(report.rows, { remarks: false }).map(
    (line) => `- ${shortened(line).replaceAll(/[<*|_]/g, String.raw`\$&`)}`,
  );
  return `## kURL's own add-ons

\`scripts/real-kurl TREE\` runs the unmodified add-ons of a kURL checkout through lint, plan, build and the hooks of an
installation. For *objects*, kURL's own scripts install the same add-on with a separate empty API server, and every object
that only one of the two clusters has is a difference; random values and times do not count. Lint and plan cover all
versions (count in parentheses); the others cover the newest of each. Images, downloads and host packages are small stand-ins. The
cluster is only an API server: workloads count as ready, \`exec\` into pods fails, and operators do nothing.

For replicatedhq/kURL at ${report.commit ?? 'an unknown commit'}, the hooks of ${share(report, 'hooks')} versions run to completion, and
${share(report, 'objects')} create the same objects. \`curlew import kurl\` reads the scripts of all ${imported.works + imported.differs + imported.missing}
versions without running them: ${imported.works} need nothing that differs from kURL, ${imported.differs} work but call something that differs, mostly
migrations between storages, and ${imported.missing} need something that is missing.

${formatTable(report)}

**explained**: kURL's own scripts fail the same way, or the test machine does not have what the add-on needs; **pending**: to be fixed.

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
    chapter('Functions', 'function', KURL_FUNCTIONS),
    chapter('Variables', 'variable', VARIABLES, variablesHead()),
    `## Programs below \`bin/\`\n\n${PROGRAMS_HEAD}\n\n${count(BIN_PROGRAMS)}\n\n${programs}\n`,
    `### Verbs of \`kurl\`\n\n${VERBS_HEAD}\n\n${count(KURL_VERBS)}\n\n${table(['verb', '', 'remark'], KURL_VERBS.map(cells))}\n`,
    `## Tasks\n\n${TASKS_HEAD}\n\n${count(TASKS)}\n\n${table(['task', '', 'remark'], TASKS.map(cells))}\n`,
    `## Settings\n\n${count(SETTING_ROWS)}\n\n${settings}\n`,
    `## Flags\n\n${FLAGS_HEAD}\n\n${count(FLAG_ROWS)}\n\n${flags}\n`,
  ].join('\n');
}
