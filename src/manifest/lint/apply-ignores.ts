/** Applies what a configuration and comments say about findings, and tells of what they say in vain. Pure. */
import type { Diagnostic } from '../../core/diagnostic.ts';
import { finding, RULES, type RuleSeverity } from '../rules.ts';
import type { IgnoreComment } from './ignore-comments.ts';
import { type ConfigIgnore, isRule, type LintConfig, unknownRule } from './lint-config.ts';

/** A file in which something was found: where it lies in its repository, and which configuration rules there. */
export interface FileContext {
  /** Below the root of the repository, with `/`. */
  readonly path: string;
  readonly config: LintConfig | undefined;
}

export interface Judged {
  readonly diagnostics: readonly Diagnostic[];
  /** Errors for which a build refuses the add-on, whatever lint is told to ignore. */
  readonly binding: ReadonlySet<Diagnostic>;
  readonly comments: readonly IgnoreComment[];
  readonly configs: readonly LintConfig[];
  readonly contextOf: (file: string) => FileContext;
  /** All add-ons were looked at, so that a configuration that ignores nothing is of no use. */
  readonly complete: boolean;
  /** Whether shellcheck ran; if not, nothing is known about what ignores its findings. */
  readonly shellcheck: boolean;
}

/** What is left, with the severities that are wanted, and findings about ignores that do nothing. */
export function applyIgnores(judged: Judged): readonly Diagnostic[] {
  const used = new Set<IgnoreComment | ConfigIgnore>();
  const refused = new Map<string, Diagnostic>();
  const byFile = new Map<string, IgnoreComment[]>();
  for (const comment of judged.comments) {
    const same = byFile.get(comment.place.file);
    if (same === undefined) byFile.set(comment.place.file, [comment]);
    else same.push(comment);
  }
  const meantOf = ignoresByFile(judged);
  const kept = judged.diagnostics.flatMap((found): readonly Diagnostic[] => {
    const { code, place } = found;
    const { config } = judged.contextOf(place.file);
    const fits = ({ rule, line }: IgnoreComment): boolean => rule === code && (line ?? place.line) === place.line;
    const ignoring = [
      ...(byFile.get(place.file) ?? []).filter(fits),
      ...meantOf(place.file).filter(({ rules }) => rules === undefined || rules.has(code)),
    ];
    for (const ignore of ignoring) used.add(ignore);
    const wanted = wantedSeverity(found, config);
    if (!judged.binding.has(found)) {
      return ignoring.length > 0 || wanted === 'off' ? [] : [{ ...found, severity: wanted }];
    }
    // An ignore of all rules in a folder says nothing about this one.
    const named = ignoring.find((ignore) => 'rule' in ignore || ignore.rules !== undefined)?.place;
    const where = named ?? (wanted === 'error' ? undefined : config?.places.get(code));
    if (where !== undefined) refused.set(`${where.file}:${where.line}:${where.column}`, cannotIgnore(code, where));
    return [found];
  });
  return [...kept, ...refused.values(), ...vainComments(judged, used), ...vainConfigs(judged, used)];
}

/** What a configuration ignores in a file, whichever rules it means; patterns are held against each file once. */
function ignoresByFile({ contextOf }: Pick<Judged, 'contextOf'>): (file: string) => readonly ConfigIgnore[] {
  const known = new Map<string, readonly ConfigIgnore[]>();
  return (file) => {
    const before = known.get(file);
    if (before !== undefined) return before;
    const { path, config } = contextOf(file);
    const found = (config?.ignores ?? []).filter(({ files }) => files.some((pattern) => fitsGlob(path, pattern)));
    known.set(file, found);
    return found;
  };
}

function wantedSeverity({ code, severity }: Diagnostic, config: LintConfig | undefined): RuleSeverity {
  const wanted = config?.severities.get(code);
  if (wanted !== undefined) return wanted;
  const rules: Readonly<Record<string, { readonly severity: RuleSeverity }>> = RULES;
  return rules[code]?.severity ?? severity;
}

function cannotIgnore(code: string, place: Diagnostic['place']): Diagnostic {
  const hint = 'a build refuses the add-on for it';
  return finding('lint/unused-ignore', place, `${code} cannot be ignored`, hint);
}

/** It depends on the checkout, not on the text: a file that a build makes exists or does not. */
const MAY_BE_MADE = 'source/not-found';

function vainComments({ comments, shellcheck }: Judged, used: ReadonlySet<unknown>): readonly Diagnostic[] {
  return comments.flatMap((comment): readonly Diagnostic[] => {
    const { rule, place, line } = comment;
    if (rule === '') return [finding('lint/unknown-rule', place, 'no rule is named', '# curlew-lint-ignore rule/id')];
    if (!isRule(rule)) return [unknownRule(rule, place)];
    if (used.has(comment) || (!shellcheck && rule.startsWith('shellcheck/')) || rule === MAY_BE_MADE) return [];
    const where = line === undefined ? 'in this file' : `in line ${line}`;
    return [finding('lint/unused-ignore', place, `${rule} finds nothing ${where}`, 'take the comment out')];
  });
}

function vainConfigs({ configs, complete, shellcheck }: Judged, used: ReadonlySet<unknown>): readonly Diagnostic[] {
  if (!complete) return [];
  return configs.flatMap(({ ignores }) =>
    ignores
      .filter((ignore) => !used.has(ignore))
      .filter(({ rules }) => shellcheck || rules === undefined || [...rules].some((rule) => !rule.startsWith('shell')))
      .filter(({ rules }) => rules?.has(MAY_BE_MADE) !== true)
      .map(({ place }) => finding('lint/unused-ignore', place, 'it ignores nothing', 'take it out')),
  );
}

/** Whether a path with `/` fits a pattern. A pattern that names a folder fits all below it. */
export function fitsGlob(path: string, pattern: string): boolean {
  const clean = pattern.replace(/^\.?\//, '').replace(/(?<!\/)\/+$/, '');
  const parts = [...clean.split('/'), '**'];
  // Any number of folders twice is any number.
  const once = parts.filter((part, index) => part !== '**' || parts[index - 1] !== '**');
  return fitsParts(path.split('/'), once);
}

/** Each part of the pattern in turn: which beginnings of the path it can end at. */
function fitsParts(names: readonly string[], parts: readonly string[]): boolean {
  let ends = new Set([0]);
  for (const part of parts) {
    const next = new Set<number>();
    for (const end of ends) {
      if (part === '**') for (let at = end; at <= names.length; at += 1) next.add(at);
      else if (end < names.length && fitsName(names[end] ?? '', part)) next.add(end + 1);
    }
    ends = next;
  }
  return ends.has(names.length);
}

/** One name against `*` and `?`: on a mismatch only the last star is moved. */
function fitsName(name: string, part: string): boolean {
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
