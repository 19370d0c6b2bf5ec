/** The last file of a support bundle: what is in it, what is not, and what its checks say. Read from outside: hostile. */
import * as v from 'valibot';
import type { CurlewError } from '../../core/errors.ts';
import { shallowJson } from '../../core/json.ts';
import { readJson, type Read } from '../../core/schema.ts';

const FORMAT = 1;
export const INDEX_PATH = 'curlew/index.json';
/** Where Troubleshoot's programs recognize a bundle, and what they expect there. */
export const VERSION_PATH = 'version.yaml';

export function indexVersionText(tool: string): string {
  const head = 'apiVersion: troubleshoot.sh/v1beta2\nkind: SupportBundle\n';
  return `${head}spec:\n  versionNumber: ${JSON.stringify(`curlew ${tool}`)}\n`;
}

export const resultSchema = v.object({
  verdict: v.picklist(['pass', 'warn', 'fail']),
  title: v.string(),
  message: v.string(),
  uri: v.exactOptional(v.string()),
  strict: v.boolean(),
  spec: v.string(),
  ignored: v.exactOptional(v.literal(true)),
  host: v.exactOptional(v.string()),
});
const collected = v.object({
  path: v.string(),
  source: v.string(),
  state: v.picklist(['collected', 'shortened', 'absent', 'failed', 'left out']),
  bytes: v.exactOptional(v.number()),
  problem: v.exactOptional(v.string()),
});
const indexSchema = v.object({
  format: v.literal(FORMAT),
  /** Version of curlew. */
  tool: v.string(),
  /** ISO 8601. */
  time: v.string(),
  /** Name of the machine, or of the cluster. */
  about: v.string(),
  /** Nothing has failed or was left out. */
  complete: v.boolean(),
  files: v.array(collected),
  results: v.array(resultSchema),
  /** Analyzers that this version does not know, or whose facts are missing. */
  notEvaluated: v.array(
    v.object({ title: v.string(), spec: v.string(), reason: v.string(), host: v.exactOptional(v.string()) }),
  ),
});
export type SupportIndex = Read<typeof indexSchema>;
export type Verdicts = Pick<SupportIndex, 'results' | 'notEvaluated'>;

export function supportIndex(found: Omit<SupportIndex, 'format' | 'complete'>): SupportIndex {
  const complete = found.files.every(({ state }) => state !== 'failed' && state !== 'left out');
  return { format: FORMAT, complete, ...found };
}

export function parseSupportIndex(text: string, bad: (what: string) => CurlewError): SupportIndex {
  return readJson(indexSchema, text, { bad: () => bad('its index is damaged'), parse: shallowJson });
}
