/** What helm does with the release of an add-on. */
import * as v from 'valibot';
import { chartValues } from '../channel/chart-values.ts';
import { entryTitle, type Chart } from '../channel/channel.ts';
import { takesOver, type LiveState } from '../channel/pass.ts';
import { recordKey, type AddonRecord, type RecordedRelease } from '../channel/record.ts';
import { digestOf, hexOf } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { exactJson, isObject, jsonIn } from '../core/json.ts';
import { checked } from '../core/schema.ts';
import { secretsIn, type Secret } from '../core/secret.ts';
import { listObjects } from '../kube/objects.ts';
import { discover, type Discovery, type Resource } from '../kube/resources.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { isSecretName } from '../spec/secret-settings.ts';
import type { Context } from '../core/context.ts';
import { hiddenIn, type Addon, type Task } from './addon.ts';
import { AT_ONCE, type ChannelCluster } from './cluster.ts';
import { openHelm, readChartFile, type Helm, type WebTrust } from './helm.ts';
import { releaseObjects, type AddonObject } from './objects.ts';
import { timeoutOf, type DeliveryRequest, type Reporting } from './request.ts';

export interface ReleaseTools {
  readonly cluster: ChannelCluster;
  readonly request: DeliveryRequest;
  readonly context: Pick<Context, 'env' | 'cwd'>;
  readonly trust: () => Promise<WebTrust>;
}

/** The field manager of all releases. */
export const HELM_MANAGER = 'helm';

export type ReleaseName = Pick<RecordedRelease, 'name' | 'namespace'>;

export interface ReleaseRevision {
  readonly revision: number;
  /** Status from helm, such as `deployed` or `pending-upgrade`. */
  readonly status: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

const SECRETS: Resource = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };

/** Statuses of a release that an operation has left, or is in. */
const UNDER_WAY = /^(?:pending-|uninstalling)/;

export function isUnderWay({ status }: ReleaseRevision): boolean {
  return UNDER_WAY.test(status);
}

export function titleOfRelease({ name, namespace }: ReleaseName): string {
  return `release ${namespace}/${name}`;
}

/** The revisions of a release, the oldest first; empty if it does not exist. Reads labels only. */
export async function readRevisions(
  { call }: Pick<ChannelCluster, 'call'>,
  { name, namespace }: ReleaseName,
): Promise<readonly ReleaseRevision[]> {
  return (await listRevisions({ call }, namespace, `owner=helm,name=${name}`)).get(name) ?? [];
}

async function listRevisions(
  { call }: Pick<ChannelCluster, 'call'>,
  namespace: string,
  labelSelector: string,
): Promise<ReadonlyMap<string, readonly ReleaseRevision[]>> {
  const secrets = (await listObjects(call, SECRETS, { namespace, labelSelector, onlyMetadata: true })) ?? [];
  const revisions = new Map<string, ReleaseRevision[]>();
  for (const { metadata } of secrets) {
    const { name = '', version = '', status = '', modifiedAt, createdAt } = metadata.labels;
    const one = { revision: Number(version), status, since: Number(modifiedAt ?? createdAt ?? 0) * 1000 };
    const known = revisions.get(name);
    if (known === undefined) revisions.set(name, [one]);
    else known.push(one);
  }
  return new Map([...revisions].map(([name, all]) => [name, all.toSorted((a, b) => a.revision - b.revision)]));
}

/** What helm is given, in the private folder. */
export interface PreparedRelease extends AsyncDisposable {
  readonly helm: Helm;
  /** Arguments of every command that renders the chart: release, chart, namespace, values. */
  readonly chartArgs: readonly string[];
  /** Further arguments of `helm upgrade`. */
  readonly args: readonly string[];
}

/** What helm says if the chart has objects of kinds that it defines itself, in its folder `crds`. */
const NO_KIND = 'ensure CRDs are installed first';
const PATIENCE_MS = 30_000;
const renderedSchema = v.object({ manifest: v.string() });
const metadataSchema = v.object({ chart: v.string(), version: v.string(), revision: v.number(), status: v.string() });

export function chartOf(addon: Addon): Chart {
  if (addon.source?.type === 'chart') return addon.source.chart;
  throw new CurlewError('UNSUPPORTED', `cannot apply ${entryTitle(addon)}: it has no chart`);
}

export function releaseOf(addon: Addon): ReleaseName {
  const { releaseName: name, namespace } = chartOf(addon);
  return { name, namespace };
}

export function valuesOf(
  addon: Addon,
  { server, kubernetes: version, facts }: ChannelCluster,
): Readonly<Record<string, unknown>> {
  return addon.values ?? chartValues(chartOf(addon), addon, { server, version, kubernetes: facts.kubernetes });
}

/** Gets the chart and writes its values. `DIGEST_MISMATCH` if the add-on has another hash. The caller disposes the result. */
export async function prepareRelease(
  addon: Addon,
  { cluster, request, context, trust }: ReleaseTools,
): Promise<PreparedRelease> {
  const chart = chartOf(addon);
  const values = valuesOf(addon, cluster);
  const { values: hidden } = addon.access ?? {};
  const secrets = [...namedSecrets(values), ...hiddenIn(addon)];
  const helm = await openHelm(request, cluster, context, secrets);
  try {
    const file =
      chart.package === undefined
        ? await helm.pull(chart, { channel: addon.origin, ...(await trust()), ...addon.access })
        : await helm.file('chart.tgz', await addon.read());
    if (chart.package === undefined && addon.hash !== '') await requireHash(file, addon);
    const { name, namespace } = releaseOf(addon);
    const valuesFile = await helm.file('values.json', exactJson(values));
    const layers = [valuesFile, ...(hidden ? [await helm.file('secret.json', exactJson(hidden.values))] : [])];
    const chartArgs = [name, file, '--namespace', namespace, ...layers.flatMap((layer) => ['--values', layer])];
    const owned = takesOver(request, addon.name) ? ['--take-ownership'] : [];
    return {
      helm,
      chartArgs,
      args: ['upgrade', '--install', ...chartArgs, '--hide-notes', ...owned],
      [Symbol.asyncDispose]: async () => helm[Symbol.asyncDispose](),
    };
  } catch (error) {
    await helm[Symbol.asyncDispose]();
    throw error;
  }
}

/** A release may bring kinds, so what the cluster serves is asked for again. */
async function kindsNow({ api, signal }: ChannelCluster): Promise<Discovery> {
  return discover(api, { patienceMs: PATIENCE_MS, signal });
}

/** The objects of the release that the chart makes on this cluster: a dry run of the upgrade. */
export async function renderRelease(
  addon: Addon,
  { helm, args, chartArgs }: PreparedRelease,
  cluster: ChannelCluster,
): Promise<readonly AddonObject[]> {
  const doing = `render the chart of ${entryTitle(addon)}`;
  const kinds = await kindsNow(cluster);
  const render = async (): Promise<string> => {
    try {
      const text = await helm.run([...args, '--dry-run=server', '--output', 'json'], { doing });
      return parsed(renderedSchema, text, doing).manifest;
    } catch (error) {
      if (!(error instanceof CurlewError) || !error.message.includes(NO_KIND)) throw error;
      const served = [...new Set(kinds.served.map(({ apiVersion }) => apiVersion))];
      const facts = ['--kube-version', cluster.kubernetes, '--api-versions', served.join(',')];
      return helm.run(['template', ...chartArgs, '--include-crds', ...facts], { doing });
    }
  };
  return releaseObjects(releaseOf(addon), await render(), kinds);
}

/** The objects of a revision; default: the last one. */
export async function currentObjects(
  helm: Helm,
  { name, namespace, revision }: Pick<RecordedRelease, 'name' | 'namespace' | 'revision'>,
  cluster: ChannelCluster,
): Promise<readonly AddonObject[]> {
  const doing = `read the ${titleOfRelease({ name, namespace })}`;
  const which = revision === undefined ? [] : ['--revision', String(revision)];
  const text = await helm.run(['get', 'manifest', name, '--namespace', namespace, ...which], { doing });
  return releaseObjects({ name, namespace }, text, await kindsNow(cluster));
}

export async function upgradeRelease(
  { addon, action }: Task,
  { helm, args }: PreparedRelease,
  { cluster, request, report }: Pick<ReleaseTools, 'cluster' | 'request'> & Reporting,
): Promise<void> {
  const { wait, atomic, namespace } = chartOf(addon);
  const timeoutMs = timeoutOf(request);
  const isForced =
    addon.drift === 'Revert' ||
    action === 'revert' ||
    request.forceConflicts === true ||
    takesOver(request, addon.name);
  const more = [
    '--timeout',
    `${Math.ceil(timeoutMs / 1000)}s`,
    ...(cluster.namespaces.has(namespace) ? [] : ['--create-namespace']),
    ...(wait ? ['--wait'] : []),
    ...(atomic ? [helm.major === 3 ? '--atomic' : '--rollback-on-failure'] : []),
    // Helm 3 always takes fields from others.
    ...(helm.major === 4 && isForced ? ['--server-side=true', '--force-conflicts'] : []),
  ];
  // Each hook may take as long as the limit.
  const limitMs = 3 * timeoutMs + 60_000;
  await helm.run([...args, ...more], { doing: `apply ${entryTitle(addon)}`, line: report, limitMs });
}

/** An operation that was interrupted blocks all further ones: goes back to the last revision that was complete. */
export async function recoverRelease(
  { addon, record }: Task,
  helm: Helm,
  { cluster, request, report }: Pick<ReleaseTools, 'cluster' | 'request'> & Reporting,
): Promise<void> {
  const release = releaseOf(addon);
  const revisions = await readRevisions(cluster, release);
  const last = revisions.at(-1);
  if (last === undefined || !isUnderWay(last)) return;
  const title = titleOfRelease(release);
  const isOurs = record?.state === 'Progressing';
  if (!isOurs && Date.now() - last.since < timeoutOf(request)) {
    throw new CurlewError('BUSY', `cannot apply ${entryTitle(addon)}: ${title} is ${last.status}`, {
      hint: 'wait until the other helm has finished, then run the same command again',
    });
  }
  const good =
    revisions.findLast(({ status }) => status === 'deployed') ??
    revisions.findLast(({ status }) => status === 'superseded');
  const isGone = last.status === 'uninstalling' || good === undefined;
  report(`${title} was left ${last.status}: ${isGone ? 'uninstalling it' : `going back to revision ${good.revision}`}`);
  const args = isGone ? ['uninstall', release.name] : ['rollback', release.name, String(good.revision)];
  const limitMs = 3 * timeoutOf(request) + 60_000;
  await helm.run([...args, '--namespace', release.namespace], {
    doing: `recover the ${title}`,
    line: report,
    limitMs,
  });
}

/** Reads the metadata of the last revision. */
export async function readMetadata(helm: Helm, { name, namespace }: ReleaseName): Promise<RecordedRelease> {
  const doing = `read the ${titleOfRelease({ name, namespace })}`;
  const text = await helm.run(['get', 'metadata', name, '--namespace', namespace, '--output', 'json'], { doing });
  const { chart, version, revision, status } = parsed(metadataSchema, text, doing);
  return { name, namespace, revision, status, chart: `${chart}-${version}` };
}

function parsed<T extends v.GenericSchema>(schema: T, text: string, doing: string): v.InferOutput<T> {
  const bad = (what: string): CurlewError =>
    new CurlewError('PROGRAM_FAILED', `cannot ${doing}: the output of helm has ${what}`);
  const value = jsonIn(text);
  if (value === undefined) throw bad('no JSON');
  checked(schema as never, value, bad);
  return v.parse(schema, value);
}

async function requireHash(file: string, addon: Addon): Promise<void> {
  const actual = hexOf(digestOf(await readChartFile(file)));
  if (actual === addon.hash) return;
  const title = entryTitle(addon);
  throw new CurlewError(
    'DIGEST_MISMATCH',
    `cannot use the chart of ${title}: its hash is ${actual}, not ${addon.hash}`,
    {
      hint: 'correct the hash or the version of the chart in the channel',
    },
  );
}

/** Texts and numbers below names of secrets, which helm may print in its errors. */
function namedSecrets(value: unknown): readonly Secret[] {
  if (Array.isArray(value)) return value.flatMap(namedSecrets);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => (isSecretName(key) ? secretsIn(item) : namedSecrets(item)));
}

/** Uninstalls a release; one that does not exist is no error. */
export async function uninstallRelease(
  cluster: ChannelCluster,
  release: ReleaseName,
  { request, context }: Pick<ReleaseTools, 'request' | 'context'>,
): Promise<void> {
  if ((await readRevisions(cluster, release)).length === 0) return;
  await using helm = await openHelm(request, cluster, context);
  const args = ['uninstall', release.name, '--namespace', release.namespace];
  await helm.run(args, { doing: `remove the ${titleOfRelease(release)}` });
}

/** How releases differ from what was recorded, by {@link recordKey}: one list for each namespace. */
export async function lookAtReleases(
  { call, signal }: Pick<ChannelCluster, 'call' | 'signal'>,
  records: readonly AddonRecord[],
): Promise<ReadonlyMap<string, LiveState>> {
  const namespaces = new Set(records.flatMap(({ release }) => release?.namespace ?? []));
  const lists = await mapLimited(
    [...namespaces],
    async (namespace) => [namespace, await listRevisions({ call }, namespace, 'owner=helm')] as const,
    { width: AT_ONCE, signal },
  );
  const live = new Map(lists);
  return new Map(
    records.flatMap(({ namespace, addon, release }) => {
      if (release?.revision === undefined) return [];
      const last = live.get(release.namespace)?.get(release.name)?.at(-1);
      const isSame = last?.revision === release.revision && last.status === release.status;
      const title = titleOfRelease(release);
      const look = { missing: last === undefined ? [title] : [], changed: last === undefined || isSame ? [] : [title] };
      return [[recordKey(namespace, addon), look] as const];
    }),
  );
}
