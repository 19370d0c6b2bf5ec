/** The text of a channel -> data, with a finding for each mistake: our `Channel`, `Addons` of kops, or a manifest. Pure. */
import { compareDiagnostics, type Diagnostic } from '../../core/diagnostic.ts';
import { redact } from '../../core/errors.ts';
import { exactJson } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';
import { isJsonObject, readYaml, splitYaml, type Json, type JsonObject, type Path } from '../../formats/yaml/yaml.ts';
import { CHANNEL_API_VERSION, entryTitle, type Channel, type Compat, type Entry } from './channel.ts';
import { Findings } from './findings.ts';
import { hashOfManifest, manifestAddonName } from './location.ts';
import { MANIFEST_OPTIONS } from './objects.ts';
import { parseRange } from './range.ts';
import { readEntry } from './read-entry.ts';
import { DOCUMENTS, type EntryFields } from './channel-fields.ts';

/** Limit of the document that decides what the file is; 5,000 entries are a quarter of it. */
const MAX_BYTES = 4 << 20;
const MAX_ENTRIES = 10_000;

export interface ReadChannel {
  /** Undefined if there is an error among the findings. */
  readonly channel: Channel | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Reads a channel from `location`, an address or a path, relative to which the locations in it are resolved. Only the first
 * document counts, as for kops; text without any is a channel without entries, and a document of another kind is a manifest: a
 * channel of one add-on. `compat` holds for indexes of kops; a `Channel` is always `native`. In indexes of kops, what kops
 * accepts or ignores is a warning.
 */
export function readChannel(location: string, text: string, compat: Compat = 'native'): ReadChannel {
  const file = redact(location);
  const [first = { text: '', line: 1 }, ...others] = splitYaml(text);
  // Without these words it is a manifest, whatever else is in it.
  const options = /\b(?:Addons|Channel)\b/.test(first.text)
    ? { limit: MAX_BYTES, kubernetes: isChartValue }
    : MANIFEST_OPTIONS;
  const yaml = readYaml(file, first.text, { ...options, firstLine: first.line });
  const value = yaml.value ?? undefined;
  const isNamed = (kind: string): boolean => isJsonObject(value) && value['kind'] === kind;
  const findings = new Findings(yaml, isNamed('Addons') || (compat !== 'native' && !isNamed('Channel')));
  const channel = yaml.diagnostics.some(isError)
    ? undefined
    : readDocument(value, { location, text, compat, findings });
  const [second] = others;
  if (second !== undefined && channel?.kind !== 'Manifest') {
    const message = 'only the first document of this file counts';
    const place = { file, line: second.line, column: 1, length: 3 };
    findings.diagnostics.push({ code: 'channel/document', severity: 'warning', message, place });
  }
  return {
    channel: findings.diagnostics.some(isError) ? undefined : channel,
    diagnostics: findings.diagnostics.toSorted(compareDiagnostics),
  };
}

/** Values of charts are read as helm reads its files of values. */
function isChartValue([spec, addons, , chart, values, ...inner]: Path): boolean {
  return inner.length > 0 && spec === 'spec' && addons === 'addons' && chart === 'chart' && values === 'values';
}

function isError({ severity }: Diagnostic): boolean {
  return severity === 'error';
}

interface Document {
  readonly location: string;
  readonly text: string;
  readonly compat: Compat;
  readonly findings: Findings;
}

function readDocument(value: Json | undefined, { location, text, compat, findings }: Document): Channel | undefined {
  if (value === undefined) return { kind: 'Addons', name: undefined, location, compat, entries: [] };
  if (!isJsonObject(value)) {
    findings.error('document', [], 'a channel must be a map with kind, metadata and spec');
    return undefined;
  }
  const kind = kindOf(value, findings);
  if (kind === 'Manifest') return manifestChannel(location, text, compat);
  const { metadata, spec } = findings.read(DOCUMENTS[kind], value);
  const context = { kind, name: metadata?.name, location, compat: kind === 'Channel' ? 'native' : compat } as const;
  const items: readonly (EntryFields | undefined)[] = spec?.addons ?? [];
  if (items.length > MAX_ENTRIES) {
    findings.error(
      'entries',
      ['spec', 'addons'],
      `there are more than ${MAX_ENTRIES} entries`,
      'write several channels',
    );
    return undefined;
  }
  // kops takes it, too; it may be a part of a file.
  if (spec?.addons === undefined && findings.diagnostics.length === 0)
    findings.add('warning', 'entries', [], 'there are no add-ons', 'list them in spec.addons');
  const entries = items.flatMap(
    (item, at) => (item && readEntry(item, ['spec', 'addons', at], context, findings)) ?? [],
  );
  noteTwins(entries, findings);
  return { ...context, entries };
}

function kindOf(value: JsonObject, findings: Findings): Channel['kind'] {
  const { kind, apiVersion } = value;
  if (kind === 'Addons' && (apiVersion === undefined || apiVersion === '')) return 'Addons';
  if (kind === 'Channel' && apiVersion === CHANNEL_API_VERSION) return 'Channel';
  if (kind === 'Channel') {
    findings.error('kind', ['apiVersion'], `apiVersion of a Channel must be ${CHANNEL_API_VERSION}`);
    return 'Channel';
  }
  if (kind === 'Addons') {
    findings.mistake(
      'kind',
      ['apiVersion'],
      'Addons has no apiVersion: this is read as a manifest',
      'delete apiVersion',
    );
  } else if (typeof kind !== 'string' || typeof apiVersion !== 'string') {
    const near = typeof kind === 'string' ? nearest(kind, ['Addons', 'Channel']) : undefined;
    const hint = near === undefined ? 'write kind: Channel' : `did you mean "${near}"?`;
    findings.mistake(
      'kind',
      ['kind'],
      'this is not a channel, and not a manifest: kind or apiVersion is missing',
      hint,
    );
  }
  return 'Manifest';
}

/** Entries that say the same, and labels that the objects of two add-ons share. */
function noteTwins(entries: readonly Entry[], findings: Findings): void {
  const seen = new Map<string, Entry>();
  const owners = new Map<string, Entry>();
  const note = (code: string, { place }: Entry, message: string, hint?: string): void => {
    findings.diagnostics.push({
      code: `channel/${code}`,
      severity: findings.lenient ? 'warning' : 'error',
      message,
      place,
      hint,
    });
  };
  for (const entry of entries) {
    const { name, namespace, version = '', id, hash, kubernetesVersion, source } = entry;
    const key = exactJson([name, namespace, version, id, hash, kubernetesVersion, source]);
    const twin = seen.get(key);
    if (twin !== undefined)
      note('duplicate', entry, `${entryTitle(entry)} is already in line ${twin.place.line}`, 'delete one of them');
    seen.set(key, entry);
    const labels = Object.entries(entry.selector).map((label) => label.join('='));
    if (labels.length === 0) continue;
    const selector = labels.toSorted().join(',');
    const owner = owners.get(selector) ?? entry;
    owners.set(selector, owner);
    if (owner.name === name) continue;
    const message = `${name} has the selector of ${owner.name} in line ${owner.place.line}`;
    note('selector', entry, message, 'give each add-on labels of its own');
  }
}

function manifestChannel(location: string, text: string, compat: Compat): Channel {
  const name = manifestAddonName(location);
  const entry: Entry = {
    name,
    namespace: 'kube-system',
    version: undefined,
    id: '',
    hash: hashOfManifest(Buffer.from(text), { kind: 'Manifest' }),
    kubernetesVersion: '',
    range: parseRange('', 'native').range,
    source: { type: 'manifest', manifest: location, location },
    requires: [],
    needsRollingUpdate: undefined,
    needsPKI: false,
    prune: undefined,
    drift: 'Warn',
    selector: {},
    place: { file: redact(location), line: 1, column: 1, length: 1 },
  };
  return { kind: 'Manifest', name, location, compat, entries: [entry] };
}
