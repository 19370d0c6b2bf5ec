/** The files of a fleet -> its clusters, add-ons and channels, with a finding for each mistake. Pure. */
import { posix } from 'node:path';
import { CHANNEL_API_VERSION, entryFile, type Channel, type Entry } from '../cluster/channel/channel.ts';
import { Findings } from '../cluster/channel/findings.ts';
import { isRemote, isUrl } from '../cluster/channel/location.ts';
import { readEntry } from '../cluster/channel/read-entry.ts';
import type { EntryFields } from '../cluster/channel/channel-fields.ts';
import { readChannel } from '../cluster/channel/read.ts';
import { hasErrors, type Diagnostic } from '../core/diagnostic.ts';
import { nearest } from '../core/nearest.ts';
import { fieldsOf, isObject } from '../core/json.ts';
import { convert, type Read } from '../core/schema.ts';
import {
  isJsonObject,
  readYaml,
  splitYaml,
  type Json,
  type Path,
  type YamlPart,
  type YamlText,
} from '../formats/yaml/yaml.ts';
import type { Values } from './rollout/fleet.ts';
import type { Labels } from './rollout/groups.ts';
import { checkTogether } from './check.ts';
import type { FleetFile, WrittenAddon, FleetCluster, WrittenFleet } from './fleet.ts';
import { compatOf, addProblems } from './upstream/document.ts';
import { KINDS, VALUES_FIELDS, type AddonFields } from './schema.ts';
import { CapiObjects } from './upstream/capi-objects.ts';
import { ChartSecrets } from './upstream/chart-secrets.ts';
import { CAPI_CLUSTER, capiObject, fromCapiCluster } from './upstream/capi-cluster.ts';
import { fromHelmChartProxy, HELM_CHART_PROXY } from './upstream/helm-chart-proxy.ts';
import type { Having } from './upstream/cluster-management-addon.ts';
import { isOcmKind } from './upstream/foreign-kinds.ts';
import { NAME_LABEL } from './upstream/kinds.ts';
import { LeftAlone } from './upstream/left-alone.ts';
import { readOcm, type OcmDocument } from './upstream/read-ocm.ts';

export interface ReadFleet extends WrittenFleet {
  /** Diagnostics in the order of the files. With an error among them, the fleet is incomplete. */
  readonly diagnostics: readonly Diagnostic[];
}

/** Other documents, such as manifests and kubeconfigs in the same folder, are left alone, even if they are not YAML. */
const OWN = /^[\s{"']*apiVersion["']?\s*:\s*["']?fleet\.curlew\.dev\/|^kind:[ \t]*["']?FleetAddon\b/m;
/** Documents of Cluster API, and those of Open Cluster Management, in all of their groups. */
const CAPI = /^[\s{"']*apiVersion["']?\s*:\s*["']?(?:[a-z0-9-]+\.)*cluster\.x-k8s\.io\//m;
const CAPI_SECRET = /^(?:type|[\s{]*"type")\s*:\s*["']?cluster\.x-k8s\.io\/secret\b/m;
const SECRET = /^(?:kind|[\s{]*"kind"):[ \t]*["']?(?:Secret|List)\b/m;
const OCM = /^(?:apiVersion|[\s{]*"apiVersion"):[ \t]*["']?(?:[a-z0-9-]+\.)*open-cluster-management\.io\//m;
const CHANNEL = /^kind:[ \t]*["']?Channel\b/m;
/** What kubectl prints for several objects. */
const LIST = /^(?:kind|[\s{]*"kind"):[ \t]*["']?List\b/m;
const IN_LIST = /\b(?:fleet\.curlew\.dev|cluster\.x-k8s\.io|open-cluster-management\.io)\//;
const LIST_LIMIT = 16 << 20;
/** Items may be as deep as other documents. */
const LIST_DEPTH = 34;

/**
 * Reads all files of a fleet, and checks what fits together only across them. `has`: the clusters that have an add-on, by its name, which
 * a Placement keeps.
 */
export function readFleet(files: readonly FleetFile[], has: Having = new Map()): ReadFleet {
  const fleet = emptyFleet();
  const findings: Found[] = [];
  for (const file of files) {
    for (const { text, line } of splitYaml(file.text)) {
      if (SECRET.test(text)) fleet.secrets.add({ text, line });
      if (LIST.test(text) && IN_LIST.test(text)) findings.push(...readList(file, { text, line }, fleet));
      else if (OCM.test(text)) findings.push(readOcmDocument(file, { text, line }, fleet));
      else if (OWN.test(text) || CAPI.test(text) || CAPI_SECRET.test(text))
        findings.push(readDocument(file, { text, line }, fleet));
    }
  }
  const diagnosticsOf = (): readonly Diagnostic[] => findings.flatMap(({ diagnostics }) => diagnostics);
  const { clusters, addons, unused } = readOcm(
    fleet.ocm,
    fleet.clusters.map((one) => fleet.capi.complete(one)),
    { has },
  );
  for (const one of fleet.others)
    if (!fleet.capi.isUsed(one.value)) fleet.alone.add('Cluster API', one.kind, one.findings);
  // A document that cannot be read may be what uses them.
  const isRead = !hasErrors(diagnosticsOf());
  for (const { kind, findings } of isRead ? unused : [])
    fleet.alone.add('Open Cluster Management', kind, findings, 'unused');
  fleet.alone.report();
  for (const { file, findings, name, named, spec, compat, problem } of addons) {
    const entry = { name: named, version: undefined, manifest: posix.basename(file.path) };
    const addon = become({ kind: 'ClusterManagementAddOn', name, compat, spec }, entry, { file, findings });
    fleet.addons.push({ ...addon, problem });
  }
  const { ocm: _ocm, capi: _capi, others: _others, alone: _alone, secrets, proxies, ...all } = { ...fleet, clusters };
  const withAccess = (one: WrittenAddon): WrittenAddon => {
    const proxy = proxies.get(one);
    const access = proxy && secrets.accessOf(proxy, one.findings);
    return access === undefined ? one : { ...one, access };
  };
  const read = { ...all, addons: all.addons.map(withAccess) };
  // A document that cannot be read would be missed by the others.
  if (isRead) checkTogether(read);
  return { ...read, diagnostics: diagnosticsOf() };
}

function emptyFleet() {
  const lists = { clusters: [] as FleetCluster[], addons: [] as WrittenAddon[], ocm: [] as OcmDocument<FleetFile>[] };
  const proxies = new Map<WrittenAddon, Read<typeof HELM_CHART_PROXY>>();
  /** Objects of Cluster API that a Cluster may refer to. */
  const others: { readonly kind: string; readonly value: Values; readonly findings: Findings }[] = [];
  const upstream = { capi: new CapiObjects(), others, alone: new LeftAlone(), secrets: new ChartSecrets(), proxies };
  return { ...lists, ...upstream, channels: new Map<string, Channel>() };
}

interface Found {
  readonly diagnostics: readonly Diagnostic[];
}
type Fleet = ReturnType<typeof emptyFleet>;

/** Each item as if it were a document. */
function readList(file: FleetFile, { text, line }: YamlPart, fleet: Fleet): readonly Found[] {
  const kubernetes = ([, , ...path]: Path): boolean => isValues(path) || isManifest(path);
  const limits = { limit: LIST_LIMIT, deepest: LIST_DEPTH };
  const list = readYaml(file.path, text, { firstLine: line, kubernetes, ...limits });
  const { value } = list;
  if (!isJsonObject(value)) return [list];
  const { kind, items } = value;
  if (kind !== 'List' || !Array.isArray(items)) return [readDocument(file, { text, line }, fleet)];
  return items.map((item: Json, at) => {
    const placeOf: YamlText['placeOf'] = (path) => list.placeOf(['items', at, ...path]);
    const findings = new Findings({ placeOf, diagnostics: at === 0 ? list.diagnostics : [] }, false, 'fleet');
    if (isJsonObject(item) && item['kind'] === 'Channel' && item['apiVersion'] === CHANNEL_API_VERSION) {
      findings.error('kind', ['kind'], 'a Channel cannot be read from a List', 'write it as a document of its own');
      return findings;
    }
    return readValue(file, item, findings, fleet);
  });
}

function readDocument(file: FleetFile, { text, line }: YamlPart, fleet: Fleet): Found {
  // Larger than others, and with other rules for values.
  if (CHANNEL.test(text)) return readOwnChannel(file, { text, line }, fleet.channels);
  const yaml = readYaml(file.path, text, { firstLine: line, kubernetes: isValues });
  const findings = new Findings(yaml, false, 'fleet');
  const { value } = yaml;
  if (value === undefined) return findings;
  if (isJsonObject(value) && value['kind'] === 'Channel') return readOwnChannel(file, { text, line }, fleet.channels);
  return readValue(file, value, findings, fleet);
}

function readValue(file: FleetFile, value: Json, findings: Findings, fleet: Fleet): Found {
  const { clusters, addons, capi } = fleet;
  const { apiVersion, kind, type } = isJsonObject(value) ? value : {};
  if (kind === 'Secret' && apiVersion === 'v1' && isJsonObject(value)) {
    if (type === 'cluster.x-k8s.io/secret') capi.addSecret(value, findings);
    return findings;
  }
  if (typeof apiVersion === 'string' && OCM.test(`apiVersion: ${apiVersion}`)) {
    const name = typeof kind === 'string' ? kind : 'document';
    if (isOcmKind(name)) fleet.ocm.push({ file, kind: name, value, findings });
    else fleet.alone.add('Open Cluster Management', name, findings);
    return findings;
  }
  if (typeof apiVersion === 'string' && CAPI.test(`apiVersion: ${apiVersion}`)) {
    if (kind === 'HelmChartProxy') readProxy(file, value, fleet, findings);
    else if (kind === 'Cluster') readCapiCluster(file, value, clusters, findings);
    else if (isJsonObject(value)) {
      capi.add(value);
      fleet.others.push({ kind: typeof kind === 'string' ? kind : 'document', value, findings });
    }
    return findings;
  }
  const isOwn = (typeof apiVersion === 'string' && apiVersion.startsWith('fleet.curlew.dev/')) || kind === 'FleetAddon';
  // One inside another document.
  if (!isOwn) return { diagnostics: [] };
  if (kind !== 'Cluster' && kind !== 'FleetAddon') {
    const near = typeof kind === 'string' ? nearest(kind, ['Cluster', 'FleetAddon', 'Channel']) : undefined;
    const hint = near === undefined ? 'write Cluster, FleetAddon or Channel' : `did you mean "${near}"?`;
    findings.error('kind', ['kind'], `${CHANNEL_API_VERSION} has no such kind in a folder`, hint);
    return findings;
  }
  if (kind === 'Cluster') {
    const read = convert(KINDS.Cluster, withoutRuntimes(value, findings));
    if ('problems' in read) return addProblems(read.problems, findings);
    const { name, labels = {}, annotations = {} } = read.value.metadata;
    const kubeconfig = pathIn(file, read.value.spec.access.kubeconfig, ['spec', 'access', 'kubeconfig'], findings);
    const object = capiObject({ name, labels, annotations }, read.value.spec.networks);
    if (kubeconfig !== undefined)
      clusters.push({ file, fields: read.value, findings, name, labels: named(name, labels), kubeconfig, object });
    return findings;
  }
  const read = convert(KINDS.FleetAddon, value);
  if ('problems' in read) return addProblems(read.problems, findings);
  for (const [kind, field] of Object.entries(VALUES_FIELDS)) {
    if (read.value.spec[field] === undefined) continue;
    const hint = `write the values into spec.config${kind === 'Secret' ? ', and keep the folder private' : ''}`;
    findings.error('secret', ['spec', field], `a folder has no ${kind}s: ${field} is for a hub`, hint);
  }
  const entry = entryOf(file, read.value, findings);
  const compat = compatOf(value, findings);
  addons.push({ file, fields: read.value, findings, name: read.value.metadata.name, compat, entry, kind });
  return findings;
}

/** A Cluster without the field of machines that earlier versions accepted, and that no command has ever used. */
function withoutRuntimes(value: Json, findings: Findings): unknown {
  const cluster = fieldsOf(value);
  const spec = fieldsOf(cluster['spec']);
  if (!Array.isArray(spec['machines'])) return value;
  const machines = spec['machines'].map((one: unknown, at) => {
    if (!isObject(one) || !('containerRuntime' in one)) return one;
    const { containerRuntime: _, ...machine } = one;
    const path = ['spec', 'machines', at, 'containerRuntime'];
    findings.add(
      'warning',
      'no-effect',
      path,
      'containerRuntime has no effect',
      'remove it: the bundle has the container runtime',
    );
    return machine;
  });
  return { ...cluster, spec: { ...spec, machines } };
}

function readProxy(file: FleetFile, value: unknown, { addons, proxies }: Fleet, findings: Findings): void {
  const read = convert(HELM_CHART_PROXY, value);
  if ('problems' in read) return void addProblems(read.problems, findings);
  const { name } = read.value.metadata;
  const compat = compatOf(value, findings);
  const { entry, spec } = fromHelmChartProxy(read.value, findings, { follows: compat === 'caaph' });
  const addon = become({ kind: 'HelmChartProxy', name, compat, spec }, entry, { file, findings });
  addons.push(addon);
  proxies.set(addon, read.value);
}

/** What a document of another kind has become. */
function become(
  { kind, name, compat, spec }: Pick<WrittenAddon, 'kind' | 'name' | 'compat'> & Pick<AddonFields, 'spec'>,
  fields: EntryFields,
  { file, findings }: Pick<WrittenAddon, 'file' | 'findings'>,
): WrittenAddon {
  const entry = readEntry(fields, ['spec'], contextOf(file), findings);
  const own = { apiVersion: CHANNEL_API_VERSION, kind: 'FleetAddon', metadata: { name }, spec } as const;
  return { file, fields: own, findings, name, compat, entry, kind };
}

/** Charts of add-ons have such documents as templates, which are no YAML. */
function readOcmDocument(file: FleetFile, { text, line }: YamlPart, fleet: Fleet): Found {
  const yaml = readYaml(file.path, text, { firstLine: line, kubernetes: isManifest });
  const { value } = yaml;
  const { apiVersion } = isJsonObject(value) ? value : {};
  // One inside another document.
  if (typeof apiVersion === 'string' && !OCM.test(`apiVersion: ${apiVersion}`))
    return readDocument(file, { text, line }, fleet);
  const kind = /^(?:kind|[\s{]*"kind"):[ \t]*["']?(\w+)/m.exec(text)?.[1] ?? 'document';
  if (isOcmKind(kind) && (value !== undefined || !text.includes('{{'))) {
    const findings = new Findings(yaml, false, 'fleet');
    if (value !== undefined) fleet.ocm.push({ file, kind, value, findings });
    return findings;
  }
  const findings = new Findings({ ...yaml, diagnostics: [] }, false, 'fleet');
  fleet.alone.add('Open Cluster Management', kind, findings, isOcmKind(kind) ? 'template' : undefined);
  return findings;
}

function isManifest([spec, agent]: Path): boolean {
  return spec === 'spec' && agent === 'agentSpec';
}

function readCapiCluster(file: FleetFile, value: unknown, clusters: FleetCluster[], findings: Findings): void {
  const read = convert(CAPI_CLUSTER, value);
  if ('problems' in read) return void addProblems(read.problems, findings);
  const { name, labels = {} } = read.value.metadata;
  const spec = fromCapiCluster(read.value);
  const kubeconfig = posix.join(posix.dirname(file.path), spec.access.kubeconfig);
  const fields = { apiVersion: CHANNEL_API_VERSION, kind: 'Cluster', metadata: { name, labels }, spec } as const;
  clusters.push({ file, fields, findings, name, labels: named(name, labels), kubeconfig, object: read.value });
}

function named(name: string, labels: Labels): Labels {
  return { ...labels, [NAME_LABEL]: name };
}

function readOwnChannel({ path, folder }: FleetFile, { text, line }: YamlPart, channels: Map<string, Channel>): Found {
  // Its lines are those of the file.
  const { channel, diagnostics } = readChannel(path, '\n'.repeat(line - 1) + text);
  if (channel?.name === undefined) return { diagnostics };
  const twin = channels.get(channel.name);
  channels.set(channel.name, twin ?? channel);
  const outside = channel.entries.flatMap((entry): readonly Diagnostic[] => {
    const location = entryFile(entry);
    if (location === undefined || isRemote(location) || isIn(folder, location)) return [];
    const message = `the file of ${entry.name} must be in the folder ${folder}`;
    return [{ code: 'fleet/outside', severity: 'error', message, place: entry.place, hint: INSIDE }];
  });
  if (twin === undefined) return { diagnostics: [...diagnostics, ...outside] };
  const message = `channel ${channel.name} is already in ${twin.location}`;
  const place = { file: path, line, column: 1, length: 1 };
  const again = { code: 'fleet/duplicate', severity: 'error', message, place, hint: 'delete one of them' } as const;
  return { diagnostics: [...diagnostics, again] };
}

/** Values are read as helm reads its files of values. */
function isValues([spec, config, layer, index, field, ...inner]: Path): boolean {
  if (spec !== 'spec' || config !== 'config') return false;
  return layer === 'default' ? index !== undefined : layer === 'groups' && field === 'values' && inner.length > 0;
}

const INSIDE = 'put the file into the folder';

/** What is elsewhere may be anything of this machine. */
function isIn(folder: string, path: string): boolean {
  return !isUrl(path) && !/^\.\.(?:\/|$)/.test(posix.relative(folder, path));
}

/** A path that a file names, below its folder. */
function pathIn(file: FleetFile, location: string, path: Path, findings: Findings): string | undefined {
  const resolved = posix.join(posix.dirname(file.path), location);
  if (!location.startsWith('/') && isIn(file.folder, resolved)) return resolved;
  const message = `${path.join('.')} must be a path in the folder ${file.folder}`;
  findings.error('outside', path, message, INSIDE);
  return undefined;
}

const SOURCES = ['manifest', 'chart', 'channel'] as const;

/** The content as the entry of a channel has it. */
function entryOf(file: FleetFile, { metadata, spec }: AddonFields, findings: Findings): Entry | undefined {
  const { source } = spec;
  const at = ['spec', 'source'];
  const sources = SOURCES.filter((name) => source[name] !== undefined);
  if (sources.length !== 1) {
    const what = sources.length === 0 ? 'nothing says what to deliver' : `${sources.join(' and ')} exclude each other`;
    findings.error('source', at, what, `write one of ${SOURCES.join(', ')}`);
    return undefined;
  }
  if (source.channel !== undefined) return undefined;
  const { manifest, chart } = source;
  if (chart !== undefined && (chart.repoURL === undefined) === (chart.oci === undefined)) {
    findings.error('source', [...at, 'chart'], 'spec.source.chart must have one of repoURL, oci');
    return undefined;
  }
  if (manifest !== undefined && pathIn(file, manifest, [...at, 'manifest'], findings) === undefined) return undefined;
  const fields = {
    name: metadata.name,
    version: chart?.version,
    ...(spec.drift !== undefined && { drift: spec.drift }),
    ...(chart === undefined ? { manifest } : { chart }),
  };
  return readEntry(fields, at, contextOf(file), findings);
}

function contextOf({ path }: FleetFile) {
  return { kind: 'Channel', name: undefined, location: path, compat: 'native' } as const;
}
