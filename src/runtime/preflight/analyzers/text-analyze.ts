import { inOutcome, AnalyzerProblem, noOutcome, resultOf, type Analyzer, type AnalyzerResult } from '../analyzer.ts';
import { run as collector, type RunFacts } from '../collectors/run.ts';
import { compareNumbers, splitCondition } from '../compare.ts';
import { parseTruth } from '../go-notation.ts';
import { messageOf } from '../message.ts';
import { matchAll } from '../pattern.ts';
import type { AnalyzerSpec } from '../spec.ts';

/**
 * Matches a pattern with the output of the `run` collector. `fileName` is `host-collectors/run-host/NAME.txt`,
 * `…/NAME-stderr.txt`, or `…/NAME/FOLDER/FILE` for files in the output folder.
 */
export const textAnalyze: Analyzer<RunFacts> = {
  kind: 'textAnalyze',
  collector,
  settings: { fileName: 'text!', regex: 'text', regexGroups: 'text', ignoreIfNoFiles: 'yesno' },
  title: () => 'Regular Expression',
  factName: (spec) => partOf(spec)?.name,
  analyze: (facts, spec): readonly AnalyzerResult[] => {
    const text = textOf(facts, spec);
    if (text === undefined) return noFiles(spec);
    const [regex, groups] = [spec.settings.text('regex'), spec.settings.text('regexGroups')];
    if (regex !== undefined) return patternResults(matchAll(regex, [text])[0] !== undefined, spec);
    if (groups !== undefined) return groupResults(matchAll(groups, [text])[0] ?? {}, spec);
    throw new AnalyzerProblem('neither regex nor regexGroups is set');
  },
  withoutFacts: noFiles,
};

function noFiles({ settings }: AnalyzerSpec): readonly AnalyzerResult[] {
  if (settings.yes('ignoreIfNoFiles')) return [];
  return [{ verdict: 'warn', message: 'No matching files', uri: undefined }];
}

interface Part {
  readonly name: string;
  readonly what: 'stdout' | 'stderr' | { readonly file: string };
}

function partOf({ collectorName = '', settings }: AnalyzerSpec): Part | undefined {
  const path = [collectorName, settings.text('fileName') ?? ''].filter((part) => part !== '').join('/');
  const [, below] = /^host-collectors\/run-host\/(.+)$/.exec(path.replaceAll(/\/+/g, '/')) ?? [];
  if (below === undefined) return undefined;
  const slash = below.indexOf('/');
  if (slash !== -1) return { name: below.slice(0, slash), what: { file: below.slice(slash + 1) } };
  const [, name, stderr] = /^(.*?)(-stderr)?\.txt$/.exec(below) ?? [];
  return name === undefined ? undefined : { name, what: stderr === undefined ? 'stdout' : 'stderr' };
}

function textOf(facts: RunFacts, spec: AnalyzerSpec): string | undefined {
  const part = partOf(spec);
  if (part === undefined) return undefined;
  if (part.what === 'stdout' || part.what === 'stderr') return facts[part.what];
  // The output folder's name precedes the file's.
  const { file } = part.what;
  const below = file.slice(file.indexOf('/') + 1);
  return Object.hasOwn(facts.files, below) ? facts.files[below] : undefined;
}

/** A condition is true (for a match) or false. All outcomes are evaluated; the last that holds provides the message. */
function patternResults(matches: boolean, { outcomes }: AnalyzerSpec): readonly AnalyzerResult[] {
  const found = outcomes.filter((outcome) =>
    inOutcome(outcome, () => {
      const when = outcome.when === '' ? outcome.verdict === 'pass' : parseTruth(outcome.when);
      if (when === undefined) throw new AnalyzerProblem(`${JSON.stringify(outcome.when)} is neither true nor false`);
      return when === matches;
    }),
  );
  const last = found.at(-1);
  if (last === undefined) return noOutcome(outcomes);
  const passed = found.some(({ verdict }) => verdict === 'pass');
  return [{ ...resultOf(last), verdict: passed ? 'pass' : last.verdict }];
}

/** A condition compares a named group with a number or text: `Loss > 10`. */
function groupResults(groups: Readonly<Record<string, string>>, { outcomes }: AnalyzerSpec): readonly AnalyzerResult[] {
  const found = outcomes.find((outcome) => inOutcome(outcome, () => groupHolds(outcome.when, groups)));
  if (found === undefined) return noOutcome(outcomes);
  const message = inOutcome(found, () => messageOf(found.message, groups));
  return [{ ...resultOf(found), message }];
}

function groupHolds(when: string, groups: Readonly<Record<string, string>>): boolean {
  if (when === '') return true;
  const [name = '', sign = '', wanted = ''] = splitCondition(when.trim(), 3, 'group = value');
  const actual = Object.hasOwn(groups, name) ? groups[name] : undefined;
  if (actual === undefined) return false;
  if (/^[+-]?\d+$/.test(wanted)) {
    return /^[+-]?\d+$/.test(actual) && compareNumbers(sign, Number(actual), Number(wanted), true);
  }
  if (['=', '==', '==='].includes(sign)) return actual === wanted;
  return ['!=', '!=='].includes(sign) && actual !== wanted;
}
