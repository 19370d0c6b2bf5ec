/**
 * The rules for add-ons: the id is the code of the finding, the severity is the default, the text is for the reference page.
 * Findings can be created only for rules of this table.
 */
import type { Diagnostic, Place } from '../core/diagnostic.ts';

export type RuleSeverity = Diagnostic['severity'] | 'off';

interface Rule {
  /** Default severity; a configuration file can change it. `off`: checked only if a configuration enables it. */
  readonly severity: RuleSeverity;
  /** The problem, for the reference page. */
  readonly about: string;
}

const rule =
  (severity: RuleSeverity) =>
  (about: string): Rule => ({ severity, about });
const [error, warning, info, off] = [rule('error'), rule('warning'), rule('info'), rule('off')];

export const RULES = {
  'manifest/missing': error('The add-on has no Manifest. A Manifest without directives is an empty file.'),
  'manifest/too-large': error('The Manifest is larger than 1 MiB; it is not read.'),
  'manifest/too-many': error('The Manifest has more than 1,000 errors; the rest is not read.'),
  'manifest/byte-order-mark': error('The file begins with a byte order mark.'),
  'manifest/encoding': error('A line is not UTF-8 text.'),
  'manifest/control-character': error('A line contains a control character, such as NUL.'),
  'manifest/crlf': error('A line ends in CR LF; the CR would be part of the last word.'),
  'manifest/unknown-directive': error('The first word of a line is not a directive.'),
  'manifest/missing-column': error('A directive has too few words.'),
  'manifest/extra-column': error('A directive has too many words.'),
  'manifest/inline-comment': error('A comment follows a directive; it needs a separate line.'),
  'manifest/no-final-newline': info(
    'The last line does not end with a newline. curlew reads it; kURL drops it when it reads the Manifest on a node.',
  ),
  'image/id': error('An image id is not a valid file name.'),
  'image/reference': error('An image reference does not parse.'),
  'image/duplicate-id': error('Two image lines have the same id; one would overwrite the other.'),
  'image/duplicate-image': warning('An image is listed under two ids.'),
  'image/untagged': warning('An image has neither tag nor digest, which means the tag `latest`.'),
  'image/latest': warning('An image is not pinned: its tag is `latest`.'),
  'image/floating': warning('An image is not pinned: its tag is a word such as `main`, `stable` or `nightly`.'),
  'image/not-listed': warning(
    'An image in the YAML of the add-on (pod specs, resources with an `image` field, `images` of a kustomization) is ' +
      'missing from the Manifest: without internet it cannot be pulled.',
  ),
  'image/not-listed-value': info(
    'The value of an `…IMAGE…` variable or setting is an image that is missing from the Manifest.',
  ),
  'image/unused': info('An image of the Manifest is named in no other file of the add-on.'),
  'image/pull-always': warning("A container's image is pulled at each start, which fails without internet."),
  'asset/file-name': error('The name of an asset is not a valid file name.'),
  'asset/source': error('The source of an asset is neither a usable URL nor a usable path.'),
  'asset/credentials': error('The URL of an asset contains a user name or a password.'),
  'asset/digest': error('The fragment of a URL is not `#sha256=` with 64 hex digits.'),
  'asset/no-digest': info(
    'An asset from the web has no `#sha256=…`: the build packs whatever the address serves at that time.',
  ),
  'asset/plain-http': warning('An asset is fetched over plain http from another host.'),
  'asset/absolute-path': warning('A source is an absolute path, which other machines do not have.'),
  'asset/one-word': info("An asset has no file name, which kURL's documentation allows but its builder does not."),
  'asset/duplicate-name': error('Two assets have the same name; one would overwrite the other.'),
  'asset/packed-twice': warning(
    'The file of an asset is in the package twice: as another asset, or because it is in the folder of the add-on, whose files are all packed.',
  ),
  'source/not-found': warning('A local file named by a directive does not exist (yet).'),
  'source/outside': warning(
    'A local file is outside the repository, or leads there through a symbolic link: builds refuse it by default.',
  ),
  'packages/name': error('The name of a host package contains characters that are not allowed in package names.'),
  'packages/duplicate': warning('The same directive names a host package twice.'),
  'dockerout/destination': error('The destination is not a folder of a known operating system.'),
  'dockerout/dockerfile': error('The path of the Dockerfile is absolute or leaves the repository.'),
  'dockerout/version': error('The version contains characters that are not allowed in versions.'),
  'dockerout/build-arg': info("A build argument is named, which kURL's documentation allows but its builder does not."),
  'dockerout/duplicate': warning('Two builds write into the same folder; files with the same name are overwritten.'),
  'addon/name': error('The folder name of an add-on is not a valid name.'),
  'addon/version': error('The folder name of a version is not a valid version.'),
  'addon/version-reserved': warning(
    'A version is named `latest` or `1.2.x`, which have another meaning in an installer spec.',
  ),
  'addon/same-package': error('Two add-ons would become packages with the same file name.'),
  'addon/placeholder': warning(
    'A `__placeholder__` of the template is not filled in, and nothing fills it in on a node.',
  ),
  'addon/not-regular': error('A file is a symbolic link, a socket, a pipe or a device.'),
  'addon/reserved-name': error('A file has a name that the builder uses for its output.'),
  'addon/own-package': error('A package or bundle of curlew is inside the folder of an add-on.'),
  'addon/path': error('The path of a file cannot be stored in a package.'),
  'addon/too-many-files': error('The add-on has more than 100,000 files, or more than 1 TiB in total.'),
  'addon/empty-folder': warning('A folder has no files: packages contain only files.'),
  'addon/categories': error('categories.json is not valid.'),
  'addon/schema': error('schema.json is not a JSON Schema object.'),
  'addon/schema-invalid': warning('schema.json is not a valid JSON Schema (draft 7), so it cannot validate settings.'),
  'install/missing': error('The add-on has no install.sh.'),
  'install/too-large': error('install.sh is larger than 4 MiB; it is not checked.'),
  'install/byte-order-mark': error(
    'install.sh begins with a byte order mark, which bash reads as a part of the first word.',
  ),
  'install/crlf': error('install.sh has CR LF line endings, which bash does not understand.'),
  'install/encoding': error('install.sh is not UTF-8 text or contains NUL.'),
  'install/syntax': error('`bash -n` finds a syntax error.'),
  'hook/none': warning('install.sh defines no lifecycle hook at all.'),
  'hook/no-install': error('install.sh defines lifecycle hooks, but not the function that installs.'),
  'hook/misspelt': warning('A function is one letter away from a hook that is not defined.'),
  'hook/prefix': warning('The name of a function does not begin with that of the add-on; all add-ons share one shell.'),
  'hook/no-resource': warning(
    'A function such as `insert_resources` names a file that the add-on does not have and the script does not make.',
  ),
  'hook/other-version': warning(
    'install.sh reads the folder of another version of the add-on and never its own, as in a copy of that version.',
  ),
  'hook/duplicate': warning('A hook is defined twice; the last definition applies.'),
  'kustomization/missing-file': warning(
    'A kustomization lists a file or folder that the add-on does not have, and that neither its Manifest nor its scripts name: ' +
      '`kubectl apply -k` fails.',
  ),
  'yaml/syntax': error('A YAML file does not parse.'),
  'yaml/template': info(
    'A YAML file with `${…}` or `{{ … }}` does not parse in this form, and is not checked until it is rendered.',
  ),
  'yaml/backtick': warning(
    'A template that install.sh renders contains a backtick, which begins a command that runs on the node.',
  ),
  'yaml/variable': warning(
    'A template that install.sh renders has a variable of the add-on that is neither a setting in schema.json nor set by install.sh.',
  ),
  'yaml/encoding': error('A YAML file is not UTF-8 text or contains a control character.'),
  'yaml/duplicate-key': warning('A key is repeated in a map.'),
  'yaml/too-large': info(
    'A file is not checked: more than 8 MiB, or a document of more than 1 MiB, 20,000 lines, 30,000 parts or 200 levels.',
  ),
  'preflight/schema': error('A HostPreflight does not match its schema.'),
  'preflight/unknown': error('A HostPreflight names a collector, an analyzer or a setting that does not exist.'),
  'troubleshoot/schema': warning('A SupportBundle or Preflight does not match its schema.'),
  'troubleshoot/unknown': warning(
    'A SupportBundle or Preflight names a collector, an analyzer or a setting that does not exist.',
  ),
  'troubleshoot/label': warning(
    'A Secret or ConfigMap with a support-bundle-spec does not have the label by which it is found.',
  ),
  'troubleshoot/no-spec': warning('A troubleshoot.yaml contains no SupportBundle.'),
  'production/host-preflight': off(
    'The newest version has no host-preflight.yaml, which rejects unsuitable machines before anything is installed.',
  ),
  'production/troubleshoot': off(
    'The newest version has no troubleshoot.yaml, which defines the content of a support bundle.',
  ),
  'production/schema': off('The newest version has no schema.json that describes its settings.'),
  'production/categories': off('The add-on has no categories.json next to its versions.'),
  'production/template': off('The add-on has no template/generate.sh that creates the next version from upstream.'),
  'production/test': off('The add-on has no test spec in template/testgrid.'),
  'production/uninstall': off('The newest version does not define the uninstall hook.'),
  'lint/config': error('The configuration of lint is not valid, and is not used.'),
  'lint/unknown-rule': warning('A configuration or a comment names a rule that does not exist.'),
  'lint/unused-ignore': warning('A configuration or a comment ignores a rule that has no findings.'),
} satisfies Readonly<Record<string, Rule>>;

export type RuleId = keyof typeof RULES;

export const RULE_IDS: readonly RuleId[] = Object.keys(RULES).filter((id): id is RuleId => Object.hasOwn(RULES, id));

/** Creates a finding of a rule. If the rule is off, it is `info` until the configuration is applied. */
export function finding(code: RuleId, place: Place, message: string, hint?: string): Diagnostic {
  const severity: RuleSeverity = RULES[code].severity;
  return { code, severity: severity === 'off' ? 'info' : severity, message, place, hint };
}

/** Receives findings, whole or by the arguments of {@link finding}. */
export type Find = (...found: [Diagnostic] | Parameters<typeof finding>) => void;

export function finder(add: (diagnostic: Diagnostic) => unknown): Find {
  return (...found) => void add(found.length === 1 ? found[0] : finding(...found));
}

const SHOWN = 60;

/** A word from a file, quoted and shortened for a message. */
export function quoted(text: string): string {
  return `"${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}"`;
}
