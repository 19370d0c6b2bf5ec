/**
 * Checks before a run changes the machine: host packages that the operator must install, host preflights, and whether all
 * nodes of the cluster are ready.
 */
import { firstOf } from '../../core/counted.ts';
import { access } from 'node:fs/promises';
import { CurlewError } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import type { Installer } from '../../spec/installer.ts';
import { assembleSpecs } from '../preflight/assemble.ts';
import { countsOf, ignoring, type Counts, type PreflightResult } from '../preflight/analyze.ts';

import { countsText, resultLine } from '../preflight/report.ts';
import { runPreflights, withoutChanges } from '../preflight/run.ts';
import type { Situation } from '../preflight/situation.ts';
import { consultCluster, type ClusterRequest } from '../cluster/consult.ts';
import { loadBalancerMove } from '../cluster/load-balancer.ts';
import { KUBERNETES } from '../plan/hooks.ts';
import { whyChanged } from '../plan/plan.ts';
import { readRecords } from '../node/records.ts';
import { settingsDigest } from '../plan/records.ts';
import { addonSpecs, versionsOf } from './preflight-specs.ts';
import { missingPackages, type MissingPackage, type MissingPackages } from './required-packages.ts';
import type { CheckMode, RunView, RequestedPackage } from '../prepare/request.ts';

export interface HostChecks {
  readonly mode: CheckMode;
  readonly counts: Counts;
  readonly results: readonly PreflightResult[];
  /** Titles of checks that were skipped because they would change something. */
  readonly leftOut: readonly string[];
  /** Undefined if none are missing. */
  readonly packages: MissingPackages | undefined;
}

/** The variable of a spec that disables the built-in checks. */
export const EXCLUDED = 'EXCLUDE_BUILTIN_HOST_PREFLIGHTS';

interface CheckOptions {
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Checks this machine. Undefined if no checks are requested, or if the run resumes another one: its own changes would fail the
 * checks. `SPEC_INVALID` for mistakes in specs.
 */
export async function checkHost(
  view: RunView & CheckOptions,
  { readOnly }: { /** Skips checks that would write, or run programs that a spec names. */ readonly readOnly: boolean },
): Promise<HostChecks | undefined> {
  const { request, plan, report, signal } = view;
  const { checks } = request;
  if (checks === undefined || plan.continues !== undefined) return undefined;
  const sources = request.packages.map(({ source }) => source);
  const { scripts, env } = request;
  const packages = await missingPackages(sources, { scripts, env, signal });
  const situation = await situationOf(view, checks.installer);
  const addons = await addonSpecs(sources, situation, { signal });
  const { specs, warnings } = assembleSpecs(situation, { addons, others: [], builtIn: checks.builtIn });
  for (const { place, message } of warnings) {
    report({ type: 'note', level: 'warning', text: `${place.file}:${place.line}: ${message}` });
  }
  const selected = readOnly ? withoutChanges(specs) : { specs, leftOut: [] };
  const own = await runSpecs(selected.specs, { env, tool: checks.tool, report, signal });
  const isExcluded = request.variables.some(([name, text]) => name === EXCLUDED && text !== '');
  const all = [...own, ...(checks.builtIn && !isExcluded ? await checkNodes(view) : [])];
  const results = ignoreTitles(all, checks.ignored, { report });
  const { leftOut } = selected;
  if (results.length + leftOut.length === 0 && packages === undefined) return undefined;
  return { mode: checks.mode, counts: countsOf(results), results, leftOut, packages };
}

/**
 * The node checks of an install of these packages, for a command that changes nothing. Empty if an install would not check nodes,
 * or no cluster answers. `CLUSTER_FAILED` if the API server refuses.
 */
export async function checkNodesFor(
  packages: readonly RequestedPackage[],
  {
    directory,
    find,
    variables,
  }: Pick<ClusterRequest, 'find'> & { readonly directory: string } & Pick<RunView['request'], 'variables'>,
): Promise<readonly PreflightResult[]> {
  const kubernetes = packages.filter(({ source }) => source.ref.name === KUBERNETES);
  if (kubernetes.length === 0) return [];
  const own = await readRecords(directory);
  const request = { find, adopt: true, whole: true, release: undefined, entries: new Map() };
  const view = await consultCluster(request, own, { repairs: true });
  const loadBalancer = await loadBalancerMove(view, variables);
  const addons = kubernetes.map(({ source: { ref, addon }, settings }) => {
    const now = { ref, digest: addon.digest, settings: settingsDigest(settings) };
    const because = whyChanged(now, view.records.applied[KUBERNETES], { reapply: false, loadBalancer });
    const mode = because === undefined ? ('already applied' as const) : ('install' as const);
    return { ...now, mode, because: because ?? '', hasInstallScript: true };
  });
  return checkNodes({ request: { kind: 'install' }, records: view.records, plan: { addons }, view });
}

const MAX_NAMED = 10;

/** The parts of a run that the node checks use. */
interface NodesView extends Pick<RunView, 'records'> {
  readonly request: Pick<RunView['request'], 'kind'>;
  readonly plan: Pick<RunView['plan'], 'addons'>;
  readonly view: Pick<RunView['view'], 'cluster'>;
}

/**
 * Before an installed Kubernetes is replaced by another version, all control planes must be ready, as kubeadm requires. A worker that is
 * not ready is only a warning: it is upgraded later, or leaves. Empty for other runs.
 */
export async function checkNodes({ request, records, plan, view }: NodesView): Promise<readonly PreflightResult[]> {
  const planned = plan.addons.find(({ ref }) => ref.name === KUBERNETES);
  const isUpgrade = planned?.mode === 'install' && records.applied[KUBERNETES]?.finished === true;
  if (request.kind !== 'install' || !isUpgrade || view.cluster === undefined) return [];
  const nodes = await view.cluster.readNodes();
  const notReady = nodes.filter(({ ready }) => ready === 'False' || ready === 'Unknown');
  const control = notReady.filter(({ controlPlane }) => controlPlane);
  const [verdict, message] =
    control.length > 0
      ? (['fail', `Control planes that are not ready: ${namesOf(control)}; repair or remove them first`] as const)
      : notReady.length > 0
        ? (['warn', `Not ready: ${namesOf(notReady)}; the control plane is upgraded without them`] as const)
        : (['pass', 'All nodes are ready'] as const);
  return [{ verdict, title: 'Nodes of the cluster', message, strict: false, spec: 'built-in' }];
}

function namesOf(nodes: readonly { readonly name: string }[]): string {
  return firstOf(
    nodes.map(({ name }) => name),
    MAX_NAMED,
  );
}

async function runSpecs(
  specs: Parameters<typeof runPreflights>[0],
  { env, tool, report, signal }: Pick<RunView['request'], 'env'> & { readonly tool: string } & CheckOptions,
): Promise<readonly PreflightResult[]> {
  const isIncluded = ({ excluded }: { readonly excluded: boolean }): boolean => !excluded;
  if (!specs.some(({ collectors, analyzers }) => [...collectors, ...analyzers].some(isIncluded))) return [];
  const id = 'host preflights';
  return reportStep(
    report,
    { id, title: id },
    async () => {
      const inside: Report = (event) => {
        if (event.type === 'step-started') report({ type: 'step-log', id, text: event.title });
        else if (event.type === 'note') report(event);
      };
      return (await runPreflights(specs, { root: '/', env, tool }, { report: inside, signal })).results;
    },
    (results) => countsText(countsOf(results)),
  );
}

/** Like `ignoring`, and warns about titles that no check has. */
export function ignoreTitles(
  all: readonly PreflightResult[],
  titles: readonly string[],
  { report }: { readonly report: Report },
): readonly PreflightResult[] {
  const { results, unknown } = ignoring(all, titles);
  for (const title of unknown) {
    const text = `--ignore: no check has the title ${JSON.stringify(title)}; in results, the title is the part before the colon`;
    report({ type: 'note', level: 'warning', text });
  }
  return results;
}

/** Exists on machines with a control plane. */
const API_SERVER = '/etc/kubernetes/manifests/kube-apiserver.yaml';

/** Describes the run the way kURL's scripts do for its preflights (kurl.md 8.2): a repeated install is an upgrade. */
async function situationOf({ request, records, plan }: RunView, installer: Installer): Promise<Situation> {
  const { kind, variables, packages } = request;
  const value = (name: string): string => variables.find(([known]) => known === name)?.[1] ?? '';
  const hosts = (name: string): readonly string[] =>
    value(name)
      .split(',')
      .filter((host) => host !== '');
  const sources = packages.map(({ source }) => source);
  const hasApiServer = async (): Promise<boolean> =>
    access(API_SERVER).then(
      () => true,
      () => false,
    );
  // Without kubernetes, an applied add-on makes the run an upgrade.
  const isKnown = (): boolean =>
    !sources.some(({ ref }) => ref.name === KUBERNETES) &&
    plan.addons.some(({ ref }) => Object.hasOwn(records.applied, ref.name));
  return {
    installer,
    versions: versionsOf(sources),
    isPrimary: kind === 'install' || value('MASTER') !== '',
    isJoin: kind !== 'install',
    isUpgrade: kind === 'upgrade' || (kind === 'install' && ((await hasApiServer()) || isKnown())),
    hasKubernetes: Object.hasOwn(records.applied, KUBERNETES),
    primaryHosts: hosts('PRIMARY_HOST'),
    secondaryHosts: hosts('SECONDARY_HOST'),
  };
}

/** Reasons why a run must not start; none if it may. */
export function hostProblems({ mode, results, packages }: HostChecks): readonly string[] {
  if (mode === 'ignore') return [];
  const wrong = results.filter((result) => stops(result, mode)).map(resultLine);
  return [...packageLines(packages), ...wrong];
}

function stops({ verdict, ignored }: PreflightResult, mode: CheckMode): boolean {
  if (mode === 'ignore' || ignored === true) return false;
  return verdict === 'fail' || (verdict === 'warn' && mode === 'enforce-warnings');
}

/** Missing host packages as check results, for `curlew preflight`. */
export function packageResults(missing: MissingPackages | undefined): readonly PreflightResult[] {
  return (missing?.packages ?? []).map((one) => ({
    verdict: 'fail',
    title: `Host package ${one.name}`,
    message: isMissing(one),
    strict: false,
    spec: 'host packages',
  }));
}

function isMissing({ neededBy, offered }: MissingPackage): string {
  const unknown = offered ? '' : '; no repository of this machine has it';
  return `is missing: ${neededBy.join(', ')} ${neededBy.length === 1 ? 'needs' : 'need'} it${unknown}`;
}

function packageLines(missing: MissingPackages | undefined): readonly string[] {
  return (missing?.packages ?? []).map((one) => `host package ${one.name} ${isMissing(one)}`);
}

/** Reports problems that do not stop the run; throws `PREFLIGHT_FAILED` with all that do. */
export function requireFit(checks: HostChecks, { report }: Pick<CheckOptions, 'report'>): void {
  const { mode, results, packages } = checks;
  const problems = hostProblems(checks);
  const others = results.filter((result) => result.verdict !== 'pass' && !stops(result, mode));
  const warnings = [...(mode === 'ignore' ? packageLines(packages) : []), ...others.map(resultLine)];
  for (const text of warnings) report({ type: 'note', level: 'warning', text });
  if (problems.length === 0) return;
  const install = packages === undefined ? '' : `install the packages: ${packages.command}; `;
  throw new CurlewError('PREFLIGHT_FAILED', `this machine does not meet the requirements:\n${problems.join('\n')}`, {
    hint: `${install}fix the problems, then run the same command again; --ignore TITLE ignores one check, --preflights ignore all`,
  });
}
