/** One entry of a channel -> data. Pure. */
import type { Path } from '../../formats/yaml/yaml.ts';
import { type Channel, ENTRY_NAME, type Entry, type PruneKind, type Requirement, type Source } from './channel.ts';
import { type Findings, pathsOf } from './findings.ts';
import { reachesLocalFile, resolveLocation } from './location.ts';
import { type VersionRange, formatRange, parseRange, parseVersion } from './range.ts';
import type { ChartFields, EntryFields, PruneKinds } from './channel-fields.ts';
import { NAMESPACE } from './objects.ts';
import { isBare, isNowhere, parseSelector } from './prune.ts';

type Context = Omit<Channel, 'entries'>;

const SOURCES = ['package', 'manifest', 'chart'] as const;
const CHART_PLACES = ['repoURL', 'oci', 'package'] as const;

/** Pattern of helm for names of releases, which are parts of names of Secrets and labels. */
const RELEASE = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const MAX_RELEASE = 53;
/** The fields of an entry, and where they are. */
interface Item {
  readonly fields: EntryFields;
  readonly at: ReturnType<typeof pathsOf>;
}

/** Undefined if the entry has no name: every other mistake is a finding only. */
export function readEntry(fields: EntryFields, path: Path, context: Context, findings: Findings): Entry | undefined {
  const isOurs = context.kind === 'Channel';
  const item: Item = { fields, at: pathsOf(fields, path) };
  const name = fields.name ?? (isOurs ? undefined : context.name);
  if (name === undefined || !ENTRY_NAME.test(name)) {
    const message = name === undefined ? 'an add-on must have a name' : 'this cannot be the name of an add-on';
    const hint = 'at most 63 letters, digits, ".", "_" and "-", with a letter or digit at both ends';
    findings.error('name', item.at('name'), message, hint);
    return undefined;
  }
  const selector = Object.fromEntries(Object.entries(fields.selector ?? {}).map(([key, label = '']) => [key, label]));
  const rules = context.compat === 'native' ? 'native' : 'kops';
  const { namespace, kubernetesVersion = '', hash = '', manifestHash = '' } = fields;
  if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})?$/.test(manifestHash)) {
    const message = 'manifestHash must be a SHA-256 or SHA-1 in hex, in lower case';
    findings.mistake('value', item.at('manifestHash'), message);
  }
  return {
    name,
    namespace: namespace ?? 'kube-system',
    objectNamespace: isOurs ? namespace : undefined,
    version: readVersion(item, context, findings),
    id: fields.id ?? '',
    hash: (isOurs ? hash : manifestHash).replace('sha256:', ''),
    kubernetesVersion,
    range: readRange(kubernetesVersion, item.at('kubernetesVersion'), { rules, findings }),
    source: readSource(item, context, findings),
    requires: readRequires(fields.requires ?? [], [...path, 'requires'], findings),
    needsRollingUpdate: fields.needsRollingUpdate,
    needsPKI: fields.needsPKI ?? false,
    prune: readPrune(fields.prune, [...path, 'prune'], { ...context, selector }, findings),
    drift: fields.drift ?? 'Warn',
    selector,
    place: findings.placeOf(item.at('')),
  };
}

/** kops before 2021 refuses a file for one version that is not semantic; today's kops does not read versions. */
function readVersion({ fields, at }: Item, { kind, compat }: Context, findings: Findings): string | undefined {
  const { version } = fields;
  if (kind === 'Channel' && !Object.hasOwn(fields, 'version'))
    findings.error('version', at('version'), 'an entry must have a version');
  if (version === undefined || version === '' || parseVersion(version) !== undefined) return version;
  const severity = kind === 'Channel' || compat === 'kops-2017' ? 'error' : 'warning';
  const message = `${version.slice(0, 60)} is not a semantic version`;
  findings.add(severity, 'version', at('version'), message, 'write it as 1.2.3');
  return version;
}

function readRange(
  text: string,
  path: Path,
  { rules, findings }: { readonly rules: 'kops' | 'native'; readonly findings: Findings },
): VersionRange | undefined {
  const { range, problem } = parseRange(text, rules);
  if (range === undefined) {
    const hint = 'write versions with three numbers: ">=1.28.0 <1.32.0", "1.30.x", "<1.28.0 || >=1.30.0"';
    findings.mistake('range', path, `the range "${text.slice(0, 60)}" cannot be read: ${problem}`, hint);
    return undefined;
  }
  const meant = rules === 'kops' ? parseRange(text, 'native').range : range;
  if (range.length === 0) findings.mistake('never', path, `no version is in the range "${text.slice(0, 60)}"`);
  else if (meant === undefined || formatRange(meant) !== formatRange(range)) {
    findings.add(
      'warning',
      'range',
      path,
      `kops reads "${text.slice(0, 60)}" as ${formatRange(range)}`,
      'write what is meant',
    );
  }
  return range;
}

function readSource(item: Item, { kind, location }: Context, findings: Findings): Source | undefined {
  const { fields, at } = item;
  const sources = SOURCES.filter((name) => Object.hasOwn(fields, name));
  const [source, second] = sources;
  if (source === undefined || second !== undefined) {
    const message = source === undefined ? 'nothing says what to apply' : `${sources.join(' and ')} exclude each other`;
    const hint = kind === 'Channel' ? `write one of ${SOURCES.join(', ')}` : 'write manifest';
    findings.mistake('source', at(second ?? 'manifest'), message, hint);
    return undefined;
  }
  if (source === 'chart') return fields.chart && readChart(item, fields.chart, location, findings);
  if (source === 'package')
    return fields.package === undefined ? undefined : { type: 'package', package: fields.package };
  const { manifest = '' } = fields;
  const resolved = readLocation(manifest, at('manifest'), location, findings);
  return resolved === undefined ? undefined : { type: 'manifest', manifest, location: resolved };
}

/** The location of a file that the channel at `location` names. */
function readLocation(text: string, path: Path, location: string, findings: Findings): string | undefined {
  const resolved = text === '' ? undefined : resolveLocation(location, text);
  if (resolved === undefined) {
    findings.mistake('source', path, `${String(path.at(-1))} must be a location`);
    return undefined;
  }
  if (!reachesLocalFile(location, resolved)) return resolved;
  return findings.wrong(String(path.at(-1)), path, 'no file of this machine: the channel is from another one');
}

function readChart({ fields, at }: Item, chart: ChartFields, location: string, findings: Findings): Source | undefined {
  const atChart = pathsOf(chart, at('chart'));
  if (CHART_PLACES.filter((place) => Object.hasOwn(chart, place)).length !== 1)
    return findings.wrong('chart', at('chart'), `a map with one of ${CHART_PLACES.join(', ')}`);
  const version = chart.version ?? (Object.hasOwn(chart, 'package') ? undefined : fields.version);
  if (version !== undefined && parseVersion(version) === undefined) {
    const hint = 'helm would take another chart when one is published';
    return findings.wrong('version', atChart('version'), 'one version, such as 1.2.3', hint);
  }
  const releaseName = chart.releaseName ?? fields.name ?? '';
  if (releaseName.length > MAX_RELEASE || !RELEASE.test(releaseName)) {
    const what = 'a name of a release (default: the name of the add-on)';
    const hint = `at most ${MAX_RELEASE} lower-case letters, digits, "." and "-"`;
    return findings.wrong('releaseName', atChart('releaseName'), what, hint);
  }
  if (chart.repoURL !== undefined && !Object.hasOwn(chart, 'name'))
    return findings.wrong('chart', at('chart'), 'a map with the name of the chart');
  const { package: file = '', values = {}, wait = false, atomic = false } = chart;
  return {
    type: 'chart',
    chart: {
      repoURL: chart.repoURL,
      oci: chart.oci,
      package: Object.hasOwn(chart, 'package') ? readLocation(file, atChart('package'), location, findings) : undefined,
      name: chart.name,
      version,
      values,
      releaseName,
      namespace: chart.namespace ?? fields.namespace ?? 'kube-system',
      wait,
      atomic,
    },
  };
}

function readRequires(
  requires: NonNullable<EntryFields['requires']>,
  path: Path,
  findings: Findings,
): readonly Requirement[] {
  return requires.flatMap((required, index) => {
    if (required === undefined) return [];
    const { name, version = '' } = required;
    const at = pathsOf(required, [...path, index]);
    if (!Object.hasOwn(required, 'name')) findings.wrong('name', at('name'), 'the name of an add-on');
    if (name === undefined) return [];
    return [{ name, version, range: readRange(version, at('version'), { rules: 'native', findings }) }];
  });
}

type PruneContext = Pick<Channel, 'compat'> & Pick<Entry, 'selector'>;

function readPrune(prune: EntryFields['prune'], path: Path, context: PruneContext, findings: Findings): Entry['prune'] {
  if (prune === undefined || prune === 'auto') return prune;
  const [kinds, at] = 'length' in prune ? [prune, path] : [prune.kinds ?? [], [...path, 'kinds']];
  return kinds.flatMap((kind, index) => (kind === undefined ? [] : readKind(kind, [...at, index], context, findings)));
}

/** A kind without selector of its own has that of its entry. */
function readKind(
  fields: NonNullable<PruneKinds[number]>,
  path: Path,
  { compat, selector }: PruneContext,
  findings: Findings,
): readonly PruneKind[] {
  const { kind = '', group = '', namespaces = [], labelSelector = '', fieldSelector = '' } = fields;
  const at = pathsOf(fields, path);
  if (kind === '') return findings.wrong('kind', at('kind'), 'a kind of objects, such as ConfigMap') ?? [];
  const trimmed = labelSelector.trim();
  if (parseSelector(trimmed) === undefined) {
    findings.mistake('value', at('labelSelector'), 'labelSelector cannot be read', 'write it as "app=web,tier!=db"');
  }
  const ownLabels = Object.entries(selector).map((label) => label.join('='));
  const read = {
    group,
    kind,
    namespaces: namespaces.flatMap((name = '') => (name === '' ? [] : [name])),
    labelSelector: trimmed === '' ? ownLabels.join(',') : trimmed,
    fieldSelector,
  };
  const wrong = read.namespaces.find((name) => !NAMESPACE.test(name));
  if (wrong !== undefined)
    findings.mistake('value', at('namespaces'), `"${wrong.slice(0, 80)}" cannot be the name of a namespace`);
  if (isNowhere(read)) {
    const message = `prune selects nothing: a ${kind} is in no namespace`;
    findings.mistake('prune', at('namespaces'), message, 'write labelSelector instead of namespaces');
  }
  if (isBare(read)) {
    const severity = compat === 'native' ? 'error' : 'warning';
    const message = `prune selects every ${kind} of the cluster, not only those of the add-on`;
    findings.add(severity, 'prune', at('kind'), message, 'write labelSelector or namespaces');
  }
  return [read];
}
