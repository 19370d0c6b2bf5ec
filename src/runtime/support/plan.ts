/** What a support bundle of this machine contains: files, collectors of specs, and what their analyzers say. */
import { join } from 'node:path';
import * as v from 'valibot';
import { nodePath } from '../../core/layout.ts';
import { addonRef, formatRef } from '../../core/ref.ts';
import { jsonIn } from '../../core/json.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { readRecords } from '../node/records.ts';
import { analyzeFacts, titleOf } from '../preflight/analyze.ts';
import { ANALYZERS } from '../preflight/checks.ts';
import { findFact, type Fact } from '../preflight/facts.ts';
import { parseSupportSpecs, type SupportSpec } from '../preflight/parse.ts';
import { PREFLIGHT_FILE, runsOf } from '../prepare/run-folder.ts';
import type { Item } from './collect.ts';
import { BUILT_IN_COLLECTORS, hostItems } from './host-items.ts';
import { fileItem, nodeItems, type NodeFolders } from './node-items.ts';
import { resultSchema, type Verdicts } from './support-index.ts';

const TROUBLESHOOT_YAML = 'troubleshoot.yaml';
const SPEC_LIMIT = 1 << 20;

export interface SupportPlan {
  readonly items: readonly Item[];
  readonly specs: readonly SupportSpec[];
  /** What analyzers say about what was collected. */
  readonly verdicts: () => Promise<Verdicts>;
}

/** Reads only names and specs. */
export async function planNode(
  folders: NodeFolders,
  { env }: { readonly env: Readonly<Record<string, string | undefined>> },
): Promise<SupportPlan> {
  const { directory, root } = folders;
  const facts: Fact[] = [];
  const { items: specFiles, specs } = await packageSpecs(directory);
  // The collectors of add-ons come first: of two with the same file, one is collected.
  const collectors = [...specs.flatMap(({ host }) => host.collectors), ...BUILT_IN_COLLECTORS];
  const host = hostItems(collectors, { root, env }, (fact) => facts.push(fact));
  return {
    items: [...(await nodeItems(folders)), ...specFiles, ...host],
    specs,
    verdicts: async () => {
      const { results, notEvaluated } = hostVerdicts(specs, facts);
      return { results: [...(await lastChecks(directory)), ...results], notEvaluated };
    },
  };
}

/** Specs in the packages of this machine, and their files. */
async function packageSpecs(
  directory: string,
): Promise<{ readonly items: readonly Item[]; readonly specs: readonly SupportSpec[] }> {
  const records = await readRecords(directory).catch(() => undefined);
  const items: Item[] = [];
  const specs: SupportSpec[] = [];
  for (const { tree, name, version } of records?.extracted ?? []) {
    const ref = addonRef(name, version, tree);
    const file = join(directory, nodePath.addon(ref), TROUBLESHOOT_YAML);
    const text = (await readLimited(file, SPEC_LIMIT).catch(() => undefined))?.toString('utf8');
    if (text === undefined) continue;
    items.push(fileItem(`curlew/specs/${name}.yaml`, file));
    specs.push(...parseSupportSpecs(`${formatRef(ref)}: ${TROUBLESHOOT_YAML}`, text).specs);
  }
  return { items, specs };
}

/** An analyzer whose facts are missing says nothing about the machine. */
function hostVerdicts(specs: readonly SupportSpec[], facts: readonly Fact[]): Verdicts {
  const notEvaluated: Verdicts['notEvaluated'][number][] = [];
  const evaluated = specs.map(({ host }) => ({
    ...host,
    analyzers: host.analyzers.filter((one) => {
      const analyzer = ANALYZERS.get(one.kind);
      const name = analyzer?.factName === undefined ? one.collectorName : analyzer.factName(one);
      const fact = analyzer && findFact(facts, analyzer, name);
      if (one.excluded || fact?.status === 'collected') return true;
      const missing = fact === undefined ? 'nothing was collected for it' : fact.problem;
      const reason = analyzer === undefined ? `the analyzer ${one.kind} is not known to this version` : missing;
      notEvaluated.push({ title: titleOf(one), spec: host.name ?? '', reason });
      return false;
    }),
  }));
  return { results: analyzeFacts(evaluated, facts), notEvaluated };
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
