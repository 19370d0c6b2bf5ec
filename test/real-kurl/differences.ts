/** What two clusters hold that is not the same, field by field, but for what is random, of a moment or of a place. */
import { isObject } from '../../src/core/json.ts';
import type { KubeObject } from './kube.ts';

/** What installers note for themselves, each in its own way. */
const OWN =
  /^(?:ConfigMap|Secret) (?:kurl\/(?:kurl-current-config|kurl-last-config|kurl-cluster-uuid|curlew-[a-z-]+)|kube-system\/kurl-config)$|^Service default\/kubernetes$|^CustomResourceDefinition\S* installers\.cluster\.kurl\.sh$|^Installer\./;
const META = new Set(['uid', 'resourceVersion', 'creationTimestamp', 'generation', 'managedFields', 'selfLink']);
const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** Each brings an image of its own for `KURL_UTIL_IMAGE`. */
const HELPER = /[\w.-]+\/(?:kurl-util|curlew-utils):[\w.-]+/g;

export interface Cluster {
  readonly objects: ReadonlyMap<string, KubeObject>;
  /** Address of its API server. */
  readonly url: string;
}

/** One line for each object that only one has, and for each field that differs: first the one of curlew, then kURL's. */
export function differences(ours: Cluster, theirs: Cluster): readonly string[] {
  const names = [...new Set([...ours.objects.keys(), ...theirs.objects.keys()])].filter((name) => !OWN.test(name));
  return names.toSorted().flatMap((name) => {
    const [left, right] = [ours.objects.get(name), theirs.objects.get(name)];
    if (left === undefined) return [`${name}: only kURL's scripts make it`];
    if (right === undefined) return [`${name}: only curlew makes it`];
    const [a, b] = [leaves(left, ours), leaves(right, theirs)];
    const fields = [...new Set([...a.keys(), ...b.keys()])].filter(
      (field) => !alike(a.get(field), b.get(field), left.kind === 'Secret'),
    );
    return fields.map((field) => `${name} ${field}: ${difference(a.get(field), b.get(field))}`);
  });
}

/** Only the lines that differ, if a text has many. */
function difference(ours: string | undefined, theirs: string | undefined): string {
  if (ours === undefined || theirs === undefined) return `${shown(ours)} ≠ ${shown(theirs)}`;
  const [left, right] = [ours.split('\n'), theirs.split('\n')];
  const only = (lines: readonly string[], others: readonly string[]): string =>
    lines.filter((line) => !others.some((other) => alike(line, other))).join(' / ');
  const [a, b] = left.length === 1 && right.length === 1 ? [ours, theirs] : [only(left, right), only(right, left)];
  return `${from(a, b)} ≠ ${from(b, a)}`;
}

/** A long text from a little before where it differs from the other. */
function from(text: string, other: string): string {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at += 1;
  return at < 80 ? shown(text) : `…${shown(text.slice(at - 40))}`;
}

export function countOf({ objects }: Cluster): number {
  return [...objects.keys()].filter((name) => !OWN.test(name)).length;
}

function shown(value: string | undefined): string {
  if (value === undefined) return 'nothing';
  return value.length > 120 ? `${value.slice(0, 120)}…` : value;
}

/** Every value at the end of a path. */
function leaves(one: KubeObject, cluster: Cluster): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const walk = (value: unknown, path: string): void => {
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) walk(item, `${path}[${index}]`);
    } else if (isObject(value)) {
      for (const [key, item] of Object.entries(value)) walk(item, `${path}.${key}`);
    } else found.set(path, plain(String(value), cluster));
  };
  const { status: _status, resource: _resource, metadata, ...rest } = one;
  const { annotations = {}, ...fields } = metadata;
  walk(
    {
      ...rest,
      metadata: Object.fromEntries(Object.entries(fields).filter(([field]) => !META.has(field))),
      annotations: Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== APPLIED)),
    },
    '',
  );
  if (one.kind !== 'Secret') return found;
  return new Map(
    [...found].map(([path, value]) => [
      path,
      path.startsWith('.data.') ? plain(Buffer.from(value, 'base64').toString(), cluster) : value,
    ]),
  );
}

/** Without what is another in each cluster: the API server's address, addresses and ports that it has given to services. */
function plain(text: string, { url, objects }: Cluster): string {
  let out = text.replaceAll(url, '<api>').replaceAll(HELPER, '<helper image>');
  for (const [name, { spec = {}, kind }] of objects) {
    if (kind !== 'Service') continue;
    const address = spec['clusterIP'];
    if (typeof address === 'string' && address.includes('.')) {
      const whole = new RegExp(String.raw`(?<![\d.])${address.replaceAll('.', String.raw`\.`)}(?![\d]|\.\d)`, 'g');
      out = out.replaceAll(whole, `<address of ${name}>`);
    }
    for (const { nodePort } of (spec['ports'] ?? []) as readonly { readonly nodePort?: number }[]) {
      if (nodePort !== undefined && text === String(nodePort)) return `<port of ${name}>`;
    }
  }
  return out;
}

const MOMENT = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?/g;
const PEM = /-----BEGIN ([A-Z ]+)-----[\s\S]*?-----END \1-----/g;
const BCRYPT = /\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}/g;
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const WORD = /[A-Za-z0-9+/]{8,}/g;

/** Equal, or equal but for words that are as long as the other's and look as random; in Secrets all long words do. */
function alike(a: string | undefined, b: string | undefined, isSecret = false): boolean {
  if (a === undefined || b === undefined || a === b) return a === b;
  const [left, right] = [a, b].map((text) =>
    text.replaceAll(MOMENT, '<moment>').replaceAll(PEM, '<$1>').replaceAll(BCRYPT, '<hash>').replaceAll(UUID, '<uuid>'),
  ) as [string, string];
  if (left === right) return true;
  const [words, others] = [left.match(WORD) ?? [], right.match(WORD) ?? []];
  if (words.length !== others.length || left.replaceAll(WORD, '') !== right.replaceAll(WORD, '')) return false;
  const isRandom = (word: string): boolean => isSecret || (/\d/.test(word) && /[A-Za-z]/.test(word));
  return words.every((word, index) => {
    const other = others[index] ?? '';
    return word === other || (word.length === other.length && isRandom(word) && isRandom(other));
  });
}
