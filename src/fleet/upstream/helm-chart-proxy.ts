/** HelmChartProxy of the Helm add-on provider of Cluster API -> the fields of a FleetAddon. Pure. */
import * as v from 'valibot';
import { parseVersion } from '../../cluster/channel/range.ts';
import type { Findings } from '../../cluster/channel/findings.ts';
import { isObject } from '../../core/json.ts';
import { aMap, aText, fields, type Read } from '../../core/schema.ts';
import type { Path } from '../../formats/yaml/yaml.ts';
import { fleetAddonName, loose, selector, part, optionalText } from './kinds.ts';

/** A chart repository: `https://…`, or `oci://…` in lower case, with a host. */
export function isChartUrl(url: string): boolean {
  return /^(?:https|HTTPS|oci):\/\/(?:[^/?#]*@)?[^/?#@]+/.test(url);
}

const map = v.exactOptional(aMap);
const secret = fields({ name: aText, namespace: optionalText });
/** Secrets by which charts are downloaded: a login, and authorities. */
export const CREDENTIALS = fields({ key: optionalText, secret });
export const TLS_CONFIG = fields({
  caSecret: v.exactOptional(secret),
  insecureSkipTLSVerify: v.exactOptional(v.boolean('true or false')),
});

export const HELM_CHART_PROXY = fields({
  apiVersion: aText,
  kind: v.literal('HelmChartProxy', 'HelmChartProxy'),
  metadata: loose({ name: fleetAddonName, namespace: optionalText }),
  spec: fields({
    clusterSelector: selector,
    chartName: aText,
    repoURL: v.pipe(aText, v.check(isChartUrl, 'an address with https:// or oci://, and a host')),
    ...v.entriesFromList(['releaseName', 'namespace', 'valuesTemplate'], optionalText),
    version: v.exactOptional(
      v.pipe(
        aText,
        v.check((one) => one === '' || parseVersion(one) !== undefined, 'one version, such as 1.2.3'),
      ),
    ),
    reconcileStrategy: v.exactOptional(v.picklist(['', 'Continuous', 'InstallOnce'], 'Continuous or InstallOnce')),
    rolloutStepSize: v.exactOptional(part),
    ...v.entriesFromList(['options', 'rollout'], map),
    credentials: v.exactOptional(CREDENTIALS),
    tlsConfig: v.exactOptional(TLS_CONFIG),
  }),
  status: map,
});

/** Why something of it has no effect, by its path below `spec`; `options` that are not here are no options. */
const IGNORED: Readonly<Record<string, string>> = {
  'options.disableHooks': 'hooks of charts run',
  'options.waitForJobs': 'curlew waits for what the chart makes, and not for its Jobs',
  'options.dependencyUpdate': 'charts come with what they depend on',
  'options.timeout': 'rollout.progressDeadline of a FleetAddon is its time',
  'options.skipCRDs': 'CRDs of a chart are installed',
  'options.options': 'subcharts show no notes',
  'options.disableOpenAPIValidation': 'the API server validates',
  'options.enableClientCache': 'curlew has no such cache',
  'options.takeOwnership': 'set adopt in a FleetAddon',
  'options.install.createNamespace': 'a missing namespace is created',
  'options.install.includeCRDs': 'CRDs of a chart are installed',
  'options.upgrade.force': 'objects are patched',
  'options.upgrade.resetValues': 'each upgrade has exactly the values of the template',
  'options.upgrade.reuseValues': 'each upgrade has exactly the values of the template',
  'options.upgrade.resetThenReuseValues': 'each upgrade has exactly the values of the template',
  'options.upgrade.recreate': 'pods are replaced by their controllers',
  'options.upgrade.maxHistory': 'helm keeps its own number of revisions',
  'options.upgrade.cleanupOnFail': 'the next upgrade corrects a failed one',
  'options.uninstall.keepHistory': 'the history of a removed release is removed',
  'options.uninstall.description': 'curlew describes its own removals',
  rollout: 'it was a proposal: write rolloutStepSize, or the rollout of a FleetAddon',
};
const GROUPS = new Set(['options', 'options.install', 'options.upgrade', 'options.uninstall']);
/** What happens anyway. */
const ALWAYS: Readonly<Record<string, unknown>> = {
  'options.install.createNamespace': true,
  'options.enableClientCache': false,
  'options.install.includeCRDs': true,
};

/**
 * The rest of a FleetAddon and its chart; each field that has no effect is a warning with its place. `follows`: without a version, it is
 * kept at the newest one.
 */
export function fromHelmChartProxy(
  { metadata, spec }: Read<typeof HELM_CHART_PROXY>,
  findings: Findings,
  { follows }: { readonly follows: boolean },
) {
  const { name } = metadata;
  const { chartName, repoURL, version, valuesTemplate, reconcileStrategy, rolloutStepSize } = spec;
  const { wait, atomic, ...options } = spec.options ?? {};
  noteIgnored(options, ['spec', 'options'], findings);
  if (spec.rollout !== undefined) noteIgnored(true, ['spec', 'rollout'], findings);
  if (!version && !follows) {
    const message = `no version: each cluster gets the newest ${chartName} of its first day, and keeps it; the provider upgrades it`;
    findings.add('warning', 'version', ['spec', 'chartName'], message, 'write version, or curlew.dev/compat: caaph');
  }
  const isOci = repoURL.startsWith('oci:');
  const chart = {
    ...(isOci ? { oci: `${repoURL.replace(/\/+$/, '')}/${chartName}` } : { repoURL, name: chartName }),
    releaseName: spec.releaseName || name,
    namespace: spec.namespace || 'default',
    wait: wait === true,
    atomic: atomic === true,
  };
  return {
    entry: { name, version: version || undefined, chart },
    spec: {
      source: {},
      clusterSelector: spec.clusterSelector,
      ...(valuesTemplate !== undefined && { valuesTemplate }),
      ...(reconcileStrategy && { mode: reconcileStrategy }),
      ...(rolloutStepSize !== undefined && {
        rollout: { type: 'Progressive', maxConcurrency: rolloutStepSize } as const,
      }),
    },
  };
}

function noteIgnored(value: unknown, path: Path, findings: Findings): void {
  const name = path.slice(1).join('.');
  const { [name]: why } = IGNORED;
  if (name in ALWAYS && value === ALWAYS[name]) return;
  if (why !== undefined) findings.ignored(path, name, why);
  else if (isObject(value) && GROUPS.has(name))
    for (const key in value) noteIgnored(value[key], [...path, key], findings);
  else findings.error('unknown-field', path, `"${String(path.at(-1))}" is not a field`);
}
