/** Cluster of Cluster API -> the fields of a Cluster of a fleet, and back. Pure. */
import * as v from 'valibot';
import { isObject } from '../../core/json.ts';
import { aText, type Read } from '../../core/schema.ts';
import type { Values } from '../rollout/fleet.ts';
import { clusterName, labels, list, loose, optionalText } from './kinds.ts';

const blocks = v.exactOptional(loose({ cidrBlocks: v.exactOptional(list(aText)) }));

/** The rest of it describes machines, and is for templates. */
export const CAPI_CLUSTER = loose({
  metadata: loose({ name: clusterName, labels: v.exactOptional(labels) }),
  spec: v.exactOptional(
    loose({
      paused: v.exactOptional(v.boolean('true or false')),
      clusterNetwork: v.exactOptional(loose({ pods: blocks, services: blocks, serviceDomain: optionalText })),
    }),
  ),
});

/** Its kubeconfig is in a file next to its own: its Secret is on the management cluster. */
export function fromCapiCluster({ metadata: { name }, spec = {} }: Read<typeof CAPI_CLUSTER>) {
  const { pods, services, serviceDomain } = spec.clusterNetwork ?? {};
  const [podBlock, serviceBlock] = [pods?.cidrBlocks?.[0], services?.cidrBlocks?.[0]];
  return {
    ...(spec.paused !== undefined && { paused: spec.paused }),
    networks: {
      ...(podBlock !== undefined && { pods: podBlock }),
      ...(serviceBlock !== undefined && { services: serviceBlock }),
      ...(serviceDomain !== undefined && { domain: serviceDomain }),
    },
    access: { kubeconfig: `${name}.kubeconfig` },
  };
}

/** Ends the name of the Secret that Cluster API makes for a Cluster. */
export const KUBECONFIG_SUFFIX = '-kubeconfig';

/** What templates call the object that a field of the Cluster refers to. */
const ROOTS = { controlPlaneRef: 'ControlPlane', infrastructureRef: 'InfraCluster' } as const;

/** What a Cluster refers to, each with its name in templates. */
export function rootsOf(spec: unknown): readonly { readonly root: string; readonly reference: Values }[] {
  return Object.entries(ROOTS).flatMap(([field, root]) => {
    const reference = isObject(spec) ? spec[field] : undefined;
    return isObject(reference) ? [{ root, reference }] : [];
  });
}

/** What templates of upstream see of a cluster that is not one of Cluster API. */
export function capiObject(
  metadata: Values,
  { pods, services, domain }: { readonly pods?: string; readonly services?: string; readonly domain?: string } = {},
): Values {
  const clusterNetwork = {
    ...(pods !== undefined && { pods: { cidrBlocks: [pods] } }),
    ...(services !== undefined && { services: { cidrBlocks: [services] } }),
    ...(domain !== undefined && { serviceDomain: domain }),
  };
  return { metadata, spec: { clusterNetwork } };
}
