/** `--dry-run`, `--out` and `--plan`: which options a plan remembers, and how they come back. */
import { camelCase } from './read-arguments.ts';
import { resolve } from 'node:path';
import { CurlewError, redact } from '../core/errors.ts';
import type { PlanWords, SavedPlan } from '../runtime/run/plan-file.ts';
import { PLAN_WORDS, type WordKind } from '../runtime/run/plan-words.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';

const group = 'Options of plans';

export const PLAN_OPTIONS = {
  'dry-run': { type: 'boolean', help: 'show what a run would do, and change nothing', group },
  out: { type: 'string', value: 'FILE', help: 'with --dry-run: save the plan', group },
  force: { type: 'boolean', help: 'with --out: replace the file if it is there', group },
  plan: { type: 'string', value: 'FILE', help: 'run a saved plan, or refuse when it no longer holds', group },
} satisfies OptionSpecs;

/** Where packages come from, and how that is reached, may be said anew: it is their digests that the plan is held to. */
const SOURCES: readonly string[] = ['bundle', 'dir', 'from'];
const DECIDED: readonly string[] = [
  'install-dir',
  'root',
  'network',
  'env',
  'unconfined',
  'reapply',
  'allow-downgrade',
  'drop-previous',
  'prune',
  'keep-data',
  'adopt',
  'skip-images',
  'preflights',
  'ignore',
  'hook-timeout',
];

/** The words of this command line that a plan remembers. */
export function planWords(args: Arguments, { cwd }: Pick<CommandContext, 'cwd'>): PlanWords {
  const words: Record<string, string | readonly string[] | true> = {};
  for (const [name, kind] of Object.entries(PLAN_WORDS)) {
    const texts = args.texts(name).map((text) => redact(isPath(kind, text) ? resolve(cwd, text) : text));
    const [first] = texts;
    if (kind === 'flag' && args.flag(name)) words[name] = true;
    else if (first !== undefined) words[name] = kind === 'texts' || kind === 'places' ? texts : first;
  }
  return words;
}

function isPath(kind: WordKind, text: string): boolean {
  return kind === 'path' || (kind === 'places' && !isRemote(text));
}

function isRemote(address: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(address);
}

/**
 * The command line with the words of the plan. What decides the plan cannot be said otherwise, and packages are taken
 * from the network only where the command line itself says so: both are `USAGE`.
 */
export function withPlanWords(args: Arguments, { words }: SavedPlan): Arguments {
  for (const name of DECIDED) {
    if (args.texts(name).length === 0 && !args.flag(name)) continue;
    throw new CurlewError('USAGE', `--${name} is decided by the saved plan`, {
      hint: `leave it out, or make a plan with it: --dry-run --${name} --out FILE`,
    });
  }
  const ownSource = SOURCES.some((name) => args.text(name) !== undefined || args.texts(name).length > 0);
  const saved = (name: string): readonly string[] => {
    const word = Object.hasOwn(words, name) && !(ownSource && SOURCES.includes(name)) ? words[name] : undefined;
    return word === undefined || word === true ? [] : [word].flat();
  };
  const remote = saved('from').find(isRemote);
  if (remote !== undefined) {
    throw new CurlewError('USAGE', `the saved plan takes packages from ${remote}, which the command line has to say`, {
      hint: `give it again: --from ${remote}`,
    });
  }
  const texts = (name: string): readonly string[] => {
    const own = args.texts(name);
    return own.length > 0 ? own : saved(name);
  };
  const words2 = {
    positionals: args.positionals,
    operands: args.operands,
    texts,
    text: (name: string) => args.text(name) ?? (PLAN_WORDS[name] === 'places' ? undefined : saved(name)[0]),
    flag: (name: string) => args.flag(name) || (Object.hasOwn(words, name) && words[name] === true),
  };
  const values = Object.entries(PLAN_WORDS).map(([name, kind]) => {
    const many = kind === 'texts' || kind === 'places';
    return [camelCase(name), kind === 'flag' ? words2.flag(name) : many ? words2.texts(name) : words2.text(name)];
  });
  return { ...words2, options: { ...args.options, ...(Object.fromEntries(values) as Arguments['options']) } };
}

/** `USAGE` for options that make no sense together. */
export function checkPlanOptions(args: Arguments): void {
  const wrong = (what: string): CurlewError => new CurlewError('USAGE', what);
  if (args.text('out') !== undefined && !args.flag('dry-run')) throw wrong('--out saves what --dry-run has planned');
  if (args.flag('force') && args.text('out') === undefined) throw wrong('--force replaces the file of --out');
  if (args.text('out') !== undefined && args.text('plan') !== undefined) {
    throw wrong('--plan has a file already: --out is for new plans');
  }
}
