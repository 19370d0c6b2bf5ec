/** One entry of a channel -> data. Pure. */
import { isDigest } from '../core/digest.ts';
import type { Path } from '../formats/yaml/yaml.ts';
import {
  DRIFTS,
  ENTRY_NAME,
  NODE_ROLES,
  type Channel,
  type Chart,
  type Entry,
  type Requirement,
  type Source,
} from './channel.ts';
import type { Fields, Findings } from './fields.ts';
import { reachesLocalFile, resolveLocation } from './location.ts';
import { NAMESPACE } from './objects.ts';
import { readPrune } from './read-prune.ts';
import { formatRange, parseRange, parseVersion, type VersionRange } from './range.ts';

type Context = Omit<Channel, 'entries'>;

const COMMON_FIELDS = [
  'name',
  'namespace',
  'version',
  'kubernetesVersion',
  'id',
  'manifest',
  'needsRollingUpdate',
  'prune',
];
const KOPS_FIELDS = [...COMMON_FIELDS, 'selector', 'manifestHash', 'needsPKI'];
const OUR_FIELDS = [...COMMON_FIELDS, 'package', 'chart', 'hash', 'requires', 'drift'];
const SOURCES = ['package', 'manifest', 'chart'] as const;
const CHART_PLACES = ['repoURL', 'oci', 'package'] as const;
const CHART_FIELDS = [...CHART_PLACES, 'name', 'version', 'values', 'releaseName', 'namespace', 'wait', 'atomic'];

/** Of helm, whose names of Secrets and labels contain it. */
const RELEASE = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const LONGEST_RELEASE = 53;
/** A chart in a repository, which may have folders. */
const CHART_NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;
const PACKAGE = /^[A-Za-z0-9][A-Za-z0-9._-]*\.tar\.gz$/;

/** Undefined if the entry has no name: every other mistake is a finding only. */
export function readEntry(item: Fields, context: Context, found: Findings): Entry | undefined {
  const isOurs = context.kind === 'Channel';
  const fields = item.recognize(isOurs ? OUR_FIELDS : KOPS_FIELDS);
  const name = fields.text('name') ?? (isOurs ? undefined : context.name);
  if (name === undefined || !ENTRY_NAME.test(name)) {
    const hint = 'at most 63 letters, digits, ".", "_" and "-", with a letter or digit at both ends';
    found.error(
      'name',
      fields.path('name'),
      name === undefined ? 'an add-on must have a name' : 'this cannot be the name of an add-on',
      hint,
    );
    return undefined;
  }
  const rules = context.compat === 'native' ? 'native' : 'kops';
  const kubernetesVersion = fields.text('kubernetesVersion') ?? '';
  const selector = fields.labels('selector');
  const namespace = fields.textLike('namespace', NAMESPACE, 'the name of a namespace');
  return {
    name,
    namespace: namespace ?? 'kube-system',
    objectNamespace: isOurs ? namespace : undefined,
    version: readVersion(fields, context, found),
    id: fields.text('id') ?? '',
    hash: readHash(fields, context, found),
    kubernetesVersion,
    range: readRange(kubernetesVersion, fields.path('kubernetesVersion'), { rules, found }),
    source: readSource(fields, context, found),
    requires: isOurs ? readRequires(fields, found) : [],
    needsRollingUpdate: fields.textLike('needsRollingUpdate', NODE_ROLES, `one of ${NODE_ROLES.join(', ')}`),
    needsPKI: fields.flag('needsPKI'),
    prune: readPrune(fields, { ...context, selector }, found),
    drift: fields.textLike('drift', DRIFTS, `one of ${DRIFTS.join(', ')}`) ?? 'Warn',
    selector,
    place: fields.place(),
  };
}

/** kops before 2021 refuses a file for one version that is not semantic; today's kops does not read versions. */
function readVersion(fields: Fields, { kind, compat }: Context, found: Findings): string | undefined {
  const version = fields.text('version');
  const path = fields.path('version');
  if (kind === 'Channel' && !fields.has('version')) found.error('version', path, 'an entry must have a version');
  if (version === undefined || version === '' || parseVersion(version) !== undefined) return version;
  const severity = kind === 'Channel' || compat === 'kops-2017' ? 'error' : 'warning';
  found.add(severity, 'version', path, `${version.slice(0, 60)} is not a semantic version`, 'write it as 1.2.3');
  return version;
}

/** In hex, without its algorithm. */
function readHash(fields: Fields, { kind }: Context, found: Findings): string {
  const field = kind === 'Channel' ? 'hash' : 'manifestHash';
  const hash = fields.text(field) ?? '';
  const isHash = kind === 'Channel' ? isDigest(hash) : /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(hash);
  const what =
    kind === 'Channel' ? 'sha256: and 64 hex digits in lower case' : 'a SHA-256 or SHA-1 in hex, in lower case';
  if (hash !== '' && !isHash) found.mistake('value', fields.path(field), `${field} must be ${what}`);
  return hash.replace('sha256:', '');
}

function readRange(
  text: string,
  path: Path,
  { rules, found }: { readonly rules: 'kops' | 'native'; readonly found: Findings },
): VersionRange | undefined {
  const { range, problem } = parseRange(text, rules);
  if (range === undefined) {
    const hint = 'write versions with three numbers: ">=1.28.0 <1.32.0", "1.30.x", "<1.28.0 || >=1.30.0"';
    found.mistake('range', path, `the range "${text.slice(0, 60)}" cannot be read: ${problem}`, hint);
    return undefined;
  }
  const meant = rules === 'kops' ? parseRange(text, 'native').range : range;
  if (range.length === 0) found.mistake('never', path, `no version is in the range "${text.slice(0, 60)}"`);
  else if (meant === undefined || formatRange(meant) !== formatRange(range)) {
    found.add(
      'warning',
      'range',
      path,
      `kops reads "${text.slice(0, 60)}" as ${formatRange(range)}`,
      'write what is meant',
    );
  }
  return range;
}

function readSource(fields: Fields, { kind, location }: Context, found: Findings): Source | undefined {
  const given = SOURCES.filter((source) => fields.has(source));
  const [source, second] = given;
  if (source === undefined || second !== undefined) {
    const message = source === undefined ? 'nothing says what to apply' : `${given.join(' and ')} exclude each other`;
    found.mistake(
      'source',
      fields.path(second ?? 'manifest'),
      message,
      kind === 'Channel' ? `write one of ${SOURCES.join(', ')}` : 'write manifest',
    );
    return undefined;
  }
  if (source === 'chart') return readChart(fields, location, found);
  if (source === 'package') {
    const file = fields.textLike('package', PACKAGE, 'the file name of a package, such as weave-2.8.1.tar.gz');
    return file === undefined ? undefined : { type: 'package', package: file };
  }
  const resolved = readLocation('manifest', fields, location, found);
  if (resolved === undefined) return undefined;
  return { type: 'manifest', manifest: fields.text('manifest') ?? '', location: resolved };
}

/** Of a file that the channel at `location` names. */
function readLocation(field: string, fields: Fields, location: string, found: Findings): string | undefined {
  const given = fields.text(field) ?? '';
  const resolved = given === '' ? undefined : resolveLocation(location, given);
  if (resolved === undefined) {
    found.mistake('source', fields.path(field), `${field} must be a location`);
    return undefined;
  }
  if (!reachesLocalFile(location, resolved)) return resolved;
  return fields.wrong(field, 'no file of this machine: the channel is from another one');
}

function readChart(fields: Fields, location: string, found: Findings): Source | undefined {
  const chart = fields.map('chart')?.recognize(CHART_FIELDS);
  if (chart === undefined) return undefined;
  const given = CHART_PLACES.filter((place) => chart.has(place));
  if (given.length !== 1) return fields.wrong('chart', `a map with one of ${CHART_PLACES.join(', ')}`);
  const version = chart.text('version') ?? (chart.has('package') ? undefined : fields.text('version'));
  if (version !== undefined && parseVersion(version) === undefined) {
    const hint = 'helm would take another chart when one is published';
    return chart.wrong('version', 'one version, such as 1.2.3', hint);
  }
  const releaseName = chart.text('releaseName') ?? fields.text('name') ?? '';
  if (releaseName.length > LONGEST_RELEASE || !RELEASE.test(releaseName)) {
    const hint = `at most ${LONGEST_RELEASE} lower-case letters, digits, "." and "-"`;
    return chart.wrong('releaseName', 'a name of a release (default: the name of the add-on)', hint);
  }
  const read: Chart = {
    repoURL: chart.textLike(
      'repoURL',
      /^https?:\/\/[^\s/@]+(?:\/\S*)?$/,
      'the URL of a Helm repository, without a login',
    ),
    oci: chart.textLike('oci', /^oci:\/\/[^\s/@]+\/\S+$/, 'a reference such as oci://example.com/charts/web'),
    package: chart.has('package') ? readLocation('package', chart, location, found) : undefined,
    name: chart.textLike('name', CHART_NAME, 'the name of a chart'),
    version,
    values: chart.map('values')?.data() ?? {},
    releaseName,
    namespace:
      chart.textLike('namespace', NAMESPACE, 'the name of a namespace') ?? fields.text('namespace') ?? 'kube-system',
    wait: chart.flag('wait'),
    atomic: chart.flag('atomic'),
  };
  if (read.repoURL === undefined && read.oci === undefined && read.package === undefined) return undefined;
  if (read.repoURL !== undefined && read.name === undefined)
    return chart.has('name') ? undefined : fields.wrong('chart', 'a map with the name of the chart');
  return { type: 'chart', chart: read };
}

function readRequires(fields: Fields, found: Findings): readonly Requirement[] {
  return fields.maps('requires').flatMap((item) => {
    const required = item.recognize(['name', 'version']);
    const name = required.textLike('name', ENTRY_NAME, 'the name of an add-on');
    if (name === undefined) {
      if (!required.has('name')) required.wrong('name', 'the name of an add-on');
      return [];
    }
    const version = required.text('version') ?? '';
    return [{ name, version, range: readRange(version, required.path('version'), { rules: 'native', found }) }];
  });
}
