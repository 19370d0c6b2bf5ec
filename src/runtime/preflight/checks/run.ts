/** The output of a program of the spec's choice. It runs in a temporary folder. */
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { fileNameProblem, pathProblem } from '../../../core/layout.ts';
import { byKey, finite, type Read } from '../../../core/schema.ts';
import { readLimited } from '../../../platform/files/read-limited.ts';
import { makeTemporary } from '../../../platform/files/temporary.ts';
import { type Check, DEFAULT_LIMIT_MS, limitOf } from '../check.ts';
import { parseTruth } from '../go-notation.ts';
import { CollectProblem, type Host, runCollectorProgram } from '../host.ts';
import {
  AnalyzerProblem,
  type AnalyzerResult,
  compareNumbers,
  inOutcome,
  messageOf,
  noOutcome,
  checkResult,
  splitCondition,
} from '../outcome.ts';
import { matchAll } from '../pattern.ts';
import type { Settings } from '../check-settings.ts';
import type { AnalyzerSpec } from '../spec.ts';
import { makeMissing } from '../../../platform/files/make-folder.ts';

const schema = v.object({
  exitCode: finite,
  stdout: v.string(),
  stderr: v.string(),
  /** Files in its output folder, by path. */
  files: byKey(v.string()),
});
type RunFacts = Read<typeof schema>;

const OUTPUT_LIMIT = 1 << 20;
const MAX_FILES = 100;
/** Variables that a program always gets. */
const ALWAYS = ['PATH', 'KUBECONFIG', 'PWD'];

/**
 * Matches a pattern with the output of the `run` collector. `fileName` is `host-collectors/run-host/NAME.txt`,
 * `…/NAME-stderr.txt`, or `…/NAME/FOLDER/FILE` for files in the output folder.
 */
export const run: Check<RunFacts> = {
  kind: 'run',
  analyzerKind: 'textAnalyze',
  defaultName: 'run-host',
  isProgram: true,
  acts: true,
  settings: {
    command: 'text!',
    args: 'texts',
    outputDir: 'text',
    input: 'textmap',
    env: 'texts',
    inheritEnvs: 'texts',
    ignoreParentEnvs: 'yesno',
    timeout: 'text',
  },
  limitMs: (settings) => limitOf(settings, DEFAULT_LIMIT_MS),
  collect: async (settings, host) => {
    const folder = makeTemporary('preflight');
    try {
      return await runIn(folder, settings, host);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  facts: schema,
  analyzerSettings: { fileName: 'text!', regex: 'text', regexGroups: 'text', ignoreIfNoFiles: 'yesno' },
  title: 'Regular Expression',
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

async function runIn(folder: string, settings: Settings, host: Host): Promise<RunFacts> {
  const env: Record<string, string | undefined> = { ...environment(settings, host.env) };
  const outputDir = settings.text('outputDir');
  const output = outputDir === undefined ? undefined : join(folder, safe(outputDir, pathProblem(outputDir)));
  if (output !== undefined) {
    await makeMissing(output);
    env['TS_OUTPUT_DIR'] = output;
  }
  const input = settings.textMap('input');
  if (input !== undefined) {
    const into = join(folder, 'input');
    await makeMissing(into);
    for (const [name, text] of Object.entries(input)) {
      await writeFile(join(into, safe(name, fileNameProblem(name))), text, { flag: 'wx' });
    }
    env['TS_INPUT_DIR'] = into;
  }
  const command = settings.text('command') ?? '';
  const options = { cwd: folder, env, outputLimit: host.outputLimit ?? OUTPUT_LIMIT };
  const args = settings.texts('args') ?? [];
  return runCollectorProgram(command, args, host, options, async ({ status, stdout, stderr }) => {
    return { exitCode: status, stdout, stderr, files: output === undefined ? {} : await filesIn(output) };
  });
}

function safe(name: string, problem: string | undefined): string {
  if (problem === undefined) return name;
  throw new CollectProblem(`the name ${JSON.stringify(name.slice(0, 80))} ${problem}`);
}

function environment(settings: Settings, own: Host['env']): Readonly<Record<string, string | undefined>> {
  const inherited = settings.texts('inheritEnvs');
  const some = (names: readonly string[]): Record<string, string | undefined> =>
    Object.fromEntries(names.map((name) => [name, own[name]]));
  const missing = inherited?.find((name) => own[name] === undefined);
  if (missing !== undefined && !settings.yes('ignoreParentEnvs')) {
    throw new CollectProblem(`the environment has no ${missing}`);
  }
  const base = settings.yes('ignoreParentEnvs')
    ? some(ALWAYS)
    : inherited === undefined
      ? own
      : some([...ALWAYS, ...inherited]);
  const added = (settings.texts('env') ?? []).map((word) => {
    const [, name, value] = /^([^=]+)=(.+)$/s.exec(word) ?? [];
    if (name === undefined || value === undefined) throw new CollectProblem('an entry of env is not NAME=value');
    return [name, value] as const;
  });
  return { ...base, ...Object.fromEntries(added) };
}

async function filesIn(folder: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files: Record<string, string> = {};
  for (const entry of entries.filter((one) => one.isFile()).slice(0, MAX_FILES)) {
    const path = join(entry.parentPath, entry.name);
    files[path.slice(folder.length + 1)] = (await readLimited(path, OUTPUT_LIMIT)).toString('utf8');
  }
  return files;
}

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
  const matching = outcomes.filter((outcome) =>
    inOutcome(outcome, () => {
      const when = outcome.when === '' ? outcome.verdict === 'pass' : parseTruth(outcome.when);
      if (when === undefined) throw new AnalyzerProblem(`${JSON.stringify(outcome.when)} is neither true nor false`);
      return when === matches;
    }),
  );
  const last = matching.at(-1);
  if (last === undefined) return noOutcome(outcomes);
  const passed = matching.some(({ verdict }) => verdict === 'pass');
  return [{ ...checkResult(last), verdict: passed ? 'pass' : last.verdict }];
}

/** A condition compares a named group with a number or text: `Loss > 10`. */
function groupResults(groups: Readonly<Record<string, string>>, { outcomes }: AnalyzerSpec): readonly AnalyzerResult[] {
  const match = outcomes.find((outcome) => inOutcome(outcome, () => groupHolds(outcome.when, groups)));
  if (match === undefined) return noOutcome(outcomes);
  const message = inOutcome(match, () => messageOf(match.message, groups));
  return [{ ...checkResult(match), message }];
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
