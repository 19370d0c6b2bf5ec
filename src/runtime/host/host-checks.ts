/**
 * What a machine is asked before a run changes it: host packages that add-ons leave to the operator, host preflights; and
 * of its cluster, whether all nodes are ready.
 */
import { access } from 'node:fs/promises';
import { CurlewError } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import type { Installer } from '../../spec/installer.ts';
import { assembleSpecs } from '../preflight/assemble.ts';
import { countsOf, ignoring, type Counts, type PreflightResult } from '../preflight/judge.ts';
import { onlyLooking } from '../preflight/only-looking.ts';
import { resultLine } from '../preflight/report.ts';
import { runPreflights } from '../preflight/run.ts';
import type { Situation } from '../preflight/situation.ts';
import { consultCluster, type ClusterRequest } from '../cluster/consult.ts';
import { loadBalancerMove } from '../cluster/load-balancer.ts';
import { KUBERNETES } from '../hooks/hooks.ts';
import { whyChanged } from '../run/plan.ts';
import { readRecords, settingsDigest } from '../node/records.ts';
import { addonSpecs, versionsOf } from './preflight-specs.ts';
import { missingPackages, type MissingPackage, type MissingPackages } from './required-packages.ts';
import type { CheckMode, RunView, WantedPackage } from '../run/request.ts';

export interface HostChecks {
  readonly mode: CheckMode;
  readonly counts: Counts;
  readonly results: readonly PreflightResult[];
  /** Checks that were not made, because they do more than look. */
  readonly leftOut: readonly string[];
  /** Undefined when none lack. */
  readonly packages: MissingPackages | undefined;
}

/** The variable of a spec that leaves out the checks that are built in. */
export const EXCLUDED = 'EXCLUDE_BUILTIN_HOST_PREFLIGHTS';

interface CheckOptions {
  /** Leaves out what would write, or run what a spec names. */
  readonly onlyLook: boolean;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Looks at this machine. Undefined when nothing is asked for, or when the run goes on from one that was let pass: what
 * that has begun would be in the way of its own checks. Mistakes in specs are `SPEC_INVALID`.
 */
export async function checkHost(view: RunView, options: CheckOptions): Promise<HostChecks | undefined> {
  const { request, plan } = view;
  const { checks } = request;
  if (checks === undefined || plan.continues !== undefined) return undefined;
  const { report, signal } = options;
  const sources = request.packages.map(({ source }) => source);
  const { scripts, env } = request;
  const packages = await missingPackages(sources, { scripts, env, signal });
  const situation = await situationOf(view, checks.installer);
  const addons = await addonSpecs(sources, situation, { signal });
  const { specs, warnings } = assembleSpecs(situation, { addons, others: [], builtIn: checks.builtIn });
  for (const { place, message } of warnings) {
    report({ type: 'note', level: 'warning', text: `${place.file}:${place.line}: ${message}` });
  }
  const looking = options.onlyLook ? onlyLooking(specs) : { specs, leftOut: [] };
  const own = await carryOut(looking.specs, { env, tool: checks.tool, report, signal });
  const isExcluded = request.variables.some(([name, text]) => name === EXCLUDED && text !== '');
  const made = [...own, ...(checks.builtIn && !isExcluded ? await checkNodes(view) : [])];
  const results = ignoringSome(made, checks.ignored, { report });
  const told = { mode: checks.mode, counts: countsOf(results), results, leftOut: looking.leftOut, packages };
  return told.results.length + told.leftOut.length === 0 && packages === undefined ? undefined : told;
}

/**
 * What an install of these packages would find out about the cluster's nodes, for a command that changes nothing. Empty where it would not
 * ask, or no cluster answers; one that refuses is `CLUSTER_FAILED`.
 */
export async function checkNodesFor(
  packages: readonly WantedPackage[],
  {
    directory,
    find,
    variables,
  }: Pick<ClusterRequest, 'find'> & { readonly directory: string } & Pick<RunView['request'], 'variables'>,
): Promise<readonly PreflightResult[]> {
  const kubernetes = packages.filter(({ source }) => source.ref.name === KUBERNETES);
  if (kubernetes.length === 0) return [];
  const own = await readRecords(directory);
  const asking = { find, adopt: true, whole: true, release: undefined, entries: new Map() };
  const view = await consultCluster(asking, own);
  const loadBalancer = await loadBalancerMove(view, variables);
  const addons = kubernetes.map(({ source: { ref, addon }, settings }) => {
    const now = { ref, digest: addon.digest, settings: settingsDigest(settings) };
    const because = whyChanged(now, view.records.applied[KUBERNETES], { reapply: false, loadBalancer });
    const mode = because === undefined ? ('already applied' as const) : ('install' as const);
    return { ...now, mode, because: because ?? '', hasInstallScript: true };
  });
  return checkNodes({ request: { kind: 'install' }, records: view.records, plan: { addons }, view });
}

const MOST_NAMED = 10;

/** As much of a run as is looked at. */
interface NodesView extends Pick<RunView, 'records'> {
  readonly request: Pick<RunView['request'], 'kind'>;
  readonly plan: Pick<RunView['plan'], 'addons'>;
  readonly view: Pick<RunView['view'], 'cluster'>;
}

/**
 * kURL's preflight of the cluster (kurl.md 8.2): before another Kubernetes is put in the place of one that was installed
 * to the end, all nodes must be ready. Empty for other runs, where nothing is asked.
 */
export async function checkNodes({ request, records, plan, view }: NodesView): Promise<readonly PreflightResult[]> {
  const planned = plan.addons.find(({ ref }) => ref.name === KUBERNETES);
  const isUpgrade = planned?.mode === 'install' && records.applied[KUBERNETES]?.finished === true;
  if (request.kind !== 'install' || !isUpgrade || view.cluster === undefined) return [];
  const nodes = await view.cluster.readNodes();
  const away = nodes.filter(({ ready }) => ready === 'False' || ready === 'Unknown').map(({ name }) => name);
  const more = away.length - MOST_NAMED;
  const named = `${away.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const message = away.length === 0 ? 'All nodes are ready' : `Not ready, and Kubernetes is to be upgraded: ${named}`;
  const verdict = away.length === 0 ? 'pass' : 'fail';
  return [{ verdict, title: 'Nodes of the cluster', message, strict: false, spec: 'built-in' }];
}

async function carryOut(
  specs: Parameters<typeof runPreflights>[0],
  {
    env,
    tool,
    report,
    signal,
  }: Pick<RunView['request'], 'env'> & { readonly tool: string } & Omit<CheckOptions, 'onlyLook'>,
): Promise<readonly PreflightResult[]> {
  const isWanted = ({ excluded }: { readonly excluded: boolean }): boolean => !excluded;
  if (!specs.some(({ collectors, analyzers }) => [...collectors, ...analyzers].some(isWanted))) return [];
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

/** As `ignoring`, and reports titles that no check of this machine has. */
export function ignoringSome(
  made: readonly PreflightResult[],
  titles: readonly string[],
  { report }: { readonly report: Report },
): readonly PreflightResult[] {
  const { results, unknown } = ignoring(made, titles);
  for (const title of unknown) {
    const text = `--ignore: no check of this machine is titled ${JSON.stringify(title)}; results show their titles before the colon`;
    report({ type: 'note', level: 'warning', text });
  }
  return results;
}

export function countsText({ pass, warn, fail, ignored }: Counts): string {
  return `${pass} passed, ${warn} with a warning, ${fail} failed${ignored === undefined ? '' : `, ${ignored} ignored`}`;
}

/** What is there when the control plane of this machine was made. */
const API_SERVER = '/etc/kubernetes/manifests/kube-apiserver.yaml';

/** As kURL's scripts tell its preflights (kurl.md 8.2): a second install is an upgrade, and so is one of another node. */
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
  // Without kubernetes the add-ons themselves are all that this machine can be an older state of.
  const isKnown = (): boolean =>
    !sources.some(({ ref }) => ref.name === KUBERNETES) &&
    plan.addons.some(({ ref }) => Object.hasOwn(records.applied, ref.name));
  return {
    installer,
    versions: versionsOf(sources),
    isPrimary: kind === 'install' || value('MASTER') !== '',
    isJoin: kind !== 'install',
    isUpgrade: kind === 'upgrade' || (kind === 'install' && ((await hasApiServer()) || isKnown())),
    primaryHosts: hosts('PRIMARY_HOST'),
    secondaryHosts: hosts('SECONDARY_HOST'),
  };
}

/** Why a run may not begin, as sentences; none when it may. */
export function hostProblems({ mode, results, packages }: HostChecks): readonly string[] {
  if (mode === 'ignore') return [];
  const wrong = results.filter((result) => stops(result, mode)).map(resultLine);
  return [...packageLines(packages), ...wrong];
}

function stops({ verdict, ignored }: PreflightResult, mode: CheckMode): boolean {
  if (mode === 'ignore' || ignored === true) return false;
  return verdict === 'fail' || (verdict === 'warn' && mode === 'enforce-warnings');
}

/** The same as results of checks, as `curlew preflight` shows them. */
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
  const unknown = offered ? '' : '; no repository of this machine offers it';
  return `is missing: ${neededBy.join(', ')} ${neededBy.length === 1 ? 'needs' : 'need'} it${unknown}`;
}

function packageLines(missing: MissingPackages | undefined): readonly string[] {
  return (missing?.packages ?? []).map((one) => `host package ${one.name} ${isMissing(one)}`);
}

/** Tells what does not stop the run; `PREFLIGHT_FAILED` with all that does. */
export function requireFit(checks: HostChecks, { report }: Pick<CheckOptions, 'report'>): void {
  const { mode, results, packages } = checks;
  const problems = hostProblems(checks);
  const others = results.filter((result) => result.verdict !== 'pass' && !stops(result, mode));
  const said = [...(mode === 'ignore' ? packageLines(packages) : []), ...others.map(resultLine)];
  for (const text of said) report({ type: 'note', level: 'warning', text });
  if (problems.length === 0) return;
  const install = packages === undefined ? '' : `install the packages: ${packages.command}; `;
  throw new CurlewError(
    'PREFLIGHT_FAILED',
    `this machine is not fit for what is to be installed:\n${problems.join('\n')}`,
    {
      hint: `${install}mend what is told, then run the same command again; --ignore TITLE lets one check pass, --preflights ignore all`,
    },
  );
}
