/** One pass over the add-ons of a cluster. */
import { resolve } from 'node:path';
import { entryTitle, type Channel, type Entry } from '../../channel/channel.ts';
import { meets } from '../../channel/choose.ts';
import { hashOfManifest, isUrl } from '../../channel/location.ts';
import { planPass, requiredKey, takesOver, type PlannedAddon, type SeenAddon } from '../../channel/pass.ts';
import { addonId, recordKey } from '../../channel/record.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { LiveObject } from '../../kube/objects.ts';
import type { Resource } from '../../kube/resources.ts';
import type { Context } from '../../core/context.ts';
import type { ChannelFiles } from '../ports/channel-files.ts';
import { failedState, recordFailure, recordState, requireNamespaces, revisionOf } from '../../deliver/addon-record.ts';
import {
  applyObjects,
  markNodes,
  previewObjects,
  waitForHealth,
  type ApplyOptions,
  type ObjectPreview,
} from '../../deliver/apply-addon.ts';
import { Owners, type ChosenObjects } from '../../deliver/owners.ts';
import { Charts, requireSameKind } from '../../deliver/chart.ts';
import {
  joinKinds,
  kindsOf,
  managerOf,
  recordedKinds,
  recordedObjects,
  writeAnnotation,
  writeRecord,
  type ChannelCluster,
} from '../../deliver/cluster.ts';
import { lookForWork } from './look-for-work.ts';
import { addonObjects, chosenObjects, definedKinds, titleOfObject, type AddonObject } from '../../deliver/manifest.ts';
import { ensurePki } from '../../deliver/pki.ts';
import { timeoutOf } from '../../deliver/request.ts';
import { webTrust } from '../ports/network.ts';
import type { ChannelApplyRequest, ChannelPass } from './request.ts';
import { withoutFreed } from '../../deliver/freed.ts';
import { deleteOrphans, findOrphans, leftKinds, type Orphan, type Orphans } from '../../deliver/prune.ts';
import {
  changedObjects,
  deletion,
  isDeleted,
  resultOf,
  stayingOrphan,
  titleOfRevision,
  troubleOf,
  type AddonResult,
  type ChangedObject,
} from '../../deliver/result.ts';

interface Manifest {
  readonly objects: readonly AddonObject[];
  readonly hash: string;
}

export function needsWork({ action }: PlannedAddon): boolean {
  return action !== 'none' && action !== 'refused';
}

export class Pass {
  readonly #files: ChannelFiles;
  /** Those that could be read; their paths are absolute, since records outlive the current folder. */
  readonly #channels: readonly Channel[];
  readonly #cluster: ChannelCluster;
  readonly #request: ChannelApplyRequest;
  readonly #context: Context;
  readonly #charts: Charts;
  #plan: Promise<readonly SeenAddon[]> | undefined;
  /** Versions of what is installed, by {@link recordKey}; undefined while it is not healthy. */
  readonly #versions = new Map<string, string | undefined>();
  readonly #manifests = new Map<Entry, Promise<Manifest>>();
  #owners: Promise<Owners> | undefined;
  /** Kinds that come with add-ons of this pass. */
  readonly #defined: Resource[] = [];
  /** Names that exist in the cluster or come with add-ons of this pass. */
  readonly #namespaces: Set<string>;

  constructor(
    files: ChannelFiles,
    cluster: ChannelCluster,
    { request, context }: { readonly request: ChannelApplyRequest; readonly context: Context },
  ) {
    this.#files = files;
    this.#channels = files.channels.flatMap(({ channel }) => {
      if (channel === undefined) return [];
      return isUrl(channel.location) ? channel : { ...channel, location: resolve(context.cwd, channel.location) };
    });
    this.#cluster = cluster;
    this.#namespaces = new Set(cluster.namespaces);
    this.#request = request;
    this.#context = context;
    this.#charts = new Charts({ files, cluster, request, context, trust: async () => webTrust(request, context) });
    for (const [key, { version }] of cluster.facts.annotations) this.#versions.set(key, version ?? '');
    for (const [key, { applied }] of cluster.facts.records) {
      if (applied !== undefined) this.#versions.set(key, applied.version ?? '');
    }
  }

  /** In the order of application. */
  async planned(): Promise<readonly SeenAddon[]> {
    this.#plan ??= lookForWork(this.#channels, this.#cluster, { ...this.#request, files: this.#files });
    return this.#plan;
  }

  async run(
    work: (pass: Pass, planned: SeenAddon) => Promise<AddonResult>,
    { isPreview = false }: { readonly isPreview?: boolean } = {},
  ): Promise<ChannelPass> {
    const { facts, server, kubernetes, warnings } = this.#cluster;
    const results: AddonResult[] = [];
    for (const planned of await this.planned()) {
      this.#cluster.signal.throwIfAborted();
      results.push(await this.#runOne(planned, work));
    }
    const pass = planPass(this.#channels, facts, this.#request);
    return {
      cluster: { server, kubernetes },
      isPreview,
      addons: results,
      left: pass.left.map(({ installed, ...others }) => ({ ...others, current: titleOfRevision(installed) ?? '' })),
      unfit: (this.#request.addons ?? []).length === 0 ? pass.unfit : [],
      warnings: [...warnings, ...pass.warnings],
      errors: this.#files.channels.flatMap(({ error }) => (error === undefined ? [] : [troubleOf(error)])),
    };
  }

  async #runOne(
    planned: SeenAddon,
    work: (pass: Pass, planned: SeenAddon) => Promise<AddonResult>,
  ): Promise<AddonResult> {
    const { entry, action } = planned;
    const key = recordKey(entry.namespace, entry.name);
    if (action === 'refused') {
      return resultOf(planned, {
        state: 'refused',
        errors: [{ message: `cannot apply ${entryTitle(entry)}: ${planned.reason}`, hint: planned.hint }],
      });
    }
    const unmet = needsWork(planned) ? this.#unmet(planned) : undefined;
    if (unmet !== undefined) {
      this.#versions.set(key, undefined);
      const message = `cannot apply ${entryTitle(entry)}: it requires ${unmet.what}`;
      return resultOf(planned, { state: 'skipped', errors: [{ message, hint: `apply ${unmet.name} first` }] });
    }
    try {
      const result = await work(this, planned);
      if (needsWork(planned)) this.#versions.set(key, result.state === 'failed' ? undefined : (entry.version ?? ''));
      return result;
    } catch (error) {
      this.#cluster.signal.throwIfAborted();
      if (!(error instanceof CurlewError)) throw error;
      this.#versions.set(key, undefined);
      return resultOf(planned, { state: 'failed', errors: [troubleOf(error)] });
    }
  }

  /** The first requirement of an add-on that is not met. */
  #unmet({ channel, entry }: PlannedAddon): { readonly name: string; readonly what: string } | undefined {
    for (const required of entry.requires) {
      const key = requiredKey(required.name, [channel, ...this.#channels], this.#cluster.facts);
      const has = this.#versions.get(key);
      if (meets(required, has)) continue;
      const state = !this.#versions.has(key) ? 'is not installed' : has === undefined ? 'is not healthy' : `is ${has}`;
      const wanted = `${required.name} ${required.version}`.trim();
      return { name: required.name, what: `${wanted}, which ${state} in namespace ${key.split(':')[0]}` };
    }
    return undefined;
  }

  /** What applying an add-on would change. */
  async preview(planned: SeenAddon): Promise<AddonResult> {
    const { action, entry, look } = planned;
    if (!needsWork(planned)) {
      const isShown = look.changed.length > 0 && entry.drift === 'Warn';
      return resultOf(planned, { state: 'unchanged', drift: isShown ? await this.#drift(planned) : [] });
    }
    if (entry.source?.type === 'chart') return this.#charts.preview(planned);
    const { objects } = await this.#manifest(planned);
    const chosen = chosenObjects(objects, planned);
    this.#requireNamespaces(entry, objects, chosen);
    const { orphans, errors } =
      action === 'restore' || action === 'revert' ? NOTHING : await this.#orphans(planned, objects);
    const previews = await this.#previews(planned, { objects: chosen, orphans });
    const failures = [...previews.flatMap(({ error }) => error ?? []), ...errors];
    return resultOf(planned, {
      state: failures.length > 0 ? 'failed' : 'planned',
      objects: [...changedObjects(previews), ...orphans.filter(isDeleted).map(deletion)],
      orphans: orphans.flatMap(stayingOrphan),
      errors: failures.map(troubleOf),
    });
  }

  async #drift(planned: SeenAddon): Promise<readonly ChangedObject[]> {
    if (planned.entry.source?.type === 'chart') return this.#charts.drift(planned);
    const { objects } = await this.#manifest(planned);
    const changed = objects.filter((object) => planned.look.changed.includes(titleOfObject(object)));
    const options = { id: addonId(planned.entry), force: true, keep: false, handOver: 'never' } as const;
    return changedObjects(await previewObjects(this.#cluster, changed, options));
  }

  async apply(planned: SeenAddon): Promise<AddonResult> {
    const { entry, action } = planned;
    if (!needsWork(planned)) return this.preview(planned);
    const { report } = this.#context;
    const id = `channel ${recordKey(entry.namespace, entry.name)}`;
    report({ type: 'step-started', id, title: `${VERBS[action]} ${entryTitle(entry)}` });
    try {
      const result = await this.#applyNow(planned, (text) => report({ type: 'step-log', id, text }));
      const [error] = result.errors;
      if (error !== undefined)
        report({ type: 'step-failed', id, error: new CurlewError('CLUSTER_FAILED', error.message) });
      else report({ type: 'step-done', id, outcome: `${result.objects.length} objects changed` });
      return result;
    } catch (error) {
      report({ type: 'step-failed', id, error: error instanceof Error ? error : new Error(String(error)) });
      if (error instanceof CurlewError && !this.#cluster.signal.aborted)
        await recordFailure(this.#cluster, planned, error);
      throw error;
    }
  }

  async #applyNow(planned: SeenAddon, report: ApplyOptions['report']): Promise<AddonResult> {
    const { entry, action, record } = planned;
    const cluster = this.#cluster;
    if (entry.source?.type === 'chart') return this.#charts.apply(planned, report);
    const { objects, hash } = await this.#manifest(planned);
    const chosen = chosenObjects(objects, planned);
    this.#requireNamespaces(entry, objects, chosen);
    const rights = this.#rights(planned);
    const isWhole = action !== 'restore' && action !== 'revert';
    const found = isWhole ? await this.#orphans(planned, objects) : NOTHING;
    const previews = await this.#previews(planned, { objects: chosen, orphans: found.orphans });
    const refused = previews.flatMap(({ error }) => error ?? []);
    const [first] = refused;
    if (first !== undefined) {
      await recordFailure(cluster, planned, first);
      return resultOf(planned, { state: 'failed', errors: refused.map(troubleOf) });
    }
    const desired = revisionOf(cluster, planned, hash);
    await recordState(cluster, planned, {
      state: 'Progressing',
      reason: 'the last run was interrupted',
      desired,
      objects: joinKinds(record?.objects ?? [], kindsOf(objects)),
    });
    await ensurePki(cluster, entry);
    const options = { ...rights, id: addonId(entry), timeoutMs: timeoutOf(this.#request), report };
    const toApply = previews.map(({ object, value, former = [], takesFields }) => {
      return { ...object, value, former, takesFields };
    });
    let { applied, errors } = await applyObjects(cluster, toApply, options);
    const pruned = await deleteOrphans(cluster, found, { timeoutMs: timeoutOf(this.#request) });
    if (errors.length > 0 && pruned.deleted.length > 0)
      ({ applied, errors } = await applyObjects(cluster, toApply, options));
    const unhealthy = await waitForHealth(cluster, applied, { objects, timeoutMs: timeoutOf(this.#request), report });
    const failures = [...errors, ...unhealthy, ...found.errors, ...pruned.errors];
    const outcome = {
      objects: [...changedObjects(previews), ...pruned.deleted.map(deletion)],
      orphans: pruned.staying.flatMap(stayingOrphan),
    };
    const [failure] = failures;
    if (failure !== undefined) {
      const isNowhere = record === undefined && applied.length === 0;
      const begun = { desired, objects: joinKinds(record?.objects ?? [], kindsOf(objects)) };
      if (isNowhere) await writeRecord(cluster, { namespace: entry.namespace, addon: entry.name }, undefined);
      else await recordState(cluster, planned, { ...failedState(failure), ...begun });
      return resultOf(planned, { state: 'failed', ...outcome, errors: failures.map(troubleOf) });
    }
    const nodes = planned.installed !== undefined && isWhole ? await markNodes(cluster, entry.needsRollingUpdate) : [];
    const now = recordedKinds(applied, managerOf(addonId(entry)));
    await recordState(cluster, planned, {
      state: 'Succeeded',
      reason: '',
      desired,
      applied: desired,
      knownGood: desired,
      objects: isWhole ? now : joinKinds(now, record?.objects ?? []),
      orphans: isWhole ? leftKinds(cluster, entry, pruned.left) : record?.orphans,
    });
    await writeAnnotation(cluster, planned, desired);
    return resultOf(planned, { state: 'applied', ...outcome, nodes });
  }

  async #previews(
    planned: PlannedAddon,
    { objects, orphans }: { readonly objects: readonly AddonObject[]; readonly orphans: readonly Orphan[] },
  ): Promise<readonly ObjectPreview[]> {
    const { entry } = planned;
    const owners = await this.#ownersNow();
    const addon = { ...entry, takesOver: takesOver(this.#request, entry.name) };
    const formerOf = (object: AddonObject, live: LiveObject): readonly string[] => owners.formerOf(object, live, addon);
    const rights = { id: addonId(entry), ...this.#rights(planned), formerOf };
    return withoutFreed(this.#cluster, await previewObjects(this.#cluster, objects, rights), orphans);
  }

  async #ownersNow(): Promise<Owners> {
    this.#owners ??= this.#findOwners();
    return this.#owners;
  }

  /** What each add-on of the channels consists of after the pass, also of those that the request leaves out. */
  async #findOwners(): Promise<Owners> {
    const planned = await this.planned();
    const known = new Set(planned.map(({ entry }) => entry));
    const { addons } = planPass(this.#channels, this.#cluster.facts, this.#request);
    const chosen: ChosenObjects[] = [];
    for (const one of [...planned, ...addons.filter(({ entry }) => !known.has(entry))]) {
      const { entry: addon, action, record } = one;
      const keys = new Set(recordedObjects(record?.objects ?? []).keys());
      const isNew = ['install', 'update', 'downgrade'].includes(action) && record?.release === undefined;
      if (!isNew || addon.source?.type !== 'manifest') {
        chosen.push({ addon, keys, isUnread: false });
        continue;
      }
      try {
        const { objects } = await this.#manifest(one);
        chosen.push({ addon, keys: new Set(objects.map(({ key }) => key)), isUnread: false });
      } catch (error) {
        this.#cluster.signal.throwIfAborted();
        if (!(error instanceof CurlewError)) throw error;
        chosen.push({ addon, keys, isUnread: true });
      }
    }
    return new Owners(this.#cluster, chosen);
  }

  #rights({ channel, entry, action }: PlannedAddon): Pick<ApplyOptions, 'force' | 'keep' | 'handOver'> {
    const force =
      channel.compat !== 'native' ||
      entry.drift === 'Revert' ||
      action === 'revert' ||
      this.#request.forceConflicts === true;
    const keep = !force && entry.drift === 'Keep';
    return { force, keep, handOver: keep ? 'never' : channel.compat === 'native' ? 'first' : 'always' };
  }

  #requireNamespaces(entry: Entry, objects: readonly AddonObject[], chosen: readonly AddonObject[]): void {
    for (const { kind, name } of objects) if (kind === 'Namespace') this.#namespaces.add(name);
    requireNamespaces(entry, chosen, this.#namespaces);
  }

  async #manifest(planned: PlannedAddon): Promise<Manifest> {
    const known = this.#manifests.get(planned.entry) ?? this.#readManifest(planned);
    this.#manifests.set(planned.entry, known);
    return known;
  }

  async #readManifest(planned: PlannedAddon): Promise<Manifest> {
    const { channel, entry } = planned;
    const { source } = entry;
    requireSameKind(planned);
    if (source?.type !== 'manifest') {
      throw new CurlewError('UNSUPPORTED', `cannot apply ${entryTitle(entry)}: it has no manifest`, {
        hint:
          source?.type === 'package' ? 'install the package on a node: curlew install' : 'add manifest to the entry',
      });
    }
    const content = await this.#files.readManifest(channel, entry, this.#cluster);
    const { namespace } = this.#cluster;
    const discovery = { ...(await this.#cluster.discovery()), defined: this.#defined, namespace };
    const objects = addonObjects(planned, { location: redact(source.location), content }, discovery);
    this.#defined.push(...objects.flatMap(definedKinds));
    return {
      objects,
      hash: entry.hash === '' && channel.compat === 'native' ? hashOfManifest(content, channel) : entry.hash,
    };
  }

  async #orphans(
    { channel, entry, record, installed }: PlannedAddon,
    objects: readonly AddonObject[],
  ): Promise<Orphans> {
    const owners = await this.#ownersNow();
    return findOrphans(this.#cluster, {
      addon: entry,
      compat: channel.compat,
      kept: new Set(objects.map(({ key }) => key)),
      recorded: joinKinds(record?.objects ?? [], record?.orphans ?? []),
      prune: entry.prune,
      isFirst: installed === undefined,
      movesTo: (key) => owners.movesTo(key, entry),
      pruneNamespaces: this.#request.pruneNamespaces === true,
      pruneCrds: this.#request.pruneCrds === true,
    });
  }
}

const NOTHING = { orphans: [], errors: [], unread: [] } as const;
const VERBS = {
  install: 'install',
  update: 'update',
  downgrade: 'downgrade',
  restore: 'restore',
  revert: 'revert',
  none: 'check',
  refused: 'check',
} as const;
