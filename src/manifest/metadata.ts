/** The two optional JSON files of an add-on: `categories.json` next to its versions, `schema.json` in a version. Pure. */
import { parseRange } from '../channel/range.ts';
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
  /** Range of the Kubernetes versions that this version of the add-on is for; empty for all of them. */
  readonly kubernetesVersion: string;
}

const NONE: Categories = { requires: [], fulfills: [], recommends: [], kubernetesVersion: '' };

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

/** The version of the add-on that a `categories.json` is read for, and which versions the add-on has. */
export interface OfVersion {
  readonly version: string;
  readonly hasVersion: (version: string) => boolean;
}

/** A `categories.json` as one version of the add-on has it; invalid fields become findings and count as empty. */
export function parseCategories(
  file: string,
  text: string,
  { find, ...of }: OfVersion & { readonly find: Find },
): Categories {
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
  const kubernetesVersion = readKubernetesVersion(value['kubernetesVersion'], of, (message, hint) => {
    find(finding('addon/categories', startOf(file), message, hint));
  });
  return { requires: read('requires'), fulfills: read('fulfills'), recommends: read('recommends'), kubernetesVersion };
}

/** A range for all versions of the add-on, or an object of ranges by version. */
function readKubernetesVersion(
  value: unknown,
  { version, hasVersion }: OfVersion,
  add: (message: string, hint: string) => void,
): string {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const ranges: JsonObject = isObject ? (value as JsonObject) : { [version]: value ?? '' };
  let own = '';
  for (const [of, text] of Object.entries(ranges)) {
    if (of !== version && !hasVersion(of)) {
      add(
        `kubernetesVersion is for ${quoted(of)}, which is not a version of this add-on`,
        'use the name of its folder',
      );
      continue;
    }
    const problem = rangeProblem(text);
    if (problem === undefined && of === version) own = text as string;
    if (problem === undefined) continue;
    const hint =
      '"kubernetesVersion": ">=1.28.0 <1.32.0", or {"1.2.3": ">=1.28.0 <1.32.0", …} by version of the add-on';
    add(
      `kubernetesVersion is not a range of Kubernetes versions: ${quoted(typeof text === 'string' ? text : JSON.stringify(text))}: ${problem}`,
      hint,
    );
  }
  return own;
}

function rangeProblem(text: unknown): string | undefined {
  if (typeof text !== 'string') return 'it is not a text';
  const { range, problem } = parseRange(text, 'native');
  return range?.length === 0 ? 'no version is in it' : problem;
}

/** The JSON Schema of the add-on's settings, or undefined with a finding if it is not an object. */
export function parseSettingsSchema(file: string, text: string, find: Find): unknown {
  const value = parseObject(text);
  if (typeof value !== 'string') return value;
  find(finding('addon/schema', startOf(file), value, 'a JSON Schema of type "object" that describes the settings'));
  return undefined;
}
