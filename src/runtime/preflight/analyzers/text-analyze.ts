import { inOutcome, JudgeProblem, judgementOf, type Analyzer, type Judgement } from '../analyzer.ts';
import { run as collector, type RunFacts } from '../collectors/run.ts';
import { compareNumbers, wordsOf } from '../compare.ts';
import { parseTruth } from '../go-words.ts';
import { messageOf } from '../message.ts';
import { matchAll } from '../pattern.ts';
import type { AnalyzerSpec } from '../spec.ts';

/**
 * Looks for a pattern in what the `run` collector found. `fileName` is `host-collectors/run-host/NAME.txt`,
 * `…/NAME-stderr.txt`, or `…/NAME/FOLDER/FILE` for files that the program left.
 */
export const textAnalyze: Analyzer<RunFacts> = {
  kind: 'textAnalyze',
  collector,
  settings: { fileName: 'text!', regex: 'text', regexGroups: 'text', ignoreIfNoFiles: 'yesno' },
  title: () => 'Regular Expression',
  factName: (spec) => partOf(spec)?.name,
  judge: (facts, spec): readonly Judgement[] => {
    const text = textOf(facts, spec);
    if (text === undefined) return noFiles(spec);
    const [regex, groups] = [spec.settings.text('regex'), spec.settings.text('regexGroups')];
    if (regex !== undefined) return judgePattern(matchAll(regex, [text])[0] !== undefined, spec);
    if (groups !== undefined) return judgeGroups(matchAll(groups, [text])[0] ?? {}, spec);
    throw new JudgeProblem('neither regex nor regexGroups is there');
  },
  withoutFacts: noFiles,
};

function noFiles({ settings }: AnalyzerSpec): readonly Judgement[] {
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
  // The name of the output folder stands before the file's.
  const { file } = part.what;
  const below = file.slice(file.indexOf('/') + 1);
  return Object.hasOwn(facts.files, below) ? facts.files[below] : undefined;
}

/** A condition is true (there is a match) or false. All outcomes are asked; the last that holds has the message. */
function judgePattern(matches: boolean, { outcomes }: AnalyzerSpec): readonly Judgement[] {
  const found = outcomes.filter((outcome) =>
    inOutcome(outcome, () => {
      const when = outcome.when === '' ? outcome.verdict === 'pass' : parseTruth(outcome.when);
      if (when === undefined) throw new JudgeProblem(`${JSON.stringify(outcome.when)} is neither true nor false`);
      return when === matches;
    }),
  );
  const last = found.at(-1);
  if (last === undefined) return [];
  const passed = found.some(({ verdict }) => verdict === 'pass');
  return [{ ...judgementOf(last), verdict: passed ? 'pass' : last.verdict }];
}

/** A condition compares a named group with a number or a word: `Loss > 10`. */
function judgeGroups(groups: Readonly<Record<string, string>>, { outcomes }: AnalyzerSpec): readonly Judgement[] {
  const found = outcomes.find((outcome) => inOutcome(outcome, () => groupHolds(outcome.when, groups)));
  if (found === undefined) return [];
  const message = inOutcome(found, () => messageOf(found.message, groups));
  return [{ ...judgementOf(found), message }];
}

function groupHolds(when: string, groups: Readonly<Record<string, string>>): boolean {
  if (when === '') return true;
  const [name = '', sign = '', wanted = ''] = wordsOf(when.trim(), 3, 'group = value');
  const actual = Object.hasOwn(groups, name) ? groups[name] : undefined;
  if (actual === undefined) return false;
  if (/^[+-]?\d+$/.test(wanted)) {
    return /^[+-]?\d+$/.test(actual) && compareNumbers(sign, Number(actual), Number(wanted), true);
  }
  if (['=', '==', '==='].includes(sign)) return actual === wanted;
  return ['!=', '!=='].includes(sign) && actual !== wanted;
}
