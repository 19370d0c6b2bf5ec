/** What helm does with the release of an add-on. */
import * as v from 'valibot';
import { namedSecrets } from '../../spec/secret-settings.ts';
import { chartValues } from '../channel/chart-values.ts';
import { entryTitle, type Chart } from '../channel/channel.ts';
import { isUnderWay, removalAction } from '../channel/helm-release.ts';
import { takesOver } from '../channel/pass.ts';
import { digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { exactJson, jsonIn } from '../../core/json.ts';
import { parsed } from '../../core/schema.ts';
import { hiddenIn, type Addon, type Task } from './addon.ts';
import type { ChannelCluster } from './channel-cluster.ts';
import { chartPlace, type Helm, type HelmAnswers, type OpenHelm, type WebTrust } from './helm.ts';
import { releaseObjects, type AddonObject } from './addon-objects.ts';
import { timeoutOf, type DeliveryRequest, type Reporting } from './request.ts';
import { kindsNow, readRevisions, titleOfRelease, type ReleaseName } from './revisions.ts';

export interface ReleaseTools {
  readonly cluster: ChannelCluster;
  readonly request: DeliveryRequest;
  readonly helm: OpenHelm;
  readonly trust: () => Promise<WebTrust>;
  readonly archives: HelmAnswers['archives'];
}

/** The field manager of all releases. */
export const HELM_MANAGER = 'helm';

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
const renderedSchema = v.object({ manifest: v.string() });

export function chartOf(addon: Addon): Chart {
  if (addon.source?.type === 'chart') return addon.source.chart;
  throw new CurlewError('UNSUPPORTED', `cannot apply ${entryTitle(addon)}: it has no chart`);
}

export function releaseOf(addon: Addon): ReleaseName {
  const { releaseName: name, namespace } = chartOf(addon);
  return { name, namespace };
}

export function releaseValues(
  addon: Addon,
  { server, kubernetes: version, facts }: ChannelCluster,
): Readonly<Record<string, unknown>> {
  return addon.values ?? chartValues(chartOf(addon), addon, { server, version, kubernetes: facts.kubernetes });
}

/** Gets the chart and writes its values. `DIGEST_MISMATCH` if the add-on has another hash. The caller disposes the result. */
export async function prepareRelease(addon: Addon, tools: ReleaseTools): Promise<PreparedRelease> {
  const { cluster, request } = tools;
  const chart = chartOf(addon);
  const values = releaseValues(addon, cluster);
  const { values: hidden } = addon.access ?? {};
  const secrets = [...namedSecrets(values), ...hiddenIn(addon)];
  const helm = await tools.helm(secrets);
  try {
    const archive = chart.package === undefined ? await downloaded(addon, helm, tools) : await addon.read();
    const file = helm.file('chart.tgz', archive);
    const { name, namespace } = releaseOf(addon);
    const valuesFile = helm.file('values.json', exactJson(values));
    const layers = [valuesFile, ...(hidden ? [helm.file('secret.json', exactJson(hidden.values))] : [])];
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
      return outputOf(renderedSchema, text, doing).manifest;
    } catch (error) {
      if (!(error instanceof CurlewError) || !error.message.includes(NO_KIND)) throw error;
      const served = [...new Set(kinds.served.map(({ apiVersion }) => apiVersion))];
      const facts = ['--kube-version', cluster.kubernetes, '--api-versions', served.join(',')];
      return helm.run(['template', ...chartArgs, '--include-crds', ...facts], { doing });
    }
  };
  return releaseObjects(releaseOf(addon), await render(), kinds);
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

/**
 * An operation that was interrupted blocks all further ones: goes back to the last revision that was complete. Only one that is still
 * under way is recovered.
 */
export async function recoverRelease(
  { addon, record }: Task,
  { helm, cluster, request, report }: { readonly helm: Helm } & Pick<ReleaseTools, 'cluster' | 'request'> & Reporting,
): Promise<void> {
  const release = releaseOf(addon);
  // Another helm may have finished while the chart was downloaded.
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

function outputOf<T extends v.GenericSchema>(schema: T, text: string, doing: string): v.InferOutput<T> {
  const bad = (what: string): CurlewError =>
    new CurlewError('PROGRAM_FAILED', `cannot ${doing}: the output of helm has ${what}`);
  const value = jsonIn(text);
  if (value === undefined) throw bad('no JSON');
  return parsed(schema, value, bad);
}

/** Its archive, checked against the hash of the add-on. */
async function downloaded(addon: Addon, helm: Helm, { trust, archives }: ReleaseTools): Promise<Uint8Array> {
  const { caFile, allowHttp } = await trust();
  const { version, ...place } = chartOf(addon);
  const chosen = version === undefined ? [] : ['--version', version];
  const chart = [...chartPlace(place, { channel: addon.origin, allowHttp }), ...chosen];
  const { logins, authorities, trustsAll } = addon.access ?? {};
  // Logins are in memory no longer than they are needed.
  const key = digestOf(JSON.stringify([chart, caFile, logins, authorities, trustsAll]));
  const archive = await archives.get(key, async () => helm.pull(chart, { caFile, ...addon.access }));
  const actual = hexOf(digestOf(archive));
  if (addon.hash === '' || actual === addon.hash) return archive;
  // The next try downloads it again.
  archives.drop(key);
  const title = entryTitle(addon);
  throw new CurlewError(
    'DIGEST_MISMATCH',
    `cannot use the chart of ${title}: its hash is ${actual}, not ${addon.hash}`,
    {
      hint: 'correct the hash or the version of the chart in the channel',
    },
  );
}

/** Uninstalls a release; one that does not exist is no error. */
export async function uninstallRelease(cluster: ChannelCluster, release: ReleaseName, open: OpenHelm): Promise<void> {
  const isThere = (await readRevisions(cluster, release)).length > 0;
  if (removalAction({ once: false, cluster: true, release: isThere }) === 'drop-record') return;
  await using helm = await open();
  const args = ['uninstall', release.name, '--namespace', release.namespace];
  await helm.run(args, { doing: `remove the ${titleOfRelease(release)}` });
}
