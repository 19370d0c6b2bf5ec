/** The content of a ClusterAddon as the entry of a channel has it, by which it is delivered. Pure. */
import type { Entry, Source } from '../../cluster/channel/channel.ts';
import { CHANNEL_RECORDS } from '../../core/layout.ts';
import { convert, fits } from '../../core/schema.ts';
import type { AddonContent } from '../rollout/fleet.ts';
import { certificatesOf, type AddonCertificate } from '../upstream/registration.ts';
import { resolvedSource } from './hub-kinds.ts';

/** What a hub names by the digest of a package, which is installed by a node. */
export interface HubPackage {
  readonly name: string;
  readonly version: string;
  readonly hash: string;
}

/** Undefined for what this version cannot read. A template has no file: its objects are made from values, and nothing signs them. */
export function contentOf(
  name: string,
  { source: written, version }: Pick<AddonContent, 'source' | 'version'>,
):
  | { readonly entry: Entry; readonly isTemplate: boolean; readonly hasHubValues: boolean }
  | { readonly package: HubPackage }
  | undefined {
  const read = convert(resolvedSource, written);
  if ('problems' in read) return undefined;
  const { manifest, hash = '', chart, package: packed, template } = read.value;
  const hasHubValues = (read.value.valuesConfigMap ?? read.value.valuesSecret) !== undefined;
  if (packed !== undefined) return { package: packed };
  const { namespace = RECORDS, releaseName = name, credentials: _, tlsConfig: _tls, ...plain } = chart ?? {};
  const file = manifest ?? template;
  const source: Source | undefined = chart
    ? { type: 'chart', chart: { ...NO_CHART, ...plain, namespace, releaseName } }
    : file === undefined
      ? undefined
      : { type: 'manifest', manifest: file, location: file };
  const location = file ?? chart?.package ?? '';
  // A file is named by its digest.
  if ((manifest ?? chart?.package) !== undefined && hash === '') return undefined;
  const entry: Entry = {
    name: template ?? name,
    // A folder has it there, too, wherever a release is.
    namespace: RECORDS,
    version: version ?? chart?.version,
    id: '',
    hash: hash.replace('sha256:', ''),
    kubernetesVersion: '',
    range: undefined,
    source,
    requires: [],
    needsRollingUpdate: undefined,
    needsPKI: false,
    prune: undefined,
    drift: 'Warn',
    selector: {},
    place: { file: location, line: 1, column: 1, length: 1 },
  };
  return source && { entry, isTemplate: template !== undefined, hasHubValues };
}

/** Which add-on of Open Cluster Management on which cluster. */
export interface AddonPlace {
  readonly cluster: string;
  readonly addon: string;
}

/** The add-on whose template a ClusterAddon has, by its name at the hub, and the certificates that it asks for. */
export function registrationIn(
  cluster: string,
  { source, values }: Pick<AddonContent, 'source' | 'values'>,
): (AddonPlace & { readonly certificates: readonly AddonCertificate[] }) | undefined {
  const { template: addon } = fits(resolvedSource, source) ? source : {};
  if (addon === undefined) return undefined;
  return { cluster, addon, certificates: certificatesOf(values, { cluster, addon }) };
}

const { namespace: RECORDS } = CHANNEL_RECORDS;

const NO_CHART = {
  repoURL: undefined,
  oci: undefined,
  package: undefined,
  version: undefined,
  name: undefined,
  values: {},
  wait: false,
  atomic: false,
} as const;
