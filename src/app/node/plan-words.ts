/** Requests and saved plans: which options a plan remembers, and how they come back. */
import { resolve } from 'node:path';
import { camelCase } from '../../core/camel-case.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { isTexts } from '../../core/json.ts';
import type { PlanWords, SavedPlan } from '../../runtime/run/plan-file.ts';
import { PLAN_WORDS, type WordKind } from '../../runtime/run/plan-words.ts';
import type { Context } from '../context.ts';
import { requestOfOptions, type Shape } from './asked.ts';

/** Where packages come from, and how that is reached, may be said anew: it is their digests that the plan is held to. */
const SOURCES: readonly string[] = ['bundle', 'dir', 'from'];
const DECIDED: readonly string[] = [
  'install-dir root network env unconfined reapply allow-downgrade drop-previous prune keep-data adopt skip-images',
  'preflights ignore hook-timeout',
].flatMap((options) => options.split(' '));

/** What the request says for an option; undefined where it says nothing. */
function given(request: object, option: string): string | readonly string[] | true | undefined {
  const value = (request as Readonly<Record<string, unknown>>)[camelCase(option)];
  if (value === true || typeof value === 'string') return value;
  return isTexts(value) && value.length > 0 ? value : undefined;
}

/** What a plan remembers of a request. */
export function planWords(request: object, { cwd }: Pick<Context, 'cwd'>): PlanWords {
  const words: Record<string, string | readonly string[] | true> = {};
  for (const [option, kind] of Object.entries(PLAN_WORDS)) {
    const kept = (text: string): string => redact(isPath(kind, text) ? resolve(cwd, text) : text);
    const value = given(request, option);
    if (typeof value === 'string') words[option] = kept(value);
    else if (value !== undefined) words[option] = value === true ? true : value.map(kept);
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
 * The request with the words of the plan. What decides the plan cannot be said otherwise, and packages are taken from the
 * network only where the request itself says so: both are `USAGE`. Words that are no request are `FILE_UNUSABLE`.
 */
export function withPlanWords<Request extends object>(
  request: Request,
  { words }: Pick<SavedPlan, 'words'>,
  shape: Shape<Request>,
): Request {
  const decided = DECIDED.find((option) => given(request, option) !== undefined);
  if (decided !== undefined) {
    throw new CurlewError('USAGE', `--${decided} is decided by the saved plan`, {
      hint: `leave it out, or make a plan with it: --dry-run --${decided} --out FILE`,
    });
  }
  const ownSource = SOURCES.some((option) => given(request, option) !== undefined);
  const saved = Object.entries(words).filter(
    ([option]) => given(request, option) === undefined && !(ownSource && SOURCES.includes(option)),
  );
  const remote = saved.flatMap(([option, word]) => (option === 'from' && isTexts(word) ? word : [])).find(isRemote);
  if (remote !== undefined) {
    throw new CurlewError('USAGE', `the saved plan takes packages from ${remote}, which the command line has to say`, {
      hint: `give it again: --from ${remote}`,
    });
  }
  const before = requestOfOptions(Object.fromEntries(saved), { fields: shape.fields });
  if (before === undefined) {
    throw new CurlewError('FILE_UNUSABLE', 'the saved plan names a value that its option does not have', {
      hint: 'make it again: curlew install --dry-run --out FILE',
    });
  }
  return { ...request, ...before };
}
