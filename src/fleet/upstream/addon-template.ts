/** AddOnTemplate and AddOnDeploymentConfig of Open Cluster Management: their fields. template-objects.ts makes objects from them. Pure. */
import * as v from 'valibot';
import type { Findings } from '../../cluster/channel/findings.ts';
import { isObject } from '../../core/json.ts';
import { aMap, aText, fields, type Read } from '../../core/schema.ts';
import { foreign, labels, like, list, optionalText, anything, dnsName } from './kinds.ts';
import { certificatesOf, REGISTRATIONS } from './registration.ts';

const maps = v.exactOptional(list(aMap));
const namespace = v.exactOptional(like(/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)?$/, 'a namespace'));

const rule = fields({ group: optionalText, resource: aText, name: aText, namespace: optionalText });
export const deleteOption = fields({
  propagationPolicy: v.exactOptional(
    v.picklist(['Foreground', 'Orphan', 'SelectivelyOrphan'], 'Foreground, Orphan or SelectivelyOrphan'),
  ),
  selectivelyOrphans: v.exactOptional(fields({ orphaningRules: v.exactOptional(list(rule)) })),
  ttlSecondsAfterFinished: anything,
});
const agentSpec = fields({
  workload: v.exactOptional(fields({ manifests: maps })),
  deleteOption: v.exactOptional(deleteOption),
  manifestConfigs: anything,
  executor: anything,
});
const template = { addonName: aText, agentSpec, registration: v.exactOptional(REGISTRATIONS) };
export const ADDON_TEMPLATE = foreign(dnsName, template);

export const VARIABLE = '[A-Za-z_][A-Za-z0-9_]*';
const CONTAINER = /^(?:deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):[^:]+:[^:]+$/;
const deploymentConfig = {
  customizedVariables: v.exactOptional(
    list(fields({ name: like(new RegExp(`^${VARIABLE}$`), 'a name of letters, digits and "_"'), value: aText })),
  ),
  nodePlacement: v.exactOptional(fields({ nodeSelector: v.exactOptional(labels), tolerations: maps })),
  registries: v.exactOptional(list(fields({ source: optionalText, mirror: aText }))),
  proxyConfig: v.exactOptional(
    fields({ httpProxy: optionalText, httpsProxy: optionalText, noProxy: optionalText, caBundle: optionalText }),
  ),
  agentInstallNamespace: namespace,
  resourceRequirements: v.exactOptional(
    list(fields({ containerID: like(CONTAINER, 'KIND:NAME:CONTAINER, each of which may be *'), resources: aMap })),
  ),
};
export const ADDON_DEPLOYMENT_CONFIG = foreign(dnsName, deploymentConfig);
/** The values of an add-on that is made from both. */
export const TEMPLATE_VALUES = fields({
  templates: v.exactOptional(list(fields(template))),
  configs: v.exactOptional(list(fields(deploymentConfig))),
  namespace: optionalText,
});

export type Template = Read<typeof ADDON_TEMPLATE>['spec'];
export type DeploymentConfig = Read<typeof ADDON_DEPLOYMENT_CONFIG>['spec'];

/** Why a template with registrations cannot be installed over the kubeconfig of a cluster. */
export const NO_AGENT =
  'its template asks for certificates of a hub, which only an agent gets: register the cluster at a hub that has the template';

/** Why an add-on with these values cannot be on a cluster without an agent; undefined if it can. */
export function refusalWithoutAgent(values: unknown): string | undefined {
  return certificatesOf(values, { cluster: '', addon: '' }).length > 0 ? NO_AGENT : undefined;
}

const IGNORED: Readonly<Record<string, string>> = {
  'agentSpec.manifestConfigs': 'objects are applied by the server, and curlew knows when they are healthy',
  'agentSpec.executor': 'what the kubeconfig of a cluster may do counts',
  'agentSpec.deleteOption.ttlSecondsAfterFinished': 'what was applied stays',
};

/** Warns of each field that has no effect; `hasHub`: from the objects of a hub. */
export function noteTemplate(
  { spec }: Read<typeof ADDON_TEMPLATE>,
  { findings, hasHub }: { readonly findings: Findings; readonly hasHub: boolean },
): void {
  if (!hasHub && (spec.registration ?? []).length > 0)
    findings.add('warning', 'registration', ['spec', 'registration'], `it is not installed: ${NO_AGENT}`);
  for (const [field, why] of Object.entries(IGNORED)) {
    const path = field.split('.');
    const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), spec);
    const isEmpty = value === undefined || (Array.isArray(value) && value.length === 0);
    if (!isEmpty) findings.ignored(['spec', ...path], field, why);
  }
}

/** Warns of each field that has no effect. */
export function noteConfig({ spec }: Read<typeof ADDON_DEPLOYMENT_CONFIG>, findings: Findings): void {
  if (spec.proxyConfig?.caBundle === undefined) return;
  const why = 'mount the authority with an object of the template';
  findings.ignored(['spec', 'proxyConfig', 'caBundle'], 'proxyConfig.caBundle', why);
}
