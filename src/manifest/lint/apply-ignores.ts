/** Applies configurations and ignore comments to findings, and reports unused ones. Pure. */
import type { Diagnostic } from '../../core/diagnostic.ts';
import { finding, RULES, type RuleSeverity } from '../rules.ts';
import type { IgnoreComment } from './ignore-comments.ts';
import { type ConfigIgnore, isRule, type LintConfig, unknownRule } from './lint-config.ts';

/** A file with findings: its path in the repository, and the configuration that applies. */
export interface FileContext {
  /** Relative to the root of the repository, with `/`. */
  readonly path: string;
  readonly config: LintConfig | undefined;
}

export interface IgnoreInput {
  readonly diagnostics: readonly Diagnostic[];
  /** Errors for which a build refuses the add-on, even if they are ignored. */
  readonly binding: ReadonlySet<Diagnostic>;
  readonly comments: readonly IgnoreComment[];
  readonly configs: readonly LintConfig[];
  readonly contextOf: (file: string) => FileContext;
  /** All add-ons were checked, so an ignore in a configuration without findings is unused. */
  readonly complete: boolean;
  /** Whether shellcheck ran; if not, ignores of its findings are not reported as unused. */
  readonly shellcheck: boolean;
}

/** The remaining findings with their configured severities, and findings about unused ignores. */
export function applyIgnores(input: IgnoreInput): readonly Diagnostic[] {
  const used = new Set<IgnoreComment | ConfigIgnore>();
  const refused = new Map<string, Diagnostic>();
  const byFile = new Map<string, IgnoreComment[]>();
  for (const comment of input.comments) {
    const same = byFile.get(comment.place.file);
    if (same === undefined) byFile.set(comment.place.file, [comment]);
    else same.push(comment);
  }
  const configuredFor = ignoresByFile(input);
  const remaining = input.diagnostics.flatMap((diagnostic): readonly Diagnostic[] => {
    const { code, place } = diagnostic;
    const { config } = input.contextOf(place.file);
    const fits = ({ rule, line }: IgnoreComment): boolean => rule === code && (line ?? place.line) === place.line;
    const ignoring = [
      ...(byFile.get(place.file) ?? []).filter(fits),
      ...configuredFor(place.file).filter(({ rules }) => rules === undefined || rules.has(code)),
    ];
    for (const ignore of ignoring) used.add(ignore);
    const level = configuredSeverity(diagnostic, config);
    if (!input.binding.has(diagnostic)) {
      return ignoring.length > 0 || level === 'off' ? [] : [{ ...diagnostic, severity: level }];
    }
    // An ignore of all rules in a folder does not name this one.
    const named = ignoring.find((ignore) => 'rule' in ignore || ignore.rules !== undefined)?.place;
    const where = named ?? (level === 'error' ? undefined : config?.places.get(code));
    if (where !== undefined) refused.set(`${where.file}:${where.line}:${where.column}`, cannotIgnore(code, where));
    return [diagnostic];
  });
  return [...remaining, ...refused.values(), ...unusedComments(input, used), ...unusedConfigs(input, used)];
}

/** The configured ignores of a file, for any rule; matches the patterns against each file once. */
function ignoresByFile({ contextOf }: Pick<IgnoreInput, 'contextOf'>): (file: string) => readonly ConfigIgnore[] {
  const known = new Map<string, readonly ConfigIgnore[]>();
  return (file) => {
    const before = known.get(file);
    if (before !== undefined) return before;
    const { path, config } = contextOf(file);
    const ignores = (config?.ignores ?? []).filter(({ files }) => files.some((pattern) => matchesGlob(path, pattern)));
    known.set(file, ignores);
    return ignores;
  };
}

function configuredSeverity({ code, severity }: Diagnostic, config: LintConfig | undefined): RuleSeverity {
  const configured = config?.severities.get(code);
  if (configured !== undefined) return configured;
  const rules: Readonly<Record<string, { readonly severity: RuleSeverity }>> = RULES;
  return rules[code]?.severity ?? severity;
}

function cannotIgnore(code: string, place: Diagnostic['place']): Diagnostic {
  const hint = 'a build refuses the add-on for it';
  return finding('lint/unused-ignore', place, `${code} cannot be ignored`, hint);
}

/** Depends on the checkout, not on the text: a generated file may or may not exist. */
const DEPENDS_ON_CHECKOUT = 'source/not-found';

function unusedComments({ comments, shellcheck }: IgnoreInput, used: ReadonlySet<unknown>): readonly Diagnostic[] {
  return comments.flatMap((comment): readonly Diagnostic[] => {
    const { rule, place, line } = comment;
    if (rule === '') return [finding('lint/unknown-rule', place, 'it names no rule', '# curlew-lint-ignore rule/id')];
    if (!isRule(rule)) return [unknownRule(rule, place)];
    if (used.has(comment) || (!shellcheck && rule.startsWith('shellcheck/')) || rule === DEPENDS_ON_CHECKOUT) return [];
    const where = line === undefined ? 'in this file' : `in line ${line}`;
    return [finding('lint/unused-ignore', place, `${rule} finds nothing ${where}`, 'remove the comment')];
  });
}

function unusedConfigs(
  { configs, complete, shellcheck }: IgnoreInput,
  used: ReadonlySet<unknown>,
): readonly Diagnostic[] {
  if (!complete) return [];
  return configs.flatMap(({ ignores }) =>
    ignores
      .filter((ignore) => !used.has(ignore))
      .filter(({ rules }) => shellcheck || rules === undefined || [...rules].some((rule) => !rule.startsWith('shell')))
      .filter(({ rules }) => rules?.has(DEPENDS_ON_CHECKOUT) !== true)
      .map(({ place }) => finding('lint/unused-ignore', place, 'it ignores nothing', 'remove it')),
  );
}

/** Whether a path with `/` matches a pattern. A pattern for a folder matches everything in it. */
export function matchesGlob(path: string, pattern: string): boolean {
  const clean = pattern.replace(/^\.?\//, '').replace(/(?<!\/)\/+$/, '');
  const parts = [...clean.split('/'), '**'];
  // Two consecutive `**` are equivalent to one.
  const once = parts.filter((part, index) => part !== '**' || parts[index - 1] !== '**');
  return matchesParts(path.split('/'), once);
}

/** For each part of the pattern in turn: the path prefixes at which it can end. */
function matchesParts(names: readonly string[], parts: readonly string[]): boolean {
  let ends = new Set([0]);
  for (const part of parts) {
    const next = new Set<number>();
    for (const end of ends) {
      if (part === '**') for (let at = end; at <= names.length; at += 1) next.add(at);
      else if (end < names.length && matchesName(names[end] ?? '', part)) next.add(end + 1);
    }
    ends = next;
  }
  return ends.has(names.length);
}

/** Matches one name against `*` and `?`; on a mismatch only the last star moves. */
function matchesName(name: string, part: string): boolean {
  let [at, from] = [0, 0];
  let star: { readonly part: number; name: number } | undefined;
  while (at < name.length) {
    if (part[from] === '*') {
      star = { part: from, name: at };
      from += 1;
    } else if (part[from] === '?' || part[from] === name[at]) {
      from += 1;
      at += 1;
    } else if (star !== undefined) {
      star.name += 1;
      at = star.name;
      from = star.part + 1;
    } else return false;
  }
  while (part[from] === '*') from += 1;
  return from === part.length;
}
