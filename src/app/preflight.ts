/** Runs the host preflights of a spec and its add-ons, without an install. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, requireRefusal } from '../core/errors.ts';
import { readLimited } from '../platform/files/read-limited.ts';
import { readGivenFile } from '../platform/files/state-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { checkNodesFor, EXCLUDED, ignoreTitles, packageResults } from '../runtime/host/host-checks.ts';
import { runtimeResults } from '../runtime/host/host-plan.ts';
import { requireSystemOf } from '../runtime/host/own-system.ts';
import { addonSpecs, versionsOf } from '../runtime/host/preflight-specs.ts';
import { missingPackages } from '../runtime/host/required-packages.ts';
import type { SourcePackage } from '../runtime/node/source.ts';
import { assembleSpecs, SPEC_LIMIT, type AddonSpec, type PreflightText } from '../runtime/preflight/assemble.ts';
import { FACTS_LIMIT, formatFacts, parseFacts } from '../runtime/preflight/facts.ts';
import { countsOf, analysisStatus, type Counts, type PreflightResult } from '../runtime/preflight/analyze.ts';
import { savedReport } from '../runtime/preflight/report.ts';
import { judged, runPreflights } from '../runtime/preflight/run.ts';
import type { Situation } from '../runtime/preflight/situation.ts';
import type { GivenFlags } from '../spec/flags.ts';
import { hookVariables } from '../spec/variables.ts';
import type { Context } from '../core/context.ts';
import { clusterFinder } from '../steps/node/cluster.ts';
import { requireFolders } from '../steps/node/install-folder.ts';
import { flagsOf, requireValidSettings, specOf } from '../steps/node/spec.ts';
import { placesOf, usage } from '../steps/node/target.ts';
import { ownScripts } from '../own/scripts.ts';
import { noteWarnings, openSource } from '../steps/sources/run-source.ts';
import { toolVersion } from '../own/version.ts';
import { PREFLIGHT, type PreflightRequest } from '../requests/node.ts';
import { useCase } from '../core/request.ts';

export interface PreflightReport {
  /** 0 all passed, 1 failures, 2 ignored warnings, 3 warnings. */
  readonly status: 0 | 1 | 2 | 3;
  readonly counts: Counts;
  readonly results: readonly PreflightResult[];
}

const SAVED = { force: true, mode: 0o600 } as const;

/** Checks whether this machine meets the requirements. Changes only the files that the request names. */
export const preflight = useCase(PREFLIGHT, async (input, context): Promise<PreflightReport> => {
  const { cwd, env, report, signal } = context;
  const { flags, request } = flagsOf(input, context);
  await requireFolders(request, context);
  const { factsFile, places } = await sortFrom(request, context);
  const read = await readSituation({ ...request, from: places }, flags, context);
  const { situation, addons, packages, required } = read;
  // Facts describe another machine.
  const library = { scripts: ownScripts(), env, signal };
  if (factsFile === undefined) await requireSystemOf(packages, library);
  const missing = factsFile === undefined ? await missingPackages(required, library) : undefined;
  const others = await Promise.all((request.specs ?? []).map(async (file) => readSpec(file, cwd)));
  if (situation.installer === undefined && others.length === 0) {
    throw usage('nothing to check: specify a SPEC, or --bundle, --dir, --from or --installer');
  }
  // Add-ons of a trial are not for this machine.
  const builtIn = request.excludeBuiltin !== true && request.root === undefined;
  const { specs, warnings } = assembleSpecs(situation, { addons, others, builtIn });
  noteWarnings(report, warnings);
  const tool = toolVersion();
  const outcome =
    factsFile === undefined
      ? await runPreflights(specs, { root: '/', env, tool, limitMs: request.timeout }, { report, signal })
      : judged(
          specs,
          parseFacts((await readLimited(resolve(cwd, factsFile), FACTS_LIMIT)).toString('utf8'), factsFile),
        );
  const { facts } = outcome;
  // Facts describe another machine, whose cluster is not this one.
  const nodes = builtIn && factsFile === undefined ? await nodeResults(read, request, context) : [];
  const runtime = request.root === undefined && factsFile === undefined ? await runtimeResults(required, library) : [];
  const made = ignoreTitles([...runtime, ...outcome.results, ...nodes], request.ignore ?? [], { report });
  const results = [...packageResults(missing), ...made];
  const counts = countsOf(results);
  if (missing !== undefined) {
    report({ type: 'note', level: 'info', text: `install the missing host packages: ${missing.command}` });
  }
  const { saveFacts: factsTo, save: textTo } = request;
  if (factsTo !== undefined) await writeText(resolve(cwd, factsTo), formatFacts(facts), SAVED);
  if (textTo !== undefined) {
    const text = savedReport({ tool: `curlew ${tool}`, options: optionLines(situation), results });
    await writeText(resolve(cwd, textTo), text, SAVED);
  }
  return { status: analysisStatus(counts, request.ignoreWarnings === true), counts, results };
});

/** Whether all nodes of the cluster are ready, if an install on this machine would check it. */
async function nodeResults(
  { situation, required }: ReadSituation,
  request: PreflightRequest,
  context: Context,
): Promise<readonly PreflightResult[]> {
  const { installer: spec, versions, isPrimary: primary, isJoin } = situation;
  if (spec === undefined || !primary || isJoin) return [];
  const variables = hookVariables(spec, versions);
  if (variables.some(([name, text]) => name === EXCLUDED && text !== '')) return [];
  const settings = new Map(spec.addons.map((addon) => [addon.name, addon.settings] as const));
  const packages = required.map((source) => ({ source, settings: settings.get(source.ref.name) ?? {} }));
  const { directory } = placesOf(request, context);
  try {
    return await checkNodesFor(packages, { directory, variables, find: clusterFinder(request, context) });
  } catch (error) {
    requireRefusal(error, context.signal);
    const text = `an install also checks the nodes of the cluster, which were not checked here: ${error.message}`;
    context.report({ type: 'note', level: 'warning', text });
    return [];
  }
}

/** A file contains facts; a folder or an address is a store. */
async function sortFrom(
  request: PreflightRequest,
  { cwd }: Context,
): Promise<{ readonly factsFile: string | undefined; readonly places: readonly string[] }> {
  const files: string[] = [];
  const places: string[] = [];
  for (const from of request.from ?? []) {
    const stats = await stat(resolve(cwd, from)).catch(() => undefined);
    (stats?.isFile() === true ? files : places).push(from);
  }
  if (files.length > 1) throw usage('--from can name only one file of facts');
  return { factsFile: files[0], places };
}

interface ReadSituation {
  readonly situation: Situation;
  readonly addons: readonly AddonSpec[];
  /** All planned packages, with companion packages. */
  readonly packages: readonly SourcePackage[];
  /** The packages of the spec. */
  readonly required: readonly SourcePackage[];
}

async function readSituation(request: PreflightRequest, flags: GivenFlags, context: Context): Promise<ReadSituation> {
  const bare: Situation = {
    installer: undefined,
    versions: new Map(),
    isPrimary: request.isPrimary ?? true,
    isJoin: request.isJoin === true,
    isUpgrade: request.isUpgrade === true,
    primaryHosts: [...(request.primaryHost ?? []), ...hostsOf(flags, 'PRIMARY_HOST')],
    secondaryHosts: [...(request.secondaryHost ?? []), ...hostsOf(flags, 'SECONDARY_HOST')],
  };
  const hasSource = request.bundle !== undefined || request.dir !== undefined || (request.from ?? []).length > 0;
  if (!hasSource && request.installer === undefined && flags.overlay === undefined) {
    if (flags.settings.length > 0) throw usage('flags need a spec: --bundle, --dir, --from or --installer');
    return { situation: bare, addons: [], packages: [], required: [] };
  }
  if (!hasSource) {
    const source = { installerText: undefined, airgap: false };
    const { installer: spec } = await specOf(request, context, { source, flags, recorded: undefined });
    return { situation: { ...bare, installer: spec }, addons: [], packages: [], required: [] };
  }
  const { directory } = placesOf(request, context);
  await using source = await openSource(request, context, { directory, remember: false });
  const { installer: spec } = await specOf(request, context, { source, flags, recorded: undefined });
  const packages = await source.choose(spec);
  await requireValidSettings(spec, packages, context, request.set);
  const situation = { ...bare, installer: spec, versions: versionsOf(packages) };
  const addons = await addonSpecs(packages, situation, context);
  const machine = (await source.offered(packages)).filter(({ role }) => role === 'machine');
  return { situation, addons, packages: [...packages, ...machine.map((one) => one.source)], required: packages };
}

/** A comma-separated list. */
function hostsOf({ variables }: GivenFlags, name: string): readonly string[] {
  return (variables.get(name) ?? '').split(',').filter((host) => host !== '');
}

async function readSpec(file: string, cwd: string): Promise<PreflightText> {
  const text = await readGivenFile(resolve(cwd, file), SPEC_LIMIT);
  if (text !== undefined) return { file, text };
  const isFlag = file.includes('=');
  throw new CurlewError(
    'NOT_FOUND',
    `cannot read ${isFlag ? file.split('=', 1)[0] : file}: no such file${isFlag ? ' or flag' : ''}`,
    { hint: isFlag ? 'docs/kurl-compatibility.md lists the flags' : undefined },
  );
}

function optionLines({
  isPrimary: primary,
  isJoin,
  isUpgrade,
  primaryHosts,
  secondaryHosts,
}: Situation): readonly string[] {
  return [
    `is-primary: ${primary}`,
    `is-join: ${isJoin}`,
    `is-upgrade: ${isUpgrade}`,
    ...primaryHosts.map((host) => `primary-host: ${host}`),
    ...secondaryHosts.map((host) => `secondary-host: ${host}`),
  ];
}
