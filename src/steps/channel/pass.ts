/** One pass over the add-ons of a cluster. */
import { resolve } from 'node:path';
import { type Channel, entryTitle } from '../../cluster/channel/channel.ts';
import { meets, noticesContent } from '../../cluster/channel/choose.ts';
import { hashOfManifest, isUrl } from '../../cluster/channel/location.ts';
import {
  type Pass as PassPlan,
  type PassOptions,
  type PassAddon,
  type LookedAddon,
  channelOwner,
  planPass,
  requiredKey,
  withContent,
  withLive,
} from '../../cluster/channel/pass.ts';
import { recordKey } from '../../cluster/channel/record.ts';
import type { Context } from '../../core/context.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError, requireRefusal } from '../../core/errors.ts';
import type { ChannelCluster } from '../../cluster/deliver/channel-cluster.ts';
import { deliver, observe, preview } from '../../cluster/deliver/deliver.ts';
import { Delivery } from '../../cluster/deliver/delivery.ts';
import { type Outcome, outcomeOf, troubleOf } from '../../cluster/deliver/outcome.ts';
import type { ChannelFiles } from '../open/channel-files.ts';
import { webTrust } from '../open/network.ts';
import { type AddonResult, type ChannelPass, resultOf, titleOfRevision } from './result.ts';
import type { ChannelApplyRequest } from '../../requests/channel.ts';
import { inOrder } from '../../cluster/channel/upgrade-plan.ts';
import type { Addon, Task } from '../../cluster/deliver/addon.ts';
import { isChartChanged } from '../../cluster/deliver/charts.ts';
import { needsPki } from '../../cluster/deliver/pki.ts';

interface PassParts {
  readonly request: ChannelApplyRequest;
  readonly context: Context;
  readonly cluster: ChannelCluster;
  readonly channels: readonly Channel[];
  /** Errors of channels that could not be read. */
  readonly errors: ChannelPass['errors'];
}

function needsWork({ action }: PassAddon): boolean {
  return action !== 'none' && action !== 'refused';
}

/** Plans a pass. The result is for this state of the cluster only. */
export async function openPass(
  files: ChannelFiles,
  cluster: ChannelCluster,
  parts: Pick<PassParts, 'request' | 'context'>,
): Promise<Pass> {
  const { request, context } = parts;
  // Only channels that could be read; their paths are absolute, since records outlive the current folder.
  const channels = files.channels.flatMap(({ channel }) => {
    if (channel === undefined) return [];
    return isUrl(channel.location) ? channel : { ...channel, location: resolve(context.cwd, channel.location) };
  });
  const plan = await planWork(channels, cluster, { ...request, files });
  const errors = files.channels.flatMap(({ error }) => (error === undefined ? [] : [troubleOf(error)]));
  return new Pass(plan, { ...parts, cluster, channels, errors });
}

class Pass {
  readonly #plan: WorkPlan;
  readonly #parts: PassParts;
  readonly #delivery: Delivery;
  /** Versions of what is installed, by {@link recordKey}; undefined while it is not healthy. */
  readonly #versions = new Map<string, string | undefined>();

  constructor(plan: WorkPlan, parts: PassParts) {
    const { request, context, cluster } = parts;
    this.#plan = plan;
    this.#parts = parts;
    const trust = async (): ReturnType<typeof webTrust> => webTrust(request, context);
    this.#delivery = new Delivery({ cluster, request, context, trust, tasks: plan.tasks });
    for (const [key, { version }] of cluster.facts.annotations) this.#versions.set(key, version ?? '');
    for (const [key, { applied }] of cluster.facts.records) {
      if (applied !== undefined) this.#versions.set(key, applied.version ?? '');
    }
  }

  get hasWork(): boolean {
    return this.#plan.work.some(needsWork);
  }

  /** The changes that applying the add-ons would make. */
  async preview({ isPreview }: Pick<ChannelPass, 'isPreview'>): Promise<ChannelPass> {
    return this.#run(async (work) => preview(this.#delivery, work), isPreview);
  }

  async apply(): Promise<ChannelPass> {
    return this.#run(async (work) => (needsWork(work) ? this.#apply(work) : preview(this.#delivery, work)), false);
  }

  async #run(act: (work: Work) => Promise<Outcome>, isPreview: boolean): Promise<ChannelPass> {
    const { cluster, request, errors } = this.#parts;
    const { server, kubernetes, warnings } = cluster;
    const addons: AddonResult[] = [];
    for (const work of this.#plan.work) {
      cluster.signal.throwIfAborted();
      addons.push(await this.#runOne(work, act));
    }
    const { unlisted, unfit } = this.#plan;
    return {
      cluster: { server, kubernetes },
      isPreview,
      addons,
      unlisted: unlisted.map(({ installed, ...others }) => ({ ...others, current: titleOfRevision(installed) ?? '' })),
      unfit: (request.addons ?? []).length === 0 ? unfit : [],
      warnings: [...warnings, ...this.#plan.warnings],
      errors,
    };
  }

  async #runOne(work: Work, act: (work: Work) => Promise<Outcome>): Promise<AddonResult> {
    const { entry, action } = work;
    const key = recordKey(entry.namespace, entry.name);
    if (action === 'refused') {
      const message = `cannot apply ${entryTitle(entry)}: ${work.reason}`;
      return resultOf(work, { ...outcomeOf('failed', { errors: [{ message, hint: work.hint }] }), state: 'refused' });
    }
    const unmet = needsWork(work) ? this.#unmet(work) : undefined;
    if (unmet !== undefined) {
      this.#versions.set(key, undefined);
      const message = `cannot apply ${entryTitle(entry)}: it requires ${unmet.what}`;
      const errors = [{ message, hint: `apply ${unmet.name} first` }];
      return resultOf(work, { ...outcomeOf('failed', { errors }), state: 'skipped' });
    }
    try {
      const outcome = await act(work);
      if (needsWork(work)) this.#versions.set(key, outcome.state === 'failed' ? undefined : (entry.version ?? ''));
      return resultOf(work, outcome);
    } catch (error) {
      requireRefusal(error, this.#parts.cluster.signal);
      this.#versions.set(key, undefined);
      return resultOf(work, outcomeOf('failed', { errors: [troubleOf(error)] }));
    }
  }

  /** The first requirement of an add-on that is not met. */
  #unmet({ channel, entry }: PassAddon): { readonly name: string; readonly what: string } | undefined {
    const { channels, cluster } = this.#parts;
    for (const required of entry.requires) {
      const key = requiredKey(required.name, [channel, ...channels], cluster.facts);
      const has = this.#versions.get(key);
      if (meets(required, has)) continue;
      const state = !this.#versions.has(key) ? 'is not installed' : has === undefined ? 'is not healthy' : `is ${has}`;
      const wanted = `${required.name} ${required.version}`.trim();
      return { name: required.name, what: `${wanted}, which ${state} in namespace ${key.split(':')[0]}` };
    }
    return undefined;
  }

  async #apply(work: Work): Promise<Outcome> {
    const { entry, action } = work;
    const { report } = this.#parts.context;
    const id = `channel ${recordKey(entry.namespace, entry.name)}`;
    report({ type: 'step-started', id, title: `${action} ${entryTitle(entry)}` });
    try {
      const outcome = await deliver(this.#delivery, work, { report: (text) => report({ type: 'step-log', id, text }) });
      const [error] = outcome.errors;
      if (error !== undefined)
        report({ type: 'step-failed', id, error: new CurlewError('CLUSTER_FAILED', error.message) });
      else report({ type: 'step-done', id, outcome: `${counted(outcome.objects.length, 'object')} changed` });
      return outcome;
    } catch (error) {
      report({ type: 'step-failed', id, error: error instanceof Error ? error : new Error(String(error)) });
      throw error;
    }
  }
}

interface WorkOptions extends PassOptions {
  /** Only these; default: all. */
  readonly addons?: readonly string[] | undefined;
  readonly files: ChannelFiles;
}

/** A planned add-on, and the same for its delivery. */
type Work = LookedAddon & Task;

interface WorkPlan extends Omit<PassPlan, 'addons'> {
  /** Work in the order of application. */
  readonly work: readonly Work[];
  /** Also of the add-ons that the request leaves out. */
  readonly tasks: readonly Task[];
}

/** `NOT_FOUND` for a named add-on that no channel has for this cluster. */
async function planWork(
  channels: readonly Channel[],
  cluster: ChannelCluster,
  { addons: named = [], files, ...options }: WorkOptions,
): Promise<WorkPlan> {
  const { facts } = cluster;
  const { addons, ...others } = planPass(channels, facts, options);
  const isWanted = ({ entry }: PassAddon): boolean => named.length === 0 || named.includes(entry.name);
  const taken = typeof options.takeOver === 'object' ? options.takeOver : [];
  const unknown = [...named, ...taken].find((name) => !addons.some((one) => isWanted(one) && one.entry.name === name));
  if (unknown !== undefined) {
    throw new CurlewError('NOT_FOUND', `cannot apply ${unknown}: no channel has an entry of it for this cluster`, {
      hint: `curlew channel explain ${unknown} says why`,
    });
  }
  const wanted = await Promise.all(
    addons.filter(isWanted).map(async (one) => {
      const hash = await contentHash(one, files, cluster);
      return hash === undefined ? one : withContent(one, hash, { facts, options });
    }),
  );
  const still = wanted.flatMap(({ action, record }) => (action === 'none' && record !== undefined ? [record] : []));
  const looks = await observe(cluster, still);
  const look = async (one: PassAddon): Promise<Work> => {
    const live = looks.get(recordKey(one.entry.namespace, one.entry.name)) ?? UNSEEN;
    const work = { ...withLive(one, live), addon: addonOf(one, files, cluster) };
    if (one.action === 'none' && (await isChartChanged(work, cluster)))
      return { ...work, action: 'update', reason: 'another chart or other values' };
    if (work.action !== 'none' || !(await needsPki(cluster, one.entry))) return work;
    return { ...work, action: 'update', reason: 'its certificate authority is missing' };
  };
  const seen = new Map((await Promise.all(wanted.map(look))).map((one) => [one.entry, one]));
  const work = inOrder([...seen.keys()]).flatMap((entry) => seen.get(entry) ?? []);
  const rest = addons.filter(({ entry }) => !seen.has(entry));
  const tasks = rest.map((one) => ({ ...one, look: UNSEEN, addon: addonOf(one, files, cluster) }));
  return { ...others, work, tasks: [...work, ...tasks] };
}

const UNSEEN = { missing: [], changed: [] } as const;

/** The hash of the manifest of an unchanged entry that has none. */
async function contentHash(
  { channel, entry, action, installed }: PassAddon,
  files: ChannelFiles,
  cluster: ChannelCluster,
): Promise<string | undefined> {
  const isOpen = noticesContent(entry, channel.compat) && entry.source?.type === 'manifest';
  if (!isOpen || action !== 'none' || installed?.hash === undefined) return undefined;
  // A manifest that cannot be read now does not make an installed add-on fail.
  const content = await files.readManifest(channel, entry, cluster).catch(() => undefined);
  return content && hashOfManifest(content, channel);
}

function addonOf(
  { channel, entry }: PassAddon,
  files: ChannelFiles,
  { signal }: Pick<ChannelCluster, 'signal'>,
): Addon {
  return {
    ...entry,
    owner: channelOwner(channel),
    origin: channel.location,
    compat: channel.compat,
    read: async () => files.readManifest(channel, entry, { signal }),
    hashOf: (content) => (channel.compat === 'native' ? hashOfManifest(content, channel) : ''),
  };
}
