/** The reference page of the Manifest, made from the tables that the tool itself works by. */
import { OS_IDS, osRow } from '../../src/core/os.ts';
import { DIRECTIVES } from '../../src/manifest/directives.ts';
import { hookFunction, HOOK_NAMES, HOOKS } from '../../src/manifest/hooks.ts';
import { RULES } from '../../src/manifest/rules.ts';

const INTRODUCTION = `# Manifest and lint reference

An add-on is a folder \`addons/<name>/<version>\` with a file \`Manifest\` and a file \`install.sh\`. The Manifest lists
what has to be fetched for it, one directive a line:

\`\`\`text
image    pause       registry.k8s.io/pause:3.9
asset    tool.tar.gz https://example.com/tool-1.2.tar.gz#sha256=<64 hex digits>
apt      lvm2
yum      lvm2
\`\`\`

Words are separated by blanks or tabs. Blank lines do not count, nor do lines whose first character is \`#\`; a comment
cannot stand behind a directive. There are no quotes, escapes or variables. The last line needs no line end. An empty
Manifest is a valid one. Lines end in LF; the file is UTF-8 without a byte order mark and at most 1 MiB.`;

const CLOSING = `\`shellcheck/SC…\`: what shellcheck finds, when it is installed and not switched off with \`--no-shellcheck\`; its errors
are errors, its warnings are warnings, its lesser levels are left out. install.sh is sourced, so SC1090, SC1091, SC2034,
SC2148 and SC2154 do not apply; a \`.shellcheckrc\` in the repository is honoured.`;

const SETTINGS = `A comment on a line of its own switches rules off for the next line that is neither blank nor a comment; behind
something in a script or in YAML, for that line; \`-file\` means the whole file. What follows \`--\` is the reason:

\`\`\`text
# curlew-lint-ignore image/latest -- the project publishes no other tag
image bcrypt docker.io/epicsoft/bcrypt:latest
# curlew-lint-ignore-file hook/prefix
\`\`\`

\`.curlew-lint.json\` in the root of the repository sets what rules count, \`off\`, \`info\`, \`warning\` or \`error\`, by id or by
group, and where they do not apply; patterns are relative to the root, \`*\` stays within a name, \`**\` does not:

\`\`\`json
{
  "rules": { "asset/no-digest": "error", "production/*": "warning" },
  "ignore": ["addons/old/**", { "files": ["addons/*/1.*"], "rules": ["image/latest"], "reason": "frozen" }]
}
\`\`\`

An unknown rule is reported, with the nearest one, and so is what ignores nothing, but for \`source/not-found\`: a build may make
the file later. Errors for which a build refuses an add-on cannot be ignored.

\`curlew lint --fix\` puts right what is safe and was not ignored: \`manifest/crlf\`, \`manifest/byte-order-mark\`,
\`manifest/inline-comment\` (the comment gets a line of its own), \`manifest/no-final-newline\`, a directive that stands
there twice word for word, and \`install/crlf\` in a script whose every line ends so. It prints each line that it changes,
leaves lines with other errors alone, and keeps every other byte.`;

const YAML_FILES = `Files that end in \`.yaml\` or \`.yml\` are parsed, and every document of Troubleshoot is held against its schema:
HostPreflight, Preflight and SupportBundle, also inside of a Secret or a ConfigMap under the key \`support-bundle-spec\`.
What a template fills in, \`\${NAME}\`, \`$(command)\` or \`{{ … }}\`, counts as anything; lines of nothing but \`{{ … }}\` are left
out. A template that does not parse even so is not judged. Large CustomResourceDefinitions are left out, too.

Images are looked for in the \`image\` of containers and other resources, in \`images\` of kustomizations, and in variables
and settings whose names contain \`IMAGE\`. A reference that a template completes is not judged.`;

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
    table(['directive', 'asks for', 'in the package'], directives),
    '## Operating systems',
    '`archives`: package files; `deps`: only the names, for the operator to install.',
    table(['folder', 'read on', 'filled by'], systems),
    '## Hooks',
    'Functions of install.sh, each optional. The name of the add-on stands in them verbatim, dashes included; the install\n' +
      'function of containerd is `containerd_install`.',
    table(['function', 'called'], hooks),
    [
      'Hooks leave the files of their package as they are, and change copies below `kustomize/`: what differs from the package is',
      'extracted again by the next run, and all hooks run again then. Files that they add beside them stay.',
    ].join('\n'),
    '## Rules',
    '`curlew lint` reports all findings of all add-ons in one run, and ends with status 10 when one of them is an error.\n' +
      'What is only `info` is counted, and shown with `--info`; what is `off` is judged only where it is asked for.\n' +
      'Findings that say the same are shown once, with the number of places, and a rule that warns of more than ten different\n' +
      'things is one line; `--all` shows everything, as `--json` and `--format github` do.',
    table(['rule', 'severity', 'what is wrong'], rules),
    CLOSING,
    '## Settings of lint',
    SETTINGS,
    '## YAML',
    YAML_FILES,
  ].join('\n\n')}\n`;
}
