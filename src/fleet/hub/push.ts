/** What the controller does itself on clusters whose kubeconfig the hub has, and what it reports of them. Pure. */
import { recordKey } from '../../cluster/channel/record.ts';
import { canonicalJson } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { fits } from '../../core/schema.ts';
import { timeOf } from '../../core/time.ts';
import type { Reply, Look } from '../fleet.ts';
import { installedIn, isHandedOver, fleetOwner, leftOf, ownRecord, recordsOf } from '../observe.ts';
import type { Deliverable, Job } from '../pass.ts';
import { decodedBase64 } from '../upstream/capi-objects.ts';
import { refusalWithoutAgent } from '../upstream/addon-template.ts';
import { objectsOf } from '../upstream/template-objects.ts';
import type { Cluster, ClusterAddon, ClusterAddonSpec, Values } from '../rollout/fleet.ts';
import { leaves } from '../rollout/leaving.ts';
import { retryAt } from '../rollout/orders.ts';
import { isFailure } from '../rollout/strategy.ts';
import { DELETIONS } from '../rollout/pruning.ts';
import { nextStatus, type AddonReport } from './addon-status.ts';
import { answerTo, restoreWaits } from './changed-by-others.ts';
import { hubClusterStatus } from './cluster-status.ts';
import { contentOf, registrationIn } from './content.ts';
import { valuesPlaces } from './content-source.ts';
import { COMPAT } from '../upstream/document.ts';
import type { HubAddon, HubCluster } from './observe.ts';
import { HUB_KINDS, resolvedSource } from './hub-kinds.ts';

/** Text of the kubeconfig in a Secret. `title` is for messages. */
export function kubeconfigIn(secret: Values, title: string): string {
  const { kubeconfig } = isObject(secret['data']) ? secret['data'] : {};
  return textIn(secret, kubeconfig === undefined ? 'value' : 'kubeconfig', title);
}

/** A text of a Secret, or of a ConfigMap, where it is written as it is. */
export function textIn({ kind, data }: Values, key: string, title: string): string {
  const value = isObject(data) ? data[key] : undefined;
  const text = typeof value !== 'string' || kind === 'ConfigMap' ? value : decodedBase64(value);
  if (typeof text === 'string') return text;
  throw new CurlewError('CLUSTER_FAILED', noText(key, title));
}

/** What is said of an object without a text. */
export function noText(key: string, title: string): string {
  return `${title} has no text in data.${key}`;
}

/** Where a hub has what a chart needs besides; undefined if it needs nothing. */
export function accessIn({ source }: Pick<ClusterAddonSpec, 'source'>) {
  const { chart, valuesConfigMap, valuesSecret } = fits(resolvedSource, source) ? source : {};
  const { credentials, tlsConfig } = chart ?? {};
  const values = valuesPlaces({ valuesConfigMap, valuesSecret });
  if ((credentials ?? tlsConfig) === undefined && values.length === 0) return undefined;
  const { key = 'config.json', secret } = credentials ?? {};
  const { caSecret, insecureSkipTLSVerify: trustsAll } = tlsConfig ?? {};
  const named = (one: { readonly namespace?: string; readonly name: string }) => ({ namespace: 'default', ...one });
  return {
    logins: secret && { ...named(secret), key },
    authorities: caSecret && { ...named(caSecret), key: 'ca.crt' },
    trustsAll,
    values,
  };
}

/** What is delivered, or why it cannot be. */
export function deliverableOf(
  { cluster, addon, spec }: ClusterAddon,
  from: Pick<HubAddon, 'addon' | 'drift'> | undefined,
): Deliverable | string {
  const content = contentOf(addon, spec);
  if (content === undefined) return 'this version of curlew cannot read its content';
  if ('package' in content) return 'a package is installed on nodes, which only an agent can do';
  // What names it is no file.
  const place = { ...content.entry.place, file: `/fleetaddons/${addon}` };
  const entry = { ...content.entry, place, ...(from?.drift && { drift: from.drift }) };
  const rendered = content.isTemplate ? objectsOf(spec.values, cluster, entry.name) : undefined;
  return { entry, content: spec, revision: String(spec.revision), rendered, rules: from?.addon.compat };
}

/** What an add-on needs on a cluster that has answered, or how it is there; undefined if what is reported of it still counts. */
export function jobOrReport(
  { cluster, addon, spec, status }: ClusterAddon,
  look: Reply,
  from: Pick<HubAddon, 'addon' | 'drift' | 'origin'> | undefined,
  { now, windows }: { readonly now: number; readonly windows?: Cluster['windows'] },
): Job | AddonReport | undefined {
  const { adopt, orders, mode } = from?.addon ?? {};
  const orphans = leftOf(recordsOf(look), addon);
  const isAbout = status?.applied.revision === spec.revision && status.applied.hash === spec.specHash;
  const isRetried = status !== undefined && status.since < retryAt(orders, now);
  const isOver = isAbout && !isRetried && isFailure(status.state);
  const job = { cluster, addon, hash: spec.specHash, takesOver: false, prune: spec.prune, isNew: true };
  if (spec.action === 'Remove') {
    return isOver || (isAbout && status.state === 'Succeeded')
      ? undefined
      : {
          ...job,
          act: leaves(spec) ? 'forget' : 'remove',
          hash: '',
        };
  }
  const owner = installedIn(look.facts)[spec.identity]?.owner;
  const isFleets = owner === undefined || owner.startsWith(fleetOwner(''));
  if (!isFleets && adopt !== true) {
    return {
      state: 'Skipped',
      reason: 'OtherOwner',
      message: `it belongs to ${owner}: ${wayOver(addon, from?.origin)}`,
    };
  }
  const refusal = registrationIn(cluster, spec) && refusalWithoutAgent(spec.values);
  if (refusal !== undefined) return { state: 'Skipped', reason: 'Registration', message: refusal, orphans };
  // What waits for an approval gets another revision by that.
  if (isOver || (isAbout && status.reason === DELETIONS)) return undefined;
  const records = recordsOf(look);
  const record = ownRecord(records, addon);
  const isThere = record?.state === 'Succeeded' && record.applied?.id === spec.specHash;
  const isSettled = isAbout && status.state === 'Succeeded';
  if (isSettled && record !== undefined && mode === 'InstallOnce') return { state: 'Succeeded', orphans };
  if (!isSettled || !isThere) {
    const takesOver = owner === undefined ? adopt === true : owner !== fleetOwner(addon);
    return { ...job, act: record === undefined ? 'install' : 'update', takesOver };
  }
  if (isHandedOver(record, records)) return { state: 'Succeeded', orphans };
  const answer = answerTo(look.live?.get(recordKey(record.namespace, record.addon)), from?.drift);
  if (!('restores' in answer)) return { state: 'Succeeded', ...answer, orphans };
  const waits = restoreWaits(answer.restores, from?.addon, { now, windows });
  return waits === undefined ? { ...job, act: 'restore' } : { state: 'Succeeded', ...waits, orphans };
}

/** What a person does about another owner. The controller overwrites what it has made from an object of another program. */
function wayOver(addon: string, origin: HubAddon['origin']): string {
  if (origin === undefined) return `adopt: true in the spec of FleetAddon ${addon} takes it over`;
  if (origin.from.startsWith('HelmChartProxy '))
    return `the annotation ${COMPAT}: caaph of ${origin.from} takes it over`;
  return 'remove it there first';
}

/** The add-on of the fleet that leaves what this job takes over: its record goes without its objects. */
export function previousOwner({ addon, takesOver }: Job, { spec }: ClusterAddon, look: Reply): string | undefined {
  const owner = installedIn(look.facts)[spec.identity]?.owner;
  return takesOver && owner?.startsWith(fleetOwner('')) === true && owner !== fleetOwner(addon)
    ? owner.slice(fleetOwner('').length)
    : undefined;
}

/** The status that a ClusterAddon gets by a report about `spec`; undefined if it has it. */
export function reportedStatus(
  spec: ClusterAddonSpec,
  report: AddonReport,
  stored: unknown,
  now: number,
): Values | undefined {
  const applied = { revision: spec.revision, hash: spec.specHash };
  return nextStatus(
    { ...report, applied, isAvailable: report.state === 'Succeeded' && spec.action === 'Install' },
    stored,
    now,
  );
}

/** The status of a Cluster at `now`; undefined if only the time of its last answer has changed. */
export function pushedStatus(
  { status: stored }: HubCluster,
  look: Look,
  { now, seen }: { readonly now: number; readonly seen: number | undefined },
): Values | undefined {
  const answer =
    'problem' in look
      ? { facts: undefined, problem: look.problem, ahead: undefined }
      : { facts: { version: look.kubernetes, server: look.server }, problem: '', ahead: look.ahead ?? 0 };
  const next = hubClusterStatus(answer, [], stored, now);
  const { lastSeen: last, ...old } = fits(HUB_KINDS.Cluster.status, stored) ? stored : {};
  if (canonicalJson(next) === canonicalJson(old)) return undefined;
  const lastSeen = answer.facts ? timeOf(now) : seen === undefined ? last : timeOf(seen);
  return { ...next, ...(lastSeen !== undefined && { lastSeen }) };
}
