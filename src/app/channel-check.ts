/** Checks channels, and the manifests that they name. */
import { checkManifests } from '../cluster/channel/check-manifests.ts';
import { checkChannel } from '../cluster/channel/check.ts';
import { byName, type Channel } from '../cluster/channel/channel.ts';
import { argumentPlace, compareDiagnostics, type Diagnostic } from '../core/diagnostic.ts';
import type { ErrorCode } from '../core/errors.ts';
import { shownLine } from '../spec/secret-settings.ts';
import type { SourcedDiagnostic } from './installer.ts';
import { openChannels, type OpenedChannel } from '../steps/open/channel-files.ts';
import { CHANNEL_CHECK } from '../requests/channel.ts';
import { useCase } from '../core/request.ts';

/** Findings with the text of their line: to know whether it is secret, the lines above it are read, too. */
const MAX_LINES = 200;

export interface CheckedChannel {
  readonly location: string;
  readonly kind: Channel['kind'] | undefined;
  readonly addons: number;
  readonly entries: number;
  /** Why the channel itself could not be used. */
  readonly error?: ErrorCode | undefined;
}

export interface CheckedChannels {
  readonly channels: readonly CheckedChannel[];
  readonly diagnostics: readonly SourcedDiagnostic[];
  readonly errors: number;
  readonly warnings: number;
}

/** Returns all findings; only cancellation and wrong options throw. */
export const checkChannels = useCase(CHANNEL_CHECK, async (request, context): Promise<CheckedChannels> => {
  await using files = await openChannels(request, context);
  const findings: Diagnostic[] = [];
  for (const opened of files.channels) {
    findings.push(...opened.diagnostics, ...unreadable(opened));
    const { channel } = opened;
    if (channel === undefined) continue;
    const manifests = await checkManifests(channel, files.reader(channel), { signal: context.signal });
    findings.push(...checkChannel(channel), ...manifests);
  }
  const all = [...findings, ...sharedFindings(files.channels)].toSorted(compareDiagnostics);
  const texts = new Map(files.channels.map(({ location, text }) => [location, text.split(/\r?\n/)]));
  const diagnostics = all.map((one, at): SourcedDiagnostic => {
    // Lines of manifests are not shown: they may contain secrets of any name.
    const lines = at < MAX_LINES ? texts.get(one.place.file) : undefined;
    return { ...one, source: lines === undefined ? undefined : shownLine(lines, one.place.line - 1) };
  });
  const count = (severity: Diagnostic['severity']): number => all.filter((one) => one.severity === severity).length;
  return { channels: files.channels.map(summary), diagnostics, errors: count('error'), warnings: count('warning') };
});

function summary({ location, channel, error }: OpenedChannel): CheckedChannel {
  const entries = channel?.entries ?? [];
  return { location, kind: channel?.kind, addons: byName(entries).size, entries: entries.length, error: error?.code };
}

function unreadable({ location, diagnostics, error }: OpenedChannel): readonly Diagnostic[] {
  if (error === undefined || diagnostics.length > 0) return [];
  const { message, hint } = error;
  return [{ code: 'channel/unreadable', severity: 'error', message, place: argumentPlace(location), hint }];
}

/** Add-ons of more than one channel: a cluster takes an add-on from one channel. */
function sharedFindings(channels: readonly OpenedChannel[]): readonly Diagnostic[] {
  const owners = new Map<string, string>();
  return channels.flatMap(({ location, channel }) =>
    [...byName(channel?.entries ?? [])].flatMap(([name, [entry]]): readonly Diagnostic[] => {
      const owner = owners.get(name) ?? location;
      owners.set(name, owner);
      if (entry === undefined || owner === location) return [];
      const message = `${name} is also in ${owner}: channels are separate, and a cluster takes an add-on from one of them`;
      const hint = 'leave each add-on to one channel';
      return [{ code: 'channel/shared', severity: 'warning', message, place: entry.place, hint }];
    }),
  );
}
