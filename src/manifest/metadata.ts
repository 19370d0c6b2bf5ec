/** The two optional JSON files of an add-on: `categories.json` next to its versions, `schema.json` in a version. Pure. */
import type { Place } from '../core/diagnostic.ts';
import { asError } from '../core/errors.ts';
import { shallowJson } from '../core/json.ts';
import { finding, quoted, type Find } from './rules.ts';

/**
 * Requirements, offers and recommendations of an add-on: names of add-ons, or categories that several add-ons fulfill, such
 * as `CNI Plugin`.
 */
export interface Categories {
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
  readonly recommends: readonly string[];
}

const NONE: Categories = { requires: [], fulfills: [], recommends: [] };

type JsonObject = Readonly<Record<string, unknown>>;

function parseObject(text: string): JsonObject | string {
  try {
    const value: unknown = shallowJson(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as JsonObject) : 'not a JSON object';
  } catch (error) {
    return `not JSON: ${asError(error).message.slice(0, 200)}`;
  }
}

function startOf(file: string): Place {
  return { file, line: 1, column: 1, length: 1 };
}

const LONGEST_WORD = 100;

function isWord(item: unknown): boolean {
  return typeof item === 'string' && item.length <= LONGEST_WORD && /^[^\s\p{C}](?:[^\p{C}]*[^\s\p{C}])?$/u.test(item);
}

/** `requires`, `fulfills` and `recommends` of a `categories.json`; invalid lists become findings and count as empty. */
export function parseCategories(file: string, text: string, find: Find): Categories {
  const value = parseObject(text);
  if (typeof value === 'string') {
    find(finding('addon/categories', startOf(file), value));
    return NONE;
  }
  const read = (key: string): readonly string[] => {
    const list = value[key] ?? [];
    const wrong = Array.isArray(list) ? list.find((item) => !isWord(item)) : list;
    if (Array.isArray(list) && wrong === undefined) return list;
    const shown = quoted(JSON.stringify(wrong) ?? '');
    find(
      finding(
        'addon/categories',
        startOf(file),
        `${key} is not a list of names or categories: ${shown}`,
        `"${key}": ["name", …]`,
      ),
    );
    return [];
  };
  return { requires: read('requires'), fulfills: read('fulfills'), recommends: read('recommends') };
}

/** The JSON Schema of the add-on's settings, or undefined with a finding if it is not an object. */
export function parseSettingsSchema(file: string, text: string, find: Find): unknown {
  const value = parseObject(text);
  if (typeof value !== 'string') return value;
  find(finding('addon/schema', startOf(file), value, 'a JSON Schema of type "object" that describes the settings'));
  return undefined;
}
