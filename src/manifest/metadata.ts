/** The two optional JSON files of an add-on: `categories.json` next to its versions, `schema.json` in a version. Pure. */
import * as v from 'valibot';
import { parseRange } from '../cluster/channel/range.ts';
import { object } from '../core/schema.ts';
import { readJsonFile } from '../formats/yaml/document.ts';
import { NO_CATEGORIES, type Categories } from './categories.ts';
import { quoted, type Find } from './rules.ts';

const MAX_WORD = 100;

const word = v.pipe(
  v.string(),
  v.maxLength(MAX_WORD, `longer than ${MAX_WORD} characters`),
  v.regex(/^[^\s\p{C}](?:[^\p{C}]*[^\s\p{C}])?$/u, 'not a name or category'),
);
const words = v.optional(v.array(word, 'not a list of names or categories\nwrite ["name", …]'), []);
const range = v.pipe(
  v.string(),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const { range: read, problem } = parseRange(dataset.value, 'native');
    const why = read?.length === 0 ? 'no version is in it' : problem;
    const message = `not a range of Kubernetes versions: ${quoted(dataset.value)}: ${why}`;
    if (why !== undefined)
      addIssue({ message: `${message}\nwrite ">=1.28.0 <1.32.0", "1.30.x" or "<1.28.0 || >=1.30.0"` });
  }),
);

/** The version of the add-on that a `categories.json` is read for, and which versions the add-on has. */
export interface OfVersion {
  readonly version: string;
  readonly hasVersion: (version: string) => boolean;
}

/** Ranges are for all versions of the add-on, or by version. */
function categoriesSchema({ version, hasVersion }: OfVersion) {
  const isVersion = (folder: string): boolean => folder === version || hasVersion(folder);
  const name = v.pipe(v.string(), v.check(isVersion, 'not a version of this add-on\nuse the name of its folder'));
  const ranges = v.union(
    [range, v.pipe(object, v.record(name, range))],
    'not a range of Kubernetes versions, or ranges by version',
  );
  return v.pipe(
    object,
    v.object({ requires: words, fulfills: words, recommends: words, kubernetesVersion: v.optional(ranges, '') }),
  );
}

/** A `categories.json` as one version of the add-on has it; empty if it is invalid, which becomes findings. */
export function parseCategories(
  file: string,
  text: string,
  { find, ...of }: OfVersion & { readonly find: Find },
): Categories {
  const { value = NO_CATEGORIES } = readJsonFile(categoriesSchema(of), { file, text }, (place, message, hint) => {
    find('addon/categories', place, message, hint);
  });
  const { kubernetesVersion: ranges, requires, fulfills, recommends } = value;
  const own = typeof ranges === 'string' ? ranges : (new Map(Object.entries(ranges)).get(of.version) ?? '');
  return { requires, fulfills, recommends, kubernetesVersion: own };
}

/** The JSON Schema of the add-on's settings, or undefined with a finding if it is not an object. */
export function parseSettingsSchema(file: string, text: string, find: Find): unknown {
  return readJsonFile(object, { file, text }, (place, message) => {
    find('addon/schema', place, message, 'a JSON Schema of type "object" that describes the settings');
  }).value;
}
