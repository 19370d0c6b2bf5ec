/** Explains which entry of an add-on a cluster gets from channels, and why not each other one. */
import { sourceTitle, type Channel, type Compat, type Entry } from '../cluster/channel/channel.ts';
import { explainChoice, type Explained } from '../cluster/channel/choose.ts';
import { kubernetesTriple } from '../cluster/channel/range.ts';
import { CurlewError, type ErrorCode } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { openChannelCluster } from '../cluster/deliver/channel-cluster.ts';
import { openChannels, type OpenedChannel } from '../steps/open/channel-files.ts';
import { CHANNEL_EXPLAIN } from '../requests/channel.ts';
import { useCase } from '../core/request.ts';

/** One alternative of the add-on. */
export interface ExplainedEntry extends Pick<Entry, 'version' | 'id' | 'kubernetesVersion'> {
  /** The applied content, such as `manifest web.yaml`; undefined if the channel does not say. */
  readonly source: string | undefined;
  readonly requires: readonly { readonly name: string; readonly version: string }[];
  /** Line of the entry in the channel. */
  readonly line: number;
  readonly outcome: Explained<Entry>['outcome'];
  /** For people. */
  readonly because: string;
}

export interface ExplainedChannel {
  readonly location: string;
  readonly compat: Compat | undefined;
  readonly chosen: ExplainedEntry | undefined;
  /** Entries in the order of the channel; empty if it does not have the add-on. */
  readonly entries: readonly ExplainedEntry[];
  /** If none is chosen: those for the next lower and the next higher versions of Kubernetes. */
  readonly near: readonly ExplainedEntry[];
  /** Why the channel cannot be used. */
  readonly error?: { readonly code: ErrorCode; readonly message: string } | undefined;
}

export interface ExplainedAddon {
  readonly addon: string;
  readonly kubernetes: string;
  readonly channels: readonly ExplainedChannel[];
}

/** `NOT_FOUND` if no channel has the add-on. If none of the channels can be used, the error of the first is thrown. */
export const explainChannels = useCase(CHANNEL_EXPLAIN, async (request, context): Promise<ExplainedAddon> => {
  const { addon } = request;
  const kubernetes =
    request.kubernetes ?? (await openChannelCluster(request, context, '--kubernetes v1.30.2')).kubernetes;
  const version = kubernetesTriple(kubernetes);
  await using files = await openChannels(request, context);
  const usable = files.channels.flatMap(({ channel }) => channel ?? []);
  const [first] = files.channels;
  if (usable.length === 0 && first?.error !== undefined) throw first.error;
  if (usable.every(({ entries }) => entries.every(({ name }) => name !== addon))) throw unknownAddon(addon, usable);
  const channels = files.channels.map(({ location, channel, error }: OpenedChannel): ExplainedChannel => {
    if (channel === undefined) {
      const failed = error === undefined ? undefined : { code: error.code, message: error.message };
      return { location, compat: undefined, chosen: undefined, entries: [], near: [], error: failed };
    }
    const { compat } = channel;
    const { chosen, entries, near } = explainChoice(channel.entries, { addon, kubernetes: version, compat });
    const shown = new Map(entries.map((one) => [one.entry, shownEntry(one)]));
    return {
      location,
      compat,
      chosen: chosen === undefined ? undefined : shown.get(chosen),
      entries: [...shown.values()],
      near: near.flatMap((entry) => shown.get(entry) ?? []),
    };
  });
  return { addon, kubernetes, channels };
});

function shownEntry({ entry, outcome, because }: Explained<Entry>): ExplainedEntry {
  const { version, id, kubernetesVersion, source, requires, place } = entry;
  return {
    version,
    id,
    kubernetesVersion,
    source: source === undefined ? undefined : sourceTitle(source),
    requires: requires.map((required) => ({ name: required.name, version: required.version })),
    line: place.line,
    outcome,
    because,
  };
}

function unknownAddon(addon: string, channels: readonly Channel[]): CurlewError {
  const names = new Set(channels.flatMap(({ entries }) => entries.map(({ name }) => name)));
  const near = nearest(addon, names);
  const what = channels.length === 1 ? 'the channel does not have' : 'none of the channels has';
  return new CurlewError('NOT_FOUND', `cannot explain ${addon.slice(0, 100)}: ${what} this add-on`, {
    hint: near === undefined ? `add-ons: ${[...names].slice(0, 10).join(', ') || 'none'}` : `did you mean ${near}?`,
  });
}
