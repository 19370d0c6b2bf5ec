/** The reference page of the Manifest, generated from the tables that curlew itself uses. */
import { OS_IDS, osRow } from '../../src/core/os.ts';
import { DIRECTIVES } from '../../src/manifest/directives.ts';
import { hookFunction, HOOK_NAMES, HOOKS } from '../../src/manifest/hooks.ts';
import { RULES } from '../../src/manifest/rules.ts';

const INTRODUCTION = `# Manifest and lint reference

An add-on is a folder \`addons/<name>/<version>\` with a file \`Manifest\` and a file \`install.sh\`. The Manifest lists what to
fetch, one directive per line:

\`\`\`text
image    pause       registry.k8s.io/pause:3.9
asset    tool.tar.gz https://example.com/tool-1.2.tar.gz#sha256=<64 hex digits>
apt      lvm2
yum      lvm2
\`\`\`

Spaces or tabs separate fields. curlew ignores blank lines and lines that begin with \`#\`; a comment cannot follow a
directive on its line. There are no quotes, escapes or variables. The last line needs no line end. An empty Manifest is
valid. Lines end in LF; the file is UTF-8 without a byte order mark and at most 1 MiB.`;

const CLOSING = `\`shellcheck/SC…\`: findings of shellcheck, if it is installed and not turned off with \`--no-shellcheck\`. Its errors
are errors, its warnings are warnings, lower levels are omitted. install.sh is sourced, so SC1090, SC1091, SC2034,
SC2148 and SC2154 do not apply. A \`.shellcheckrc\` in the repository is used.`;

const SETTINGS = `A comment on its own line turns rules off for the next line that is neither blank nor a comment. In scripts and YAML, a
comment at the end of a line turns them off for that line. \`curlew-lint-ignore-file\` turns them off for the whole file. The
reason follows \`--\`:

\`\`\`text
# curlew-lint-ignore image/latest -- the project publishes no other tag
image bcrypt docker.io/epicsoft/bcrypt:latest
# curlew-lint-ignore-file hook/prefix
\`\`\`

\`.curlew-lint.json\` in the root of the repository sets the severity of rules, \`off\`, \`info\`, \`warning\` or \`error\`, by id or by
group, and where they do not apply. Patterns are relative to the root; \`*\` matches within a name, \`**\` across folders:

\`\`\`json
{
  "rules": { "asset/no-digest": "error", "production/*": "warning" },
  "ignore": ["addons/old/**", { "files": ["addons/*/1.*"], "rules": ["image/latest"], "reason": "frozen" }]
}
\`\`\`

\`curlew lint\` reports unknown rules, with a suggestion, and unused ignores, except for \`source/not-found\`: a build may create
the file later. Errors for which a build refuses an add-on cannot be ignored.

\`curlew lint --fix\` fixes findings that are safe to fix and not ignored: \`manifest/crlf\`, \`manifest/byte-order-mark\`,
\`manifest/inline-comment\` (the comment moves to a separate line), \`manifest/no-final-newline\`, an exact duplicate
of a directive, and \`install/crlf\` in a script where every line ends in CR LF. It prints each line that it changes,
skips lines with other errors, and keeps every other byte.`;

const YAML_FILES = `\`curlew lint\` parses files that end in \`.yaml\` or \`.yml\`, and validates every Troubleshoot document against its schema:
HostPreflight, Preflight and SupportBundle, also in a Secret or a ConfigMap under the key \`support-bundle-spec\`.
Template expressions, \`\${NAME}\`, \`$(command)\` or \`{{ … }}\`, match any value; lines with only \`{{ … }}\` are
ignored. curlew does not check templates that still do not parse, nor large CustomResourceDefinitions.

Lint finds images in the \`image\` of containers and other resources, in \`images\` of kustomizations, and in variables
and settings whose names contain \`IMAGE\`. It does not check references that a template completes.`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

export function manifestPage(): string {
  const directives = [...DIRECTIVES.values()].map(({ usage, about, yields }) => [`\`${usage}\``, about, yields]);
  const systems = OS_IDS.map((id) => {
    const { title, keywords } = osRow(id);
    const reached = Object.entries(keywords).map(([keyword, output]) => `\`${keyword}\` (${output})`);
    return [`\`${id}\``, title, reached.join(', ')];
  });
  const hooks = HOOK_NAMES.map((hook) => [`\`${hookFunction('<name>', hook)}\``, HOOKS[hook].about]);
  const rules = Object.entries(RULES).map(([id, { severity, about }]) => [`\`${id}\``, severity, about]);
  return `${[
    '<!-- Made by `npm run docs` from the tables in src; changes belong there. -->',
    INTRODUCTION,
    '## Directives',
    table(['directive', 'adds', 'in the package'], directives),
    '## Operating systems',
    '`archives` means package files; `deps` means only their names: the operator installs these packages.',
    table(['folder', 'read on', 'filled by'], systems),
    '## Hooks',
    'Hooks are optional functions of install.sh. Their names contain the name of the add-on verbatim, with dashes. One name is\n' +
      'irregular: the install function of containerd is `containerd_install`.',
    table(['function', 'called'], hooks),
    [
      'Hooks must not modify the files of their package, only copies below `kustomize/`. If a file was modified, the next run',
      'extracts it again and runs all hooks again. Files that hooks add stay.',
    ].join('\n'),
    '## Rules',
    '`curlew lint` reports all findings of all add-ons in one run, and exits with status 10 if one of them is an error.\n' +
      'It counts `info` findings, and shows them with `--info`; rules that are `off` run only if they are turned on.\n' +
      'Identical findings are shown once, with the number of places. A rule with more than ten different warnings\n' +
      'takes one line. `--all`, `--json` and `--format github` show everything.',
    table(['rule', 'severity', 'what is wrong'], rules),
    CLOSING,
    '## Settings of lint',
    SETTINGS,
    '## YAML',
    YAML_FILES,
  ].join('\n\n')}\n`;
}
