/** Options of requests in saved plans. */
import { resolve } from 'node:path';
import { CurlewError, redact } from '../../core/errors.ts';
import type { Field, Fields } from '../../core/field.ts';
import { isTexts } from '../../core/json.ts';
import { optionName } from '../../core/request.ts';
import type { Context } from '../../core/context.ts';
import type { SavedOptions, SavedPlan } from '../../runtime/run/saved-plan.ts';
import { requestOfOptions } from './saved-command.ts';

type Given = string | readonly string[] | true;

/** The given values of fields that are saved with a plan. */
function givenFor(fields: Fields, request: object): readonly (readonly [name: string, field: Field, value: Given])[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const value = (request as Readonly<Record<string, unknown>>)[name];
    const isGiven = value === true || typeof value === 'string' || (isTexts(value) && value.length > 0);
    return isGiven && field.plan !== undefined ? [[name, field, value]] : [];
  });
}

/** The options of a request that are saved with a plan; paths are absolute, and addresses have no secrets. */
export function savedOptions(fields: Fields, request: object, { cwd }: Pick<Context, 'cwd'>): SavedOptions {
  const words = givenFor(fields, request).map(([name, { names }, value]): readonly [string, Given] => {
    const isPath = (text: string): boolean => names === 'path' || (names === 'place' && !isRemote(text));
    const toSaved = (text: string): string => redact(isPath(text) ? resolve(cwd, text) : text);
    return [optionName(name), value === true ? true : typeof value === 'string' ? toSaved(value) : value.map(toSaved)];
  });
  return Object.fromEntries(words);
}

function isRemote(address: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(address);
}

/**
 * The request with the options of the plan. `USAGE` if the request sets an option that the plan determines, or if packages would
 * be fetched from a network address that only the plan names. `FILE_UNUSABLE` for invalid options.
 */
export function withSavedOptions<Request extends object>(
  fields: Fields,
  request: Request,
  { words }: Pick<SavedPlan, 'words'>,
): Request {
  const explicit = givenFor(fields, request);
  const decided = explicit.find(([, { plan }]) => plan === 'decided');
  if (decided !== undefined) {
    const option = optionName(decided[0]);
    throw new CurlewError('USAGE', `--${option} is determined by the saved plan`, {
      hint: `omit it, or save a plan with it: --dry-run --${option} --out FILE`,
    });
  }
  const ownSource = explicit.some(([, { plan }]) => plan === 'source');
  const saved = requestOfOptions(fields, words);
  if (saved === undefined) {
    throw new CurlewError('FILE_UNUSABLE', 'the saved plan contains an invalid option value', {
      hint: 'save it again: curlew install --dry-run --out FILE',
    });
  }
  const used = givenFor(fields, saved).filter(([name, { plan }]) => {
    return !explicit.some(([other]) => other === name) && !(ownSource && plan === 'source');
  });
  const places = used.flatMap(([, { names }, value]) => (names === 'place' && isTexts(value) ? value : []));
  const remote = places.find(isRemote);
  if (remote !== undefined) {
    throw new CurlewError('USAGE', `the saved plan fetches packages from ${remote}, which the command line must name`, {
      hint: `give it again: --from ${remote}`,
    });
  }
  return { ...request, ...Object.fromEntries(used.map(([name, , value]) => [name, value])) };
}
