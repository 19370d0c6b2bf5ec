/** What is delivered to a cluster, and what is to be done about it. A channel is one producer of add-ons. */
import type { ChartAccess, Compat, Entry } from '../channel/channel.ts';
import type { AddonAction, LiveState } from '../channel/pass.ts';
import type { AddonRecord, Annotated } from '../channel/record.ts';
import { secretsIn, type Secret } from '../../core/secret.ts';

/** Label of every object of a manifest; its value is {@link addonId}. */
export const ADDON_LABEL = 'fleet.curlew.dev/addon';

/** The field manager of an add-on, by its id: two add-ons that apply one object conflict. */
export function managerOf(id: string): string {
  return `curlew/${id}`;
}

/** How it is to be on the cluster: its content, its place and its policy. Only manifests and charts can be delivered. */
export interface Addon extends Pick<
  Entry,
  | 'name'
  | 'namespace'
  | 'objectNamespace'
  | 'version'
  | 'id'
  | 'hash'
  | 'source'
  | 'drift'
  | 'needsPKI'
  | 'needsRollingUpdate'
> {
  /** The value of a channel's entry; `recorded`: as `auto`, and only what the record names is looked at. */
  readonly prune: Entry['prune'] | 'recorded';
  /** Most of its objects are not deleted at once: {@link HeldDeletion} instead. */
  readonly guardsObjects?: boolean;
  /** Who may change it, such as `channel:NAME`; the record has it. */
  readonly owner: string;
  /** Location of what names it. */
  readonly origin: string;
  /** The rules of its producer: those of kops take fields and objects of others. */
  readonly compat: Compat;
  /** Its workloads are healthy by the rules of Open Cluster Management. */
  readonly asOcm?: boolean;
  /** The manifest, or the archive of a chart that is a file, checked against `hash`. */
  readonly read: () => Promise<Uint8Array>;
  /** The hash of a manifest for which its producer names none. */
  readonly hashOf: (content: Uint8Array) => string;
  /** What helm gets for a chart; undefined: the values of the chart itself, whose texts are templates. */
  readonly values?: Readonly<Record<string, unknown>>;
  /** What its chart needs to be downloaded, and values that nothing shows. */
  readonly access?: ChartAccess;
}

/** What nothing shows of an add-on, although helm gets it. */
export function hiddenIn({ access }: Pick<Addon, 'access'>): readonly Secret[] {
  return secretsIn(access?.values?.hidden);
}

/** An add-on, and how the cluster is now. */
export interface Task {
  readonly addon: Addon;
  readonly action: AddonAction;
  /** Undefined if nothing is. */
  readonly installed: Annotated | undefined;
  readonly record: AddonRecord | undefined;
  readonly look: LiveState;
}

/** Only what is missing, or was changed, is applied. */
export function isPartial({ action }: Pick<Task, 'action'>): boolean {
  return action === 'restore' || action === 'revert';
}
