/** Add-ons that are charts: releases of the `helm` program. */
import { chartValues } from '../channel/chart-values.ts';
import { entryTitle } from '../channel/channel.ts';
import { takesOver, type PlannedAddon, type SeenAddon } from '../channel/pass.ts';
import { addonId, type RecordedRelease } from '../channel/record.ts';
import { canonicalJson, digestOf, hexOf } from '../core/digest.ts';
import { withDigits } from '../core/json.ts';
import { CurlewError } from '../core/errors.ts';
import { getObject } from '../kube/objects.ts';
import { ProgramError } from '../platform/process/run-program.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { failedState, recordState, requireNamespaces, revisionOf } from './addon-record.ts';
import { markNodes, previewObjects, waitForHealth, type ApplyOptions } from './apply-addon.ts';
import {
  AT_ONCE,
  HELM_MANAGER,
  joinKinds,
  kindsOf,
  recordedKinds,
  writeAnnotation,
  type ChannelCluster,
} from './cluster.ts';
import {
  chartOf,
  currentObjects,
  prepareRelease,
  readMetadata,
  recoverRelease,
  releaseOf,
  renderRelease,
  upgradeRelease,
  valueFacts,
  type ReleaseTools,
} from './helm-release.ts';
import type { Helm } from './helm.ts';
import { titleOfObject, type AddonObject } from './manifest.ts';
import { isUnderWay, readRevisions, titleOfRelease, type ReleaseName, type ReleaseRevision } from './releases.ts';
import { timeoutOf } from './request.ts';
import {
  changedObjects,
  manifestChanges,
  resultOf,
  troubleOf,
  type AddonResult,
  type ChangedObject,
} from './result.ts';

/** Of the add-ons of a pass. */
export class Charts {
  readonly #tools: ReleaseTools;
  readonly #cluster: ChannelCluster;
  constructor(tools: ReleaseTools) {
    this.#tools = tools;
    this.#cluster = tools.cluster;
  }

  /** What the upgrade would change: rendered by helm with a dry run on the server, and compared like a manifest. */
  async preview(planned: SeenAddon): Promise<AddonResult> {
    const release = releaseOf(planned);
    this.#requireNamespace(planned);
    const revisions = await this.#own(planned);
    const last = revisions.at(-1);
    if (last !== undefined && isUnderWay(last)) {
      const fields = [{ field: '.status', before: last.status, after: 'deployed' }];
      return resultOf(planned, {
        state: 'planned',
        objects: [{ object: titleOfRelease(release), change: 'change', fields }],
      });
    }
    await using prepared = await prepareRelease(planned, this.#tools);
    const wanted = await renderRelease(planned, prepared, this.#cluster);
    const before = await deployedObjects(prepared.helm, release, { revisions, cluster: this.#cluster });
    const previews = await previewObjects(this.#cluster, wanted, {
      id: addonId(planned.entry),
      force: true,
      keep: false,
      handOver: 'never',
    });
    const old = new Map(manifestChanges(before, wanted).map((one) => [one.object, one]));
    const whole = previews.map((preview) => {
      const removed = (old.get(titleOfObject(preview.object))?.fields ?? []).filter(
        ({ field, after }) => after === undefined && !preview.fields.some((one) => one.field === field),
      );
      if (preview.change === 'create' || removed.length === 0) return preview;
      return { ...preview, change: 'change' as const, fields: [...preview.fields, ...removed] };
    });
    const errors = whole.flatMap(({ error }) => error ?? []);
    return resultOf(planned, {
      state: errors.length > 0 ? 'failed' : 'planned',
      objects: [...changedObjects(whole), ...[...old.values()].filter(({ change }) => change === 'delete')],
      errors: errors.map(troubleOf),
    });
  }

  /** Of a release that stays as others have changed it: what an upgrade would change. */
  async drift(planned: SeenAddon): Promise<readonly ChangedObject[]> {
    const release = releaseOf(planned);
    const { changed } = planned.look;
    const last = (await readRevisions(this.#cluster, release)).at(-1);
    await using prepared = await prepareRelease(planned, this.#tools);
    const isOther = changed.includes(titleOfRelease(release));
    const objects = isOther && last?.status !== 'deployed' ? [] : await renderRelease(planned, prepared, this.#cluster);
    const chosen = isOther ? objects : objects.filter((object) => changed.includes(titleOfObject(object)));
    const options = { id: addonId(planned.entry), force: true, keep: false, handOver: 'never' } as const;
    const found = changedObjects(await previewObjects(this.#cluster, chosen, options));
    if (!isOther) return found;
    const [before, after] = [last, planned.record?.release].map((one) => `${one?.revision} ${one?.status}`);
    return [
      { object: titleOfRelease(release), change: 'change', fields: [{ field: '.revision', before, after }] },
      ...found,
    ];
  }

  async apply(planned: SeenAddon, report: ApplyOptions['report']): Promise<AddonResult> {
    const cluster = this.#cluster;
    const { entry, action, record } = planned;
    const release = releaseOf(planned);
    this.#requireNamespace(planned);
    const revisions = await this.#own(planned);
    const hash = await chartHash(planned, this.#tools);
    const desired = revisionOf(cluster, planned, entry.hash === '' ? hash : entry.hash);
    await using prepared = await prepareRelease(planned, this.#tools);
    const { helm } = prepared;
    const before = await deployedObjects(helm, release, { revisions, cluster });
    const { hash: _before, ...known }: RecordedRelease = record?.release ?? release;
    const begun = { ...planned, record: record && { ...record, release: known } };
    const started = { desired, release: known, objects: joinKinds(record?.objects ?? [], kindsOf(before)) };
    await recordState(cluster, begun, { state: 'Progressing', reason: 'the last run was interrupted', ...started });
    try {
      const last = revisions.at(-1);
      const isRestored = action === 'restore' || action === 'revert';
      const isDeployed = last?.status === 'deployed' && last.revision === record?.release?.revision;
      // Only its health was missing.
      if (isRestored || !isDeployed || record?.release?.hash !== hash) {
        await recoverRelease(planned, helm, { ...this.#tools, report });
        await upgradeRelease(planned, prepared, { ...this.#tools, report });
      }
      return await this.#settle(planned, helm, { before, hash, desired, report });
    } catch (error) {
      if (!(error instanceof CurlewError) || cluster.signal.aborted) throw error;
      // A helm that was killed has left its release as it was: the next pass may recover that at once.
      const isKilled = error instanceof ProgramError && error.problem !== 'status';
      const state = isKilled ? ({ state: 'Progressing', reason: error.message } as const) : failedState(error);
      const { hash: _now, ...now }: RecordedRelease = await readMetadata(helm, release).catch(() => known);
      await recordState(cluster, begun, { ...state, ...started, release: now });
      return resultOf(planned, { state: 'failed', errors: [troubleOf(error)] });
    }
  }

  /** After helm has succeeded: waits for health, and records. */
  async #settle(
    planned: SeenAddon,
    helm: Helm,
    {
      before,
      hash,
      desired,
      report,
    }: {
      readonly before: readonly AddonObject[];
      readonly hash: string;
      readonly desired: ReturnType<typeof revisionOf>;
      readonly report: ApplyOptions['report'];
    },
  ): Promise<AddonResult> {
    const cluster = this.#cluster;
    const { entry, installed, action, look } = planned;
    const named = releaseOf(planned);
    const release = { ...(await readMetadata(helm, named)), hash };
    const objects = await currentObjects(helm, named, cluster);
    const live = await mapLimited(
      objects,
      async (object) => {
        const found = await getObject(cluster.call, object.resource, object);
        return found === undefined ? [] : [{ resource: object.resource, live: found }];
      },
      { width: AT_ONCE, signal: cluster.signal },
    );
    const applied = live.flat();
    const unhealthy = await waitForHealth(cluster, applied, {
      objects,
      timeoutMs: timeoutOf(this.#tools.request),
      report,
    });
    const changes = manifestChanges(before, objects);
    const restored = objects
      .map(titleOfObject)
      .filter(
        (title) =>
          [...look.missing, ...look.changed].includes(title) && !changes.some(({ object }) => object === title),
      );
    const outcome = {
      objects: [
        ...changes,
        ...restored.map((object) => {
          const change = look.missing.includes(object) ? ('create' as const) : ('change' as const);
          return { object, change, fields: [] };
        }),
      ],
    };
    const state = { desired, release, objects: recordedKinds(applied, HELM_MANAGER) };
    const [first] = unhealthy;
    if (first !== undefined) {
      await recordState(cluster, planned, { ...failedState(first), ...state });
      return resultOf(planned, { state: 'failed', ...outcome, errors: unhealthy.map(troubleOf) });
    }
    const isNew = installed !== undefined && action !== 'restore' && action !== 'revert';
    const nodes = isNew ? await markNodes(cluster, entry.needsRollingUpdate) : [];
    await recordState(cluster, planned, {
      state: 'Succeeded',
      reason: '',
      ...state,
      applied: desired,
      knownGood: desired,
    });
    await writeAnnotation(cluster, planned, desired);
    return resultOf(planned, { state: 'applied', ...outcome, nodes });
  }

  /** That of the record; helm creates the one of the release. */
  #requireNamespace(planned: SeenAddon): void {
    requireNamespaces(planned.entry, [], new Set([...this.#cluster.namespaces, releaseOf(planned).namespace]));
  }

  /** The revisions of the release, which must be the add-on's own, or may be taken over. */
  async #own(planned: SeenAddon): Promise<readonly ReleaseRevision[]> {
    requireSameKind(planned);
    const release = releaseOf(planned);
    const revisions = await readRevisions(this.#cluster, release);
    const isOwn = planned.record?.release !== undefined || takesOver(this.#tools.request, planned.entry.name);
    if (revisions.length === 0 || isOwn) return revisions;
    const what = `cannot apply ${entryTitle(planned.entry)}: ${titleOfRelease(release)} has another owner`;
    throw new CurlewError('CLUSTER_FAILED', what, {
      hint: `--take-over=${planned.entry.name} makes it the release of this add-on; releaseName in the channel gives it another name`,
    });
  }
}

/** An unchanged entry is another one if its chart, its values or the facts in these have changed. Does not run helm. */
export async function withChartContent(
  planned: PlannedAddon,
  tools: Pick<ReleaseTools, 'files' | 'cluster'>,
): Promise<PlannedAddon> {
  const { action, record, entry } = planned;
  if (entry.source?.type !== 'chart' || action !== 'none' || record?.release?.hash === undefined) return planned;
  try {
    if ((await chartHash(planned, tools)) === record.release.hash) return planned;
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    tools.cluster.signal.throwIfAborted();
    // An archive that cannot be read now is no change; other mistakes are reported when it is applied.
    if (error.code !== 'MANIFEST_INVALID') return planned;
  }
  return { ...planned, action: 'update', reason: 'another chart or other values' };
}

/** Of everything that determines the release, in hex. */
async function chartHash(
  planned: PlannedAddon,
  { files, cluster }: Pick<ReleaseTools, 'files' | 'cluster'>,
): Promise<string> {
  const { channel, entry } = planned;
  const { repoURL = '', oci = '', name = '', version = '', releaseName, namespace, ...others } = chartOf(planned);
  const archive =
    others.package !== undefined && entry.hash === ''
      ? hexOf(digestOf(await files.readManifest(channel, entry, cluster)))
      : entry.hash;
  const values = chartValues(others, entry, valueFacts(cluster));
  const identity = { repoURL, oci, name, version, archive, releaseName, namespace, values };
  return hexOf(digestOf(canonicalJson(withDigits(identity))));
}

/** Those of the last revision that is complete. */
async function deployedObjects(
  helm: Helm,
  release: ReleaseName,
  { revisions, cluster }: { readonly revisions: readonly ReleaseRevision[]; readonly cluster: ChannelCluster },
): Promise<readonly AddonObject[]> {
  const last = revisions.findLast(({ status }) => status === 'deployed');
  return last === undefined ? [] : currentObjects(helm, { ...release, revision: last.revision }, cluster);
}

/** A chart and a manifest, and two releases, do not know each other's objects: refuses to go from one to the other. */
export function requireSameKind({ entry, record }: PlannedAddon): void {
  const { source } = entry;
  const chart = source?.type === 'chart' ? source.chart : undefined;
  const { release, objects = [] } = record ?? {};
  const before = release === undefined ? (objects.length > 0 ? 'a manifest' : undefined) : titleOfRelease(release);
  const wanted =
    chart === undefined ? 'a manifest' : titleOfRelease({ name: chart.releaseName, namespace: chart.namespace });
  if (before === undefined || before === wanted) return;
  const what = `cannot apply ${entryTitle(entry)}: it is installed as ${before}, and the channel has ${wanted}`;
  throw new CurlewError('UNSUPPORTED', what, { hint: `curlew channel remove ${entry.name} removes what is installed` });
}
