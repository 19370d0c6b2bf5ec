/** A HelmChartProxy in a hub: the FleetAddon that the controller makes from it, and the status that it gets. Pure. */
import { convert } from '../../core/schema.ts';
import { COMPAT, compatOf } from '../upstream/document.ts';
import { fromHelmChartProxy, HELM_CHART_PROXY } from '../upstream/helm-chart-proxy.ts';
import type { Values } from '../rollout/fleet.ts';
import { selects, type Selector } from '../rollout/groups.ts';
import { NAMESPACE_LABEL } from './capi.ts';
import { findingsOf, FROM, PAUSED, type HubAddon, type HubCluster, type Live, type Made } from './observe.ts';
import { readForeign, type ForeignObject } from './foreign-objects.ts';
import { conditionsAt } from './write.ts';

/** Also the length of the name of a FleetAddon. */
const MAX_NAME = 53;

export interface HubProxy extends ForeignObject {
  /** Name of what it becomes. */
  readonly title: string;
  /** Its chart is kept at the newest version. */
  readonly follows: boolean;
  /** What it becomes, or why it becomes nothing. */
  readonly made: (Made & { readonly name: string }) | string;
  /** What has no effect. */
  readonly notes: readonly string[];
  /** Does its template use more than the Cluster? */
  readonly needsRoots: boolean;
}

const NONE = { notes: [], needsRoots: false, follows: false };

/** The FleetAddon has its name in the namespace `default`, and `NAMESPACE-NAME` in others. */
export function readProxy(object: Live): HubProxy {
  const { namespace = 'default', name, annotations } = object.metadata;
  const title = namespace === 'default' ? name : `${namespace}-${name}`;
  const taken = { ...readForeign('HelmChartProxy', object), title };
  const findings = findingsOf(taken.from);
  const read = convert(HELM_CHART_PROXY, object);
  if ('problems' in read) return { ...taken, made: read.problems[0].message, ...NONE };
  const compat = compatOf(object, findings) ?? 'native';
  const { entry, spec } = fromHelmChartProxy(read.value, findings, { follows: compat === 'caaph' });
  const wrong = findings.diagnostics.find(({ severity }) => severity === 'error');
  if (wrong !== undefined) return { ...taken, made: wrong.message, ...NONE };
  if (title.length > MAX_NAME) return { ...taken, made: `${title} is too long for a FleetAddon`, ...NONE };
  const { credentials, tlsConfig } = read.value.spec;
  const { caSecret } = tlsConfig ?? {};
  const foreign = [credentials?.secret, caSecret].find((secret) => (secret?.namespace ?? namespace) !== namespace);
  if (foreign !== undefined) {
    const made = `Secret ${foreign.namespace ?? ''}/${foreign.name} is not in its namespace: only those of ${namespace} are used for it`;
    return { ...taken, made, ...NONE };
  }
  const { wait, atomic, ...chart } = entry.chart;
  const { matchLabels, ...selector } = spec.clusterSelector;
  const { version } = entry;
  const paused = String('cluster.x-k8s.io/paused' in annotations);
  const made = {
    name: title,
    labels: {},
    annotations: { [FROM]: taken.from, [COMPAT]: compat, [PAUSED]: paused },
    spec: {
      ...spec,
      source: {
        chart: {
          ...chart,
          ...(version !== undefined && { version }),
          ...(wait && { wait }),
          ...(atomic && { atomic }),
          ...(credentials && { credentials: { ...credentials, secret: { namespace, ...credentials.secret } } }),
          ...(tlsConfig && {
            tlsConfig: { ...tlsConfig, ...(caSecret && { caSecret: { namespace, ...caSecret } }) },
          }),
        },
      },
      clusterSelector: { ...selector, matchLabels: { ...matchLabels, [NAMESPACE_LABEL]: namespace } },
    },
  };
  const needsRoots = /\.(?:ControlPlane|InfraCluster)\b/.test(spec.valuesTemplate ?? '');
  const follows = compat === 'caaph' && version === undefined;
  return { ...taken, made, needsRoots, follows, notes: findings.diagnostics.map(({ message }) => message) };
}

/** The status of a proxy at `now`, by that of its FleetAddon; `problem` says why it has none. */
export function proxyStatus(
  { at, made, generation, conditions, isDeleting }: HubProxy,
  addon: HubAddon | undefined,
  {
    clusters,
    problem,
    now,
  }: { readonly clusters: readonly HubCluster[]; readonly problem?: string | undefined; readonly now: number },
): Values {
  const { clusterSelector } = (typeof made === 'string' ? {} : made.spec) as { readonly clusterSelector?: Selector };
  const isMeant = ({ origin, cluster }: HubCluster): boolean =>
    origin !== undefined && clusterSelector !== undefined && selects(clusterSelector, cluster.labels);
  const matching = clusters.filter(isMeant).map(({ cluster }) => cluster);
  const present = conditionsOf(addon, { problem: problem ?? addon?.problem, isDeleting });
  return {
    conditions: conditionsAt(present, conditions, now).map((one) => ({ ...one, observedGeneration: generation })),
    matchingClusters: matching.map(({ name, object = {} }) => {
      return { apiVersion: object['apiVersion'], kind: 'Cluster', name, namespace: at.namespace };
    }),
    observedGeneration: generation,
  };
}

const UPDATED = 'HelmReleaseProxySpecsUpToDate';

function conditionsOf(
  from: HubAddon | undefined,
  { problem, isDeleting }: { readonly problem: string | undefined; readonly isDeleting: boolean },
) {
  const { status, generation } = from?.addon ?? {};
  const { counts = {}, waiting: [first] = [], stopped } = status ?? {};
  const { Succeeded = 0, Failed = 0, TimedOut = 0 } = counts;
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const why = problem ?? (first && `${first.cluster}: ${first.message}`) ?? '';
  const isPresent = status !== undefined && status.observedGeneration === generation;
  const isUpdated = why === '' && isPresent && !isDeleting;
  const doing = isDeleting ? 'HelmReleaseProxyDeletionFailed' : 'HelmReleaseProxySpecsUpdating';
  const parts = first?.reason === 'Content' ? 'ValueParsingFailed' : doing;
  const trouble = problem === undefined ? parts : 'HelmReleaseProxyCreationFailed';
  // The counts of an older generation are about what is being replaced.
  const isReady = isPresent && Succeeded === total;
  const hasFailed = Failed + TimedOut > 0 || stopped !== undefined;
  const behind = hasFailed ? 'HelmInstallOrUpgradeFailed' : 'HelmReleasePending';
  const done = `${Succeeded} of ${total} clusters have it`;
  const isAll = isUpdated && isReady;
  return [
    { type: 'Ready', is: isAll, reason: isAll ? 'Ready' : 'NotReady', message: isAll ? '' : why || done },
    { type: 'HelmReleaseProxiesReady', is: isReady, reason: isReady ? 'Ready' : behind, message: stopped ?? done },
    { type: UPDATED, is: isUpdated, reason: isUpdated ? 'UpToDate' : trouble, message: why },
  ].map(({ is, ...one }) => ({ ...one, status: is ? ('True' as const) : ('False' as const) }));
}
