/** Options of requests in saved plans. */
import { resolve } from 'node:path';
import { camelCase } from '../../core/camel-case.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { isTexts } from '../../core/json.ts';
import type { SavedOptions, SavedPlan } from '../../runtime/run/plan-file.ts';
import { SAVED_OPTIONS, type OptionKind } from '../../runtime/run/saved-options.ts';
import type { Context } from '../../core/context.ts';
import { requestOfOptions, type Shape } from './saved-command.ts';

/** The source of packages may be given again: the plan fixes their digests. */
const SOURCES: readonly string[] = ['bundle', 'dir', 'from'];
const DECIDED: readonly string[] = [
  'install-dir root network env unconfined reapply allow-downgrade drop-previous prune keep-data adopt skip-images',
  'preflights ignore hook-timeout',
].flatMap((options) => options.split(' '));

/** The request's value for an option; undefined if it has none. */
function given(request: object, option: string): string | readonly string[] | true | undefined {
  const value = (request as Readonly<Record<string, unknown>>)[camelCase(option)];
  if (value === true || typeof value === 'string') return value;
  return isTexts(value) && value.length > 0 ? value : undefined;
}

/** The options of a request that are saved with a plan. */
export function savedOptions(request: object, { cwd }: Pick<Context, 'cwd'>): SavedOptions {
  const words: Record<string, string | readonly string[] | true> = {};
  for (const [option, kind] of Object.entries(SAVED_OPTIONS)) {
    const kept = (text: string): string => redact(isPath(kind, text) ? resolve(cwd, text) : text);
    const value = given(request, option);
    if (typeof value === 'string') words[option] = kept(value);
    else if (value !== undefined) words[option] = value === true ? true : value.map(kept);
  }
  return words;
}

function isPath(kind: OptionKind, text: string): boolean {
  return kind === 'path' || (kind === 'places' && !isRemote(text));
}

function isRemote(address: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(address);
}

/**
 * The request with the options of the plan. `USAGE` if the request sets an option that the plan determines, or if packages would
 * be fetched from a network address that only the plan names. `FILE_UNUSABLE` for invalid options.
 */
export function withSavedOptions<Request extends object>(
  request: Request,
  { words }: Pick<SavedPlan, 'words'>,
  shape: Shape<Request>,
): Request {
  const decided = DECIDED.find((option) => given(request, option) !== undefined);
  if (decided !== undefined) {
    throw new CurlewError('USAGE', `--${decided} is determined by the saved plan`, {
      hint: `omit it, or save a plan with it: --dry-run --${decided} --out FILE`,
    });
  }
  const ownSource = SOURCES.some((option) => given(request, option) !== undefined);
  const saved = Object.entries(words).filter(
    ([option]) => given(request, option) === undefined && !(ownSource && SOURCES.includes(option)),
  );
  const remote = saved.flatMap(([option, value]) => (option === 'from' && isTexts(value) ? value : [])).find(isRemote);
  if (remote !== undefined) {
    throw new CurlewError('USAGE', `the saved plan fetches packages from ${remote}, which the command line must name`, {
      hint: `give it again: --from ${remote}`,
    });
  }
  const before = requestOfOptions(Object.fromEntries(saved), { fields: shape.fields });
  if (before === undefined) {
    throw new CurlewError('FILE_UNUSABLE', 'the saved plan contains an invalid option value', {
      hint: 'save it again: curlew install --dry-run --out FILE',
    });
  }
  return { ...request, ...before };
}
