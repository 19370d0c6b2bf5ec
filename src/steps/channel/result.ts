/** The request of a pass, and its report. */
import type { AddonAction, UnlistedAddon, PassAddon, UnfitAddon } from '../../cluster/channel/pass.ts';
import { redact } from '../../core/errors.ts';
import type { Outcome, Trouble } from '../../cluster/deliver/outcome.ts';

export interface AddonResult extends Omit<Outcome, 'state'> {
  readonly addon: string;
  /** Namespace of the record. */
  readonly namespace: string;
  /** Location of its channel. */
  readonly channel: string;
  readonly action: AddonAction;
  readonly reason: string;
  /** Versions, or the beginning of the hash of what has none. */
  readonly current: string | undefined;
  readonly wanted: string;
  /** The installed version is not for this version of Kubernetes. */
  readonly incompatible: boolean;
  /** `refused`: held back until an option asks for it. */
  readonly state: Outcome['state'] | 'refused' | 'skipped';
}

export interface ChannelPass {
  readonly cluster: { readonly server: string; readonly kubernetes: string };
  /** Nothing was applied: this is what a pass would do. */
  readonly isPreview: boolean;
  readonly addons: readonly AddonResult[];
  /** Installed add-ons for which their channel has no entry now. */
  readonly unlisted: readonly (Omit<UnlistedAddon, 'installed'> & { readonly current: string })[];
  /** Add-ons of the channels that are not for this version of Kubernetes. */
  readonly unfit: readonly UnfitAddon[];
  readonly warnings: readonly string[];
  /** Errors of channels that could not be read. */
  readonly errors: readonly Trouble[];
}

export function resultOf(planned: PassAddon, outcome: Pick<AddonResult, keyof Outcome>): AddonResult {
  const { channel, entry, action, reason, installed, incompatible } = planned;
  return {
    addon: entry.name,
    namespace: entry.namespace,
    channel: redact(channel.location),
    action,
    reason,
    current: titleOfRevision(installed),
    wanted: titleOfRevision(entry) ?? '',
    incompatible,
    ...outcome,
  };
}

export function titleOfRevision(
  revision:
    | { readonly version?: string | undefined; readonly id?: string | undefined; readonly hash?: string | undefined }
    | undefined,
): string | undefined {
  if (revision === undefined) return undefined;
  const { version = '', id = '', hash = '' } = revision;
  const title = version === '' ? hash.slice(0, 12) : version;
  return id === '' ? title : `${title} (${id})`.trim();
}
