/** Channels of a hub: which entries an add-on may become on its clusters. Pure. */
import { parseRange } from '../../cluster/channel/range.ts';
import { groupBy } from '../../core/group-by.ts';
import { convert, type Read } from '../../core/schema.ts';
import type { Alternative } from '../rollout/fleet.ts';
import { contentsIn, idleNote } from '../effects.ts';
import type { HubAddon, Live } from './observe.ts';
import { VALUES_FIELDS } from '../schema.ts';
import { HUB_KINDS, resolvedSource } from './hub-kinds.ts';
import { contentSourceOf } from './content-source.ts';

type Written = Read<typeof HUB_KINDS.Channel.spec>['addons'][number];
/** With the Kubernetes versions that it is for. */
type Entry = Written & { readonly parsed: ReturnType<typeof parseRange> };

/** The entries of a Channel by add-on, or why it cannot be read. */
export type HubChannel = ReadonlyMap<string, readonly Entry[]> | string;

export function readHubChannel({ spec }: Live): HubChannel {
  const read = convert(HUB_KINDS.Channel.spec, spec);
  if ('problems' in read) return read.problems[0].message;
  const entries = read.value.addons.map((one): Entry => {
    return { ...one, parsed: parseRange(one.kubernetesVersion ?? '', 'native') };
  });
  return groupBy(entries, ({ name }) => name);
}

/** An add-on with what its channel has for it, or a problem. */
export function withChannel(one: HubAddon, channel: HubChannel | undefined): HubAddon {
  const { problem, addon } = one;
  if (one.channel === undefined || problem !== undefined) return one;
  const resolution = resolve(one, one.channel, channel);
  return typeof resolution === 'string'
    ? { ...one, problem: resolution }
    : { ...one, addon: { ...addon, ...resolution, ...idleIn(one, resolution.source) } };
}

interface Resolved {
  readonly source: { readonly channel: readonly Alternative[]; readonly addon: string };
}

function idleIn({ addon, drift }: HubAddon, { channel }: Resolved['source']): ReturnType<typeof idleNote> {
  return idleNote(
    { ...addon, ...(drift && { drift }) },
    channel.flatMap(({ content }) => contentsIn(content)),
  );
}

function resolve(
  { addon: { name }, valuesFrom: [from] }: HubAddon,
  { name: channelName, addon = name }: NonNullable<HubAddon['channel']>,
  channel: HubChannel | undefined,
): (Pick<HubAddon['addon'], 'identity' | 'namespace'> & Resolved) | string {
  const title = `Channel ${channelName}`;
  if (channel === undefined) return `there is no ${title}: create it, or name another one`;
  if (typeof channel === 'string') return `${title} cannot be read: ${channel}`;
  const entries: Alternative[] = [];
  for (const entry of channel.get(addon) ?? []) {
    const read = alternativeOf(entry, name);
    if (typeof read === 'string')
      return `${title} has an entry of ${addon} that cannot be read, ${entry.version}: ${read}`;
    if (from !== undefined && entry.chart === undefined)
      return `${VALUES_FIELDS[from.kind]} is for a chart, and ${title} has another entry of ${addon}, ${entry.version}`;
    entries.push(read);
  }
  // The order of the entries says nothing, and another identity begins a rollout.
  const { identity, namespace } = entries.reduce<Partial<Alternative>>(lesser, {});
  if (identity === undefined)
    return `${title} has no add-on ${addon}: add it, or name another one in spec.source.channel.addon`;
  return { identity, ...(namespace !== undefined && { namespace }), source: { channel: entries, addon } };
}

function lesser(least: Partial<Alternative>, one: Alternative): Partial<Alternative> {
  return least.identity === undefined || (one.identity ?? '') < least.identity ? one : least;
}

/** What an entry is for the FleetAddon of this name, and where; or why it cannot be read. */
function alternativeOf(entry: Entry, name: string): Alternative | string {
  const { name: addon, version, hash = '', kubernetesVersion = '', parsed } = entry;
  const { range, problem = '' } = parsed;
  if (range === undefined) return problem;
  const origin = contentSourceOf(contentOf(entry), name);
  if (origin === undefined) return 'it has no content';
  const read = convert(resolvedSource, origin.source.content);
  if ('problems' in read) return read.problems[0].message;
  const { identity, namespace } = origin;
  const known = { name: addon, version, hash: hash.replace('sha256:', ''), range, kubernetesVersion };
  return { ...known, content: read.value, identity, ...(namespace !== undefined && { namespace }) };
}

/** An entry as the source of a FleetAddon, which has versions of charts and packages in another place. */
function contentOf({ version, manifest, hash, chart, package: file }: Written): Parameters<typeof contentSourceOf>[0] {
  if (file !== undefined)
    return { package: { name: file.slice(0, -`-${version}.tar.gz`.length), version, hash: hash ?? '' } };
  return {
    ...(manifest !== undefined && { manifest }),
    ...(hash !== undefined && { hash }),
    ...(chart !== undefined && { chart: { ...chart, version } }),
  };
}
