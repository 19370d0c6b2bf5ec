/** Add-ons that are charts: releases of the `helm` program. */
import { entryTitle } from '../channel/channel.ts';
import { isUnderWay, releaseAction } from '../channel/helm-release.ts';
import { takesOver } from '../channel/pass.ts';
import { addonId, type RecordedRelease } from '../channel/record.ts';
import { canonicalJson, digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError, requireRefusal } from '../../core/errors.ts';
import { withDigits } from '../../core/json.ts';
import { getObject } from '../kube/objects.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { ProgramError } from '../../platform/process/run-program.ts';
import { isPartial, type Addon, type Task } from './addon.ts';
import { previewObjects } from './apply.ts';
import { AT_ONCE, type ChannelCluster } from './channel-cluster.ts';
import type { Deliverer, Delivered, Desired } from './deliverer.ts';
import { requireNamespaces, type Delivery } from './delivery.ts';
import { titleOfObject, type AddonObject } from './addon-objects.ts';
import { lookAtObjects, type Ownership } from './observe.ts';
import { changedObjects, manifestChanges, outcomeOf, troubleOf, type ChangedObject, type Outcome } from './outcome.ts';
import { deleteOrphans } from './prune.ts';
import { isWork, ownerProblem } from './owners.ts';
import { recordedKinds, recordedObjects } from './records.ts';
import {
  chartOf,
  HELM_MANAGER,
  prepareRelease,
  recoverRelease,
  releaseOf,
  renderRelease,
  uninstallRelease,
  upgradeRelease,
  releaseValues,
  type PreparedRelease,
} from './release.ts';
import { timeoutOf } from './request.ts';
import {
  lookAtReleases,
  manifestObjects,
  readLast,
  readRevision,
  readRevisions,
  titleOfRelease,
  type ReleaseName,
  type ReleaseRevision,
} from './revisions.ts';

interface DesiredChart extends Desired {
  /** Hash of everything that determines the release. */
  readonly whole: string;
  readonly prepared: PreparedRelease;
  readonly revisions: readonly ReleaseRevision[];
  /** Objects of the last complete revision. */
  readonly before: readonly AddonObject[];
}

const BY_RELEASE: Ownership = {
  labelSelector: 'app.kubernetes.io/managed-by=Helm',
  ownerIn: ({ annotations }) => annotations['meta.helm.sh/release-name'],
  ownerOf: ({ release }) => release?.name,
  managerOf: () => HELM_MANAGER,
};

/** Options of dry runs that only show what a release would change. */
const SHOWN = { force: true, keep: false, handOver: 'never' } as const;

export const charts: Deliverer<DesiredChart> = {
  desired: async (delivery, { addon, record }) => {
    const { cluster } = delivery;
    const revisions = await ownRevisions(delivery, { addon, record });
    const whole = await chartHash(addon, cluster);
    const prepared = await prepareRelease(addon, delivery);
    const close = async (): Promise<void> => prepared[Symbol.asyncDispose]();
    try {
      const before = await deployedObjects(cluster, releaseOf(addon), revisions);
      // Without the hash: the next pass runs helm again, unless this one comes to its end.
      const { hash: _hash, ...release }: RecordedRelease = record?.release ?? releaseOf(addon);
      const hash = addon.hash === '' ? whole : addon.hash;
      const begun = { objects: before, release };
      const render = async (): Promise<readonly AddonObject[]> => renderRelease(addon, prepared, cluster);
      const refused = await ownedByWorks(delivery, { addon, record }, { before, revisions, render });
      return { hash, whole, begun, refused, prepared, revisions, before, [Symbol.asyncDispose]: close };
    } catch (error) {
      await close();
      throw error;
    }
  },

  preview: async (delivery, task) => (task.action === 'none' ? showDrift(delivery, task) : showUpgrade(delivery, task)),

  deliver: async (delivery, task, { desired, report }): Promise<Delivered> => {
    const { cluster, request } = delivery;
    const { prepared, revisions, whole, begun } = desired;
    const last = revisions.at(-1);
    const known = task.record?.release;
    const isKnown = !isPartial(task) && last?.revision === known?.revision;
    const action = releaseAction(last && { status: last.status, hash: isKnown ? known?.hash : undefined }, whole);
    try {
      if (action === 'mark-failed-then-upgrade') {
        await recoverRelease(task, { helm: prepared.helm, cluster, request, report });
      }
      // Otherwise only its health was missing.
      if (action !== 'none') await upgradeRelease(task, prepared, { cluster, request, report });
      return await settled(task, desired, cluster);
    } catch (error) {
      if (!(error instanceof CurlewError) || cluster.signal.aborted) throw error;
      const release = releaseOf(task.addon);
      const revision = (await readRevisions(cluster, release)).at(-1);
      const now = revision && (await readRevision(cluster, release, revision).catch(() => undefined));
      return {
        errors: [error],
        release: now?.release ?? begun.release,
        isNowhere: revision === undefined,
        // A helm that was killed has left its release as it was: the next pass may recover that at once.
        isCut: error instanceof ProgramError && error.problem !== 'status',
      };
    }
  },

  remove: async (tools, { release }, pruning) => {
    if (release !== undefined) await uninstallRelease(tools.cluster, release, tools.helm);
    return deleteOrphans(tools.cluster, pruning, { timeoutMs: timeoutOf(tools.request), byHelm: true });
  },

  observe: async (cluster, records) => {
    const [objects, releases] = await Promise.all([
      lookAtObjects(cluster, records, BY_RELEASE),
      lookAtReleases(cluster, records),
    ]);
    return new Map(
      [...objects].map(([key, look]) => {
        const { missing, changed } = releases.get(key) ?? { missing: [], changed: [] };
        const all = { missing: [...missing, ...look.missing], changed: [...changed, ...look.changed] };
        return [key, { ...look, ...all }] as const;
      }),
    );
  },
};

/** After helm has succeeded. */
async function settled(
  { addon, look }: Task,
  { before, whole }: DesiredChart,
  cluster: ChannelCluster,
): Promise<Delivered> {
  const { release, manifest } = await readLast(cluster, releaseOf(addon));
  const objects = await manifestObjects(release, manifest, cluster);
  const live = await mapLimited(
    objects,
    async (object) => {
      const current = await getObject(cluster.call, object.resource, object);
      return current === undefined ? [] : [{ resource: object.resource, live: current }];
    },
    { width: AT_ONCE, signal: cluster.signal },
  );
  const applied = live.flat();
  const changes = manifestChanges(before, objects);
  const restored = objects.flatMap((one): readonly ChangedObject[] => {
    const object = titleOfObject(one);
    if (changes.some((change) => change.object === object)) return [];
    if (look.missing.includes(object)) return [{ object, change: 'create', fields: [] }];
    return look.changed.includes(object) ? [{ object, change: 'change', fields: [] }] : [];
  });
  const deleted = new Set(changes.flatMap(({ object, change }) => (change === 'delete' ? [object] : [])));
  return {
    applied,
    objects,
    changes: [...changes, ...restored],
    gone: new Set(before.flatMap((one) => (deleted.has(titleOfObject(one)) ? [one.key] : []))),
    kinds: recordedKinds(applied, HELM_MANAGER),
    release: { ...release, hash: whole },
  };
}

/**
 * Why helm must not take over objects of other programs, as it would with --take-ownership: Kubernetes deletes what an
 * AppliedManifestWork owns with it. What the release has stays in it. Renders the chart only where there are such owners, and not over a
 * release that is under way, which was looked at before.
 */
async function ownedByWorks(
  { cluster, request }: Delivery,
  { addon, record }: Pick<Task, 'addon' | 'record'>,
  {
    before,
    revisions,
    render,
  }: Pick<DesiredChart, 'before' | 'revisions'> & { readonly render: () => Promise<readonly AddonObject[]> },
): Promise<readonly CurlewError[]> {
  const last = revisions.at(-1);
  if (!takesOver(request, addon.name) || (last !== undefined && isUnderWay(last))) return [];
  if (!(await cluster.discovery()).served.some(isWork)) return [];
  const had = new Set([...before.map(({ key }) => key), ...recordedObjects(record?.objects ?? []).keys()]);
  const wanted = await render();
  const keys = new Set(wanted.map(({ key }) => key));
  const problemOf = async (object: AddonObject): Promise<readonly CurlewError[]> => {
    const live = had.has(object.key) ? undefined : await getObject(cluster.call, object.resource, object);
    if (live?.metadata.ownerReferences.some(isWork) !== true) return [];
    return [ownerProblem(object, live, { addon, keys }) ?? []].flat();
  };
  return (await mapLimited(wanted, problemOf, { width: AT_ONCE, signal: cluster.signal })).flat();
}

/** What the upgrade would change: rendered by helm with a dry run on the server, and compared like a manifest. */
async function showUpgrade(delivery: Delivery, { addon, record }: Task): Promise<Outcome> {
  const { cluster } = delivery;
  const release = releaseOf(addon);
  const revisions = await ownRevisions(delivery, { addon, record });
  const last = revisions.at(-1);
  if (last !== undefined && isUnderWay(last)) {
    const fields = [{ field: '.status', before: last.status, after: 'deployed' }];
    return outcomeOf('planned', { objects: [{ object: titleOfRelease(release), change: 'change', fields }] });
  }
  await using prepared = await prepareRelease(addon, delivery);
  const wanted = await renderRelease(addon, prepared, cluster);
  const before = await deployedObjects(cluster, release, revisions);
  const previews = await previewObjects(cluster, wanted, { id: addonId(addon), ...SHOWN });
  const old = new Map(manifestChanges(before, wanted).map((one) => [one.object, one]));
  const whole = previews.map((preview) => {
    const removed = (old.get(titleOfObject(preview.object))?.fields ?? []).filter(
      ({ field, after }) => after === undefined && !preview.fields.some((one) => one.field === field),
    );
    if (preview.change === 'create' || removed.length === 0) return preview;
    return { ...preview, change: 'change' as const, fields: [...preview.fields, ...removed] };
  });
  const render = async (): Promise<readonly AddonObject[]> => Promise.resolve(wanted);
  const owned = await ownedByWorks(delivery, { addon, record }, { before, revisions, render });
  const errors = [...owned, ...whole.flatMap(({ error }) => error ?? [])];
  return outcomeOf(errors.length > 0 ? 'failed' : 'planned', {
    objects: [...changedObjects(whole), ...[...old.values()].filter(({ change }) => change === 'delete')],
    errors: errors.map(troubleOf),
  });
}

/** Shows what an upgrade would change in a release that stays as others have changed it. */
async function showDrift(delivery: Delivery, { addon, record, look: { changed } }: Task): Promise<Outcome> {
  const { cluster } = delivery;
  const release = releaseOf(addon);
  const last = (await readRevisions(cluster, release)).at(-1);
  await using prepared = await prepareRelease(addon, delivery);
  const isOther = changed.includes(titleOfRelease(release));
  const objects = isOther && last?.status !== 'deployed' ? [] : await renderRelease(addon, prepared, cluster);
  const chosen = isOther ? objects : objects.filter((object) => changed.includes(titleOfObject(object)));
  const changes = changedObjects(await previewObjects(cluster, chosen, { id: addonId(addon), ...SHOWN }));
  if (!isOther) return outcomeOf('unchanged', { drift: changes });
  const [before, after] = [last, record?.release].map((one) => `${one?.revision} ${one?.status}`);
  const other = { field: '.revision', before, after };
  return outcomeOf('unchanged', {
    drift: [{ object: titleOfRelease(release), change: 'change', fields: [other] }, ...changes],
  });
}

/** The revisions of the release, which must be the add-on's own, or may be taken over. */
async function ownRevisions(
  { cluster, request }: Delivery,
  { addon, record }: Pick<Task, 'addon' | 'record'>,
): Promise<readonly ReleaseRevision[]> {
  const release = releaseOf(addon);
  // Helm creates the namespace of the release.
  requireNamespaces(addon, [], new Set([...cluster.namespaces, release.namespace]));
  const revisions = await readRevisions(cluster, release);
  if (revisions.length === 0 || record?.release !== undefined || takesOver(request, addon.name)) return revisions;
  const what = `cannot apply ${entryTitle(addon)}: ${titleOfRelease(release)} has another owner`;
  throw new CurlewError('CLUSTER_FAILED', what, {
    hint: `--take-over=${addon.name} makes it the release of this add-on; releaseName in the channel gives it another name`,
  });
}

/** Have the chart, its values, or the facts in these changed since it was applied? Does not run helm. */
export async function isChartChanged(
  { addon, record }: Pick<Task, 'addon' | 'record'>,
  cluster: ChannelCluster,
): Promise<boolean> {
  if (addon.source?.type !== 'chart' || record?.release?.hash === undefined) return false;
  try {
    return (await chartHash(addon, cluster)) !== record.release.hash;
  } catch (error) {
    requireRefusal(error, cluster.signal);
    // An archive that cannot be read now is no change; other mistakes are reported when it is applied.
    return error.code === 'MANIFEST_INVALID';
  }
}

/** Hash in hex of everything that determines the release. */
async function chartHash(addon: Addon, cluster: ChannelCluster): Promise<string> {
  const { repoURL = '', oci = '', name = '', version = '', releaseName, namespace, ...others } = chartOf(addon);
  const isOpen = others.package !== undefined && addon.hash === '';
  const archive = isOpen ? hexOf(digestOf(await addon.read())) : addon.hash;
  const values = releaseValues(addon, cluster);
  const { digest } = addon.access?.values ?? {};
  const hidden = digest === undefined ? {} : { hidden: digest };
  const identity = { repoURL, oci, name, version, archive, releaseName, namespace, values, ...hidden };
  return hexOf(digestOf(canonicalJson(withDigits(identity))));
}

async function deployedObjects(
  cluster: ChannelCluster,
  release: ReleaseName,
  revisions: readonly ReleaseRevision[],
): Promise<readonly AddonObject[]> {
  const last = revisions.findLast(({ status }) => status === 'deployed');
  if (last === undefined) return [];
  const { manifest } = await readRevision(cluster, release, last);
  return manifestObjects(release, manifest, cluster);
}
