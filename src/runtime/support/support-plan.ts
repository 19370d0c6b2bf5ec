/** The contents of a support bundle of this machine: files, collectors of specs, and the verdicts of their analyzers. */
import { join } from 'node:path';
import * as v from 'valibot';
import { jsonIn } from '../../core/json.ts';
import { nodePath } from '../../core/layout.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import type { Fact } from '../preflight/facts.ts';
import { parseSupportSpecs, type SupportSpec } from '../preflight/parse-preflight.ts';
import { PREFLIGHT_FILE, runsOf } from '../prepare/run-folder.ts';
import type { Item } from './collect.ts';
import { BUILT_IN_COLLECTORS, hostItems } from './host-items.ts';
import { fileItem, nodeItems, type NodeFolders } from './node-items.ts';
import { packageTexts } from './package-texts.ts';
import { resultSchema, type Verdicts } from './support-index.ts';
import { hostVerdicts } from './verdicts.ts';

const SPEC_LIMIT = 1 << 20;

export interface SupportPlan {
  readonly items: readonly Item[];
  readonly specs: readonly SupportSpec[];
  /** The verdicts of analyzers about the collected facts. */
  readonly verdicts: () => Promise<Verdicts>;
}

/** Reads only names and specs. */
export async function planNode(
  folders: NodeFolders,
  { env }: { readonly env: Readonly<Record<string, string | undefined>> },
): Promise<SupportPlan> {
  const { directory, root } = folders;
  const facts: Fact[] = [];
  const files: Item[] = [];
  const specs: SupportSpec[] = [];
  for (const { name, title, path, text } of await packageTexts(directory, 'troubleshoot.yaml', SPEC_LIMIT)) {
    files.push(fileItem(`curlew/specs/${name}.yaml`, path));
    specs.push(...parseSupportSpecs(title, text).specs);
  }
  // The collectors of add-ons come first: of two with the same file, one is collected.
  const collectors = [...specs.flatMap(({ host }) => host.collectors), ...BUILT_IN_COLLECTORS];
  const hosts = specs.map(({ host }) => host);
  return {
    items: [
      ...(await nodeItems(folders)),
      ...files,
      ...hostItems(collectors, { root, env }, (fact) => facts.push(fact)),
    ],
    specs,
    verdicts: async () => {
      const { results, notEvaluated } = hostVerdicts(hosts, facts);
      return { results: [...(await lastChecks(directory)), ...results], notEvaluated };
    },
  };
}

const checksSchema = v.object({ results: v.array(resultSchema) });

/** Host preflights before the last run that made some: those of an installed machine would fail now, as by ports in use. */
async function lastChecks(directory: string): Promise<Verdicts['results']> {
  for (const run of await runsOf(directory).catch(() => [])) {
    const file = join(directory, nodePath.run(run), PREFLIGHT_FILE);
    const text = (await readLimited(file, SPEC_LIMIT).catch(() => undefined))?.toString('utf8');
    const read = text === undefined ? undefined : v.safeParse(checksSchema, jsonIn(text));
    if (read?.success === true) return read.output.results;
  }
  return [];
}
