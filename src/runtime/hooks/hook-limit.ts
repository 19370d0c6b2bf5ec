/** The time limit of a hook; no limit by default. Pure. */
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { AddonJson } from '../../core/package.ts';
import { parseDuration } from '../../core/units.ts';
import { HOOK_TIMEOUT } from '../../spec/settings.ts';

/** The longest possible timer. */
const MAX_SECONDS = 86_400 * 24;

/** `90`, `90s`, `30m` or `1h30m` in seconds; 0 is undefined, no limit. `what` names the value for the error, a USAGE. */
export function parseLimit(text: string, what: string): number | undefined {
  const seconds = (parseDuration(/^\d+$/.test(text) ? `${text}s` : text) ?? -1) / 1000;
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > MAX_SECONDS) {
    throw new CurlewError(
      'USAGE',
      `${what}: ${JSON.stringify(text.slice(0, 40))} is not a valid time limit of a hook`,
      { hint: 'write 90s, 30m or 2h; 0 for no limit' },
    );
  }
  return seconds === 0 ? undefined : seconds;
}

/**
 * Time limit in seconds of each hook of an add-on: its setting in the spec, otherwise the operator's general limit, otherwise the
 * default in the JSON Schema of its settings.
 */
export function hookLimit(
  addon: Pick<AddonJson, 'name' | 'settings'>,
  settings: unknown,
  general: number | undefined,
): number | undefined {
  const set = isObject(settings) ? settings[HOOK_TIMEOUT] : undefined;
  if (set !== undefined) return limitOf(set, `${addon.name}: ${HOOK_TIMEOUT}`);
  if (general !== undefined) return general;
  const properties = isObject(addon.settings) ? addon.settings['properties'] : undefined;
  const property = isObject(properties) ? properties[HOOK_TIMEOUT] : undefined;
  const byDefault = isObject(property) ? property['default'] : undefined;
  return byDefault === undefined ? undefined : limitOf(byDefault, `${addon.name}: default of ${HOOK_TIMEOUT}`);
}

function limitOf(value: unknown, what: string): number | undefined {
  const text = typeof value === 'number' || typeof value === 'string' ? String(value) : JSON.stringify(value);
  return parseLimit(text, what);
}
