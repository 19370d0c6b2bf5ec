/** Plans an upgrade of Kubernetes with the add-ons of channels: which moves before which step. */
import { byName, sourceTitle, type Channel, type Entry, type Identity } from '../cluster/channel/channel.ts';
import { choose, entriesOf, runsOn } from '../cluster/channel/choose.ts';
import { kubernetesSteps, planUpgrade, type Gap } from '../cluster/channel/upgrade-plan.ts';
import type { ClusterFacts } from '../cluster/channel/pass.ts';
import { installedOf, recordKey } from '../cluster/channel/record.ts';
import { kubernetesTriple, parseTriple } from '../cluster/channel/range.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { openChannelCluster } from '../cluster/deliver/channel-cluster.ts';
import { openChannels } from '../steps/open/channel-files.ts';
import { CHANNEL_PLAN } from '../requests/channel.ts';
import { useCase } from '../core/request.ts';

/** The add-on whose entries are versions of Kubernetes itself. */
const KUBERNETES = 'kubernetes';

/** An entry in a plan. */
interface PlannedEntry {
  readonly version: string | undefined;
  readonly id: string;
  readonly kubernetesVersion: string;
  readonly because: string;
}

export type PlannedStep =
  | { readonly type: 'kubernetes'; readonly version: string; readonly source: string | undefined }
  | (PlannedEntry & {
      readonly type: 'addon';
      readonly addon: string;
      readonly source: string | undefined;
      /** It moves after a step of Kubernetes that the version before it does not fit. */
      readonly afterGap?: true;
    });

export interface PlannedGap extends Omit<Gap<never>, 'near'> {
  /** Entries that nearly fit. */
  readonly near: readonly (PlannedEntry & {
    readonly addon: string;
    /** Which versions of Kubernetes it fits: the one before the step, the one after it, or both. */
    readonly fits: 'old' | 'new' | 'both';
  })[];
}

export interface ChannelPlan {
  /** The versions of Kubernetes on the way, that of the cluster first. */
  readonly kubernetes: readonly string[];
  /** Empty if there are gaps: nothing may be changed then. */
  readonly steps: readonly PlannedStep[];
  readonly gaps: readonly PlannedGap[];
  /** Installed add-ons that the plan says nothing about, and others of which it knows little. */
  readonly notes: readonly string[];
}

/** Changes nothing. Each channel must be usable, and each installed add-on in one of them only. */
export const planChannels = useCase(CHANNEL_PLAN, async (request, context): Promise<ChannelPlan> => {
  const { to, allowDowngrade = false, allowGap = false } = request;
  const cluster = request.from === undefined ? await openChannelCluster(request, context, '--from v1.30.2') : undefined;
  const from = request.from ?? cluster?.kubernetes ?? '';
  await using files = await openChannels(request, context);
  for (const { error } of files.channels) if (error !== undefined) throw error;
  const channels = files.channels.flatMap(({ channel }) => channel ?? []);
  const entries = channels.flatMap((channel) => channel.entries);
  const rules = [...new Set(channels.map(({ compat }) => compat))];
  const [compat = 'native', other] = rules;
  if (other !== undefined) {
    throw new CurlewError('USAGE', `cannot plan channels with different rules: ${rules.join(', ')}`, {
      hint: 'plan them separately, or use --compat native',
    });
  }
  const versions = request.installed ?? [];
  const recorded = cluster === undefined ? undefined : recordedAddons(cluster.facts, entries);
  const byDefault = (): ReadonlyMap<string, Identity> =>
    recorded ?? new Map([...choose(entries, kubernetesTriple(from), compat)].filter(([name]) => name !== KUBERNETES));
  const installed = versions.length === 0 ? byDefault() : readInstalled(versions);
  refuseShared(channels, installed);
  const kubernetes = kubernetesSteps(from, to, availableVersions(entries, request.available));
  const plan = planUpgrade(entries, { kubernetes, installed, compat, allowDowngrade, allowGap });
  const sources = new Map(
    entries.flatMap(({ name, version = '', source }) =>
      name === KUBERNETES && source !== undefined ? [[plain(version), sourceTitle(source)]] : [],
    ),
  );
  return {
    kubernetes,
    steps: plan.steps.map((step): PlannedStep => {
      if (step.type === 'kubernetes') return { ...step, source: sources.get(plain(step.version)) };
      const { type, addon, entry, because, afterGap } = step;
      const source = entry.source === undefined ? undefined : sourceTitle(entry.source);
      return { type, addon, ...plannedEntry(entry, because), source, ...(afterGap ? { afterGap } : {}) };
    }),
    gaps: plan.gaps.map(({ near, ...gap }) => ({
      ...gap,
      near: near.map(({ entry, fits: which, because }) => ({
        addon: entry.name,
        ...plannedEntry(entry, because),
        fits: which,
      })),
    })),
    notes: notesAbout(entries, installed, { unknown: plan.unknown, from }),
  };
});

function plannedEntry({ version, id, kubernetesVersion }: Entry, because: string): PlannedEntry {
  return { version, id, kubernetesVersion, because };
}

function plain(version: string): string {
  return version.replace(/^v(?=\d)/, '');
}

/** An add-on of the channels that is recorded in another namespace is another one. */
function recordedAddons(
  { annotations, records }: ClusterFacts,
  entries: readonly Entry[],
): ReadonlyMap<string, Identity> {
  const names = new Set(entries.map(({ name }) => name));
  const keys = new Set(entries.map(({ namespace, name }) => recordKey(namespace, name)));
  const addons = new Map<string, Identity>();
  for (const [key, annotation] of annotations) {
    const name = key.slice(key.indexOf(':') + 1);
    const revision = installedOf(annotation, records.get(key)).revision;
    if (revision !== undefined && (keys.has(key) || !names.has(name))) addons.set(name, revision);
  }
  return addons;
}

function readInstalled(texts: readonly string[]): ReadonlyMap<string, Identity> {
  const installed = new Map<string, Identity>();
  for (const text of texts) {
    const [, name, version] = /^([^=\s]+)=([^=\s]+)$/.exec(text) ?? [];
    if (name === undefined || version === undefined) {
      throw new CurlewError('USAGE', `--installed ${text.slice(0, 100)}: not NAME=VERSION`);
    }
    if (installed.has(name)) throw new CurlewError('USAGE', `--installed has ${name} twice`);
    installed.set(name, { version });
  }
  return installed;
}

/** Which of two channels an add-on was installed from is not known here, and their entries are not alternatives. */
export function refuseShared(channels: readonly Channel[], installed: ReadonlyMap<string, unknown>): void {
  const owners = new Map<string, string>();
  for (const { location, entries } of channels) {
    for (const name of byName(entries).keys()) {
      const owner = owners.get(name);
      owners.set(name, location);
      if (owner === undefined || !installed.has(name)) continue;
      throw new CurlewError('USAGE', `cannot plan ${name}: it is in ${owner} and in ${location}`, {
        hint: 'plan with the channel from which it is installed',
      });
    }
  }
}

function availableVersions(entries: readonly Entry[], available: readonly string[] = []): readonly string[] {
  for (const version of available) kubernetesTriple(version);
  const own = entries.flatMap(({ name, version = '' }) => (name === KUBERNETES ? [version] : []));
  const usable = own.filter((version) => parseTriple(version) !== undefined);
  return [...available, ...usable].map((version) => `v${plain(version)}`);
}

function notesAbout(
  entries: readonly Entry[],
  installed: ReadonlyMap<string, Identity>,
  { unknown, from }: { readonly unknown: readonly string[]; readonly from: string },
): readonly string[] {
  const names = new Set(entries.map(({ name }) => name));
  const notes = unknown.map((name) => {
    const near = nearest(name, names);
    const hint = near === undefined ? '' : ` (did you mean ${near}?)`;
    return `${name} is in none of the channels: nothing is planned for it${hint}`;
  });
  const now = kubernetesTriple(from);
  for (const [name, identity] of installed) {
    if (unknown.includes(name)) continue;
    const same = entriesOf(entries, name, identity);
    const title = `${name} ${identity.version ?? ''}`.trim();
    if (same.length === 0) notes.push(`${title} is not in the channel: it counts as not fitting any Kubernetes`);
    else if (!same.some((entry) => runsOn(entry, now)))
      notes.push(`${title} is not for Kubernetes ${from}, which the cluster has`);
  }
  return notes;
}
