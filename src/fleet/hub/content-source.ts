/** The source of a FleetAddon in a hub: its content by digest, and what cannot exist twice in a cluster. Pure. */
import * as v from 'valibot';
import { fits, type Read } from '../../core/schema.ts';
import { recordIdentity, releaseIdentity } from '../fleet.ts';
import { VALUES_FIELDS } from '../schema.ts';
import type { FleetAddon, Values } from '../rollout/fleet.ts';
import type { HUB_KINDS } from './hub-kinds.ts';

type Spec = Read<typeof HUB_KINDS.FleetAddon.spec>;
export type HubSource = Spec['source'];
/** Where values of an add-on are that its FleetAddon does not have. */
export type ValuesPlace = NonNullable<Spec['valuesSecret']> & { readonly kind: keyof typeof VALUES_FIELDS };
type Place = Pick<FleetAddon, 'identity' | 'namespace'>;
type Found = Place & { readonly source: { readonly content: Values; readonly version?: string } };

/** Without another one, charts and records are there. */
const NAMESPACE = 'kube-system';

const text = v.exactOptional(v.string());
const any = v.exactOptional(v.unknown());
/** What says where a source is installed; other fields of it may be unknown. */
const placed = v.object({
  chart: v.exactOptional(v.object({ namespace: text, releaseName: text })),
  package: any,
  manifest: any,
  template: text,
});

/** Where a source is installed whose other fields cannot be read; undefined if that is unknown, such as for a channel. */
export function placeIn(source: unknown, name: string): Place | undefined {
  if (!fits(placed, source)) return undefined;
  const { chart, package: packed, manifest, template } = source;
  if (chart !== undefined) return placeOfRelease(chart.namespace ?? NAMESPACE, chart.releaseName ?? name);
  return (packed ?? manifest ?? template) === undefined ? undefined : placeOfRecord(template ?? name);
}

function placeOfRelease(namespace: string, name: string): Place {
  return { namespace, identity: releaseIdentity({ namespace, name }) };
}

function placeOfRecord(addon: string): Place {
  return { namespace: NAMESPACE, identity: recordIdentity({ namespace: NAMESPACE, addon }) };
}

/** What a source says by digest; undefined for a channel, and for what breaks a rule. */
export function contentSourceOf(
  { chart, package: packed, manifest, hash, template }: HubSource,
  name: string,
): Found | undefined {
  if (chart !== undefined) {
    const { namespace = NAMESPACE, releaseName = name, version } = chart;
    const content = { chart: { ...chart, namespace, releaseName }, ...(hash !== undefined && { hash }) };
    return {
      ...placeOfRelease(namespace, releaseName),
      source: { content, ...(version !== undefined && { version }) },
    };
  }
  const place = placeOfRecord(template ?? name);
  if (packed !== undefined) return { ...place, source: { content: { package: packed }, version: packed.version } };
  if (template !== undefined) return { ...place, source: { content: { template } } };
  if (manifest === undefined || hash === undefined) return undefined;
  return { ...place, source: { content: { manifest, hash } } };
}

/** Where the values are, each with its kind. Those of a later one win. */
export function valuesPlaces<Place>(
  all: Readonly<Partial<Record<(typeof VALUES_FIELDS)[ValuesPlace['kind']], Place | undefined>>>,
): readonly (Place & Pick<ValuesPlace, 'kind'>)[] {
  return (Object.keys(VALUES_FIELDS) as ValuesPlace['kind'][]).flatMap((kind) => {
    const place = all[VALUES_FIELDS[kind]];
    return place === undefined ? [] : [{ kind, ...place }];
  });
}
