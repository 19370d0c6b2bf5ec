/** The source of a FleetAddon in a hub: its content by digest, and what cannot exist twice in a cluster. Pure. */
import type { Read } from '../core/schema.ts';
import { recordIdentity, releaseIdentity } from '../fleet/fleet.ts';
import type { FleetAddon, Values } from '../rollout/fleet.ts';
import type { HUB_KINDS } from './schema.ts';

export type HubSource = Read<typeof HUB_KINDS.FleetAddon.spec>['source'];
type Found = Pick<FleetAddon, 'identity' | 'namespace'> & {
  readonly source: { readonly content: Values; readonly version?: string };
};

/** What a source says by digest; undefined for a channel, and for what breaks a rule. */
export function sourceOf(
  { chart, package: packed, manifest, hash, template }: HubSource,
  name: string,
): Found | undefined {
  const byName = { namespace: 'kube-system', addon: template ?? name };
  if (chart !== undefined) {
    const { namespace = 'kube-system', releaseName = name, version } = chart;
    const content = { chart: { ...chart, namespace, releaseName }, ...(hash !== undefined && { hash }) };
    return {
      namespace,
      identity: releaseIdentity({ namespace, name: releaseName }),
      source: { content, ...(version !== undefined && { version }) },
    };
  }
  const identity = recordIdentity(byName);
  const { namespace } = byName;
  if (packed !== undefined) {
    return { namespace, identity, source: { content: { package: packed }, version: packed.version } };
  }
  if (template !== undefined) return { namespace, identity, source: { content: { template } } };
  if (manifest === undefined || hash === undefined) return undefined;
  return { namespace, identity, source: { content: { manifest, hash } } };
}
