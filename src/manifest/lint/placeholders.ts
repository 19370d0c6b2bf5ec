/** `__placeholders__` that a template's generator should have filled in. Pure. */
import { quoted } from '../rules.ts';
import { isDefinition } from './definition.ts';
import type { Remark, Spot } from './spot.ts';

const PLACEHOLDER = /(?<![A-Za-z0-9_$.])__([A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*)__(?![A-Za-z0-9_(])/y;

/** Words in this form from other languages: labels of Prometheus, names of Python, options of Grafana. */
const OTHERS: ReadonlySet<string> = new Set(
  (
    'address metrics_path scheme name path param scrape_interval scrape_timeout ' +
    'file line function init main dict class doc all call enter exit del str repr len iter typename schema'
  ).split(' '),
);

/** Prefixes of Prometheus labels. */
const LABELS = /^(?:meta|param)_/;

/** The ConfigMap key of a text that Calico's container fills in on each node. */
const CNI_CONFIG = 'cni_network_config';
const CNI_WORDS =
  /^(?:KUBERNETES_(?:NODE_NAME|SERVICE_(?:HOST|PORT|PROTOCOL))|CNI_MTU|KUBECONFIG_FILE(?:NAME|PATH)|SERVICEACCOUNT_TOKEN|LOG_LEVEL|LOG_FILE_\w+|DATASTORE_TYPE|ETCD_\w+)$/;

/** Text files of the add-on itself; in other languages this form has other meanings. */
export const PLACEHOLDER_TEXTS = /(?:^|\/)[^/.]+$|\.(?:ya?ml|sh|json|conf|cfg|env|tmpl|tpl|txt|toml|ini|service)$/;

const MAX_FOUND = 100;
const MAX_REPORTED = 20;

/** Placeholders that a hook script replaces: `s/__NAME__/` of sed, `${text//__NAME__/…}` of bash. */
export function filledPlaceholders(script: string): ReadonlySet<string> {
  return new Set([...script.matchAll(/(?:\bs|\/)([/|#,@])(__[A-Za-z][\w-]*__)\1/g)].map(([, , name = '']) => name));
}

export interface Placeholder extends Spot {
  readonly name: string;
}

/** The first occurrence of each placeholder, at most a hundred. */
export function findPlaceholders(text: string): readonly Placeholder[] {
  const placeholders = new Map<string, Placeholder>();
  let document = { to: 0, prose: false };
  let hasCni: boolean | undefined;
  for (let at = text.indexOf('__'); at !== -1 && placeholders.size < MAX_FOUND; at = text.indexOf('__', at)) {
    PLACEHOLDER.lastIndex = at;
    const [name = '', word = ''] = PLACEHOLDER.exec(text) ?? [];
    const from = at;
    at += name === '' ? 1 : name.length;
    if (name === '' || placeholders.has(name) || OTHERS.has(word.toLowerCase()) || LABELS.test(word)) continue;
    if (CNI_WORDS.test(word) && (hasCni ??= text.includes(CNI_CONFIG))) continue;
    if (from >= document.to) document = documentAt(text, from);
    if (!document.prose) placeholders.set(name, { name, from, to: at });
  }
  return [...placeholders.values()];
}

/** Resource definitions are generated; their descriptions use this form as prose. */
function documentAt(text: string, at: number): { readonly to: number; readonly prose: boolean } {
  const from = text.lastIndexOf('\n---', at) + 1;
  const next = text.indexOf('\n---', at);
  const to = next === -1 ? text.length : next;
  return { to, prose: isDefinition(text.slice(from, to)) };
}

/** Remarks about placeholders that are not in `filled`, at most twenty. */
export function placeholderRemarks(
  placeholders: readonly Placeholder[],
  filled: ReadonlySet<string>,
): readonly Remark[] {
  const rest = placeholders.filter(({ name }) => !filled.has(name));
  return rest.slice(0, MAX_REPORTED).map(({ name, from, to }) => ({
    code: 'addon/placeholder',
    from,
    to,
    message: `the placeholder ${quoted(name)} was not filled in`,
    hint: 'replace it with the value, or let template/generate.sh do it',
  }));
}
