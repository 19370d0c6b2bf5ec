/**
 * kURL's own state in the cluster (kurl.md 6.8), for what reads it there: `kurl/kurl-current-config` says what this run has
 * installed with which settings, `kurl/kurl-last-config` what the one before had. Pure.
 */
import { canonicalJson } from '../../core/digest.ts';
import { isObject } from '../../core/json.ts';
import { isAddonName, isVersion } from '../../core/ref.ts';
import { withoutSecrets } from '../../spec/secret-settings.ts';
import { NO_RUN, settingsDigest, type AppliedRecord } from '../node/records.ts';
import type { Adopted } from './cluster-records.ts';
import type { ConfigMapName, Data } from './config-map.ts';

export const CURRENT_CONFIG: ConfigMapName = { namespace: 'kurl', name: 'kurl-current-config' };
export const LAST_CONFIG: ConfigMapName = { namespace: 'kurl', name: 'kurl-last-config' };
/** Secrets beside them, under the same names: the entries as a whole of those add-ons that have secret settings. */
export const CURRENT_SECRET: ConfigMapName = { ...CURRENT_CONFIG, kind: 'Secret' };
export const LAST_SECRET: ConfigMapName = { ...LAST_CONFIG, kind: 'Secret' };
export const KURL_CONFIG: ConfigMapName = { namespace: 'kube-system', name: 'kurl-config' };
/** Below the install folder: what no cluster can hold yet. */
export const CONTAINERD_APPLIED = 'containerd-last-applied';
const VERSION_KEY = 'kurl-version';
const ADDON = 'addons-';

/** JSON as Go writes it, which kURL's own tool is made of: keys sorted, and three characters escaped. */
function goJson(value: unknown): string {
  const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return canonicalJson(value).replaceAll(/[<>&\u2028\u2029]/g, escape);
}

/** Base64 of an add-on's entry in the spec. */
export function encodeEntry(entry: unknown): string {
  return Buffer.from(goJson(entry)).toString('base64');
}

/** The key under which an add-on is. */
export function entryKey(name: string): string {
  return `${ADDON}${name}`;
}

/** An add-on of the spec: what it says of it, and the JSON Schema of its settings, where its package ships one. */
export interface SpecEntry {
  readonly entry: Readonly<Record<string, unknown>>;
  readonly schema: unknown;
}

/** What is noted of a run: for everybody who may read ConfigMaps, and for those who may read Secrets. */
export interface KurlData {
  readonly shown: Data;
  readonly secret: Data;
}

/**
 * The key and value that say that an add-on was installed with this entry of the spec, without its secrets; and the same
 * as a whole where it has any.
 */
export function entryData(name: string, { entry, schema }: SpecEntry = { entry: {}, schema: undefined }): KurlData {
  const { shown, hidden } = withoutSecrets(entry, schema);
  const key = entryKey(name);
  return { shown: { [key]: encodeEntry(shown) }, secret: hidden ? { [key]: encodeEntry(entry) } : {} };
}

/** What is noted at the beginning of a run, with these add-ons installed already. */
export function beginData(release: string | undefined, entries: readonly KurlData[]): KurlData {
  const version = release === undefined ? {} : { [VERSION_KEY]: release };
  return {
    shown: Object.assign({}, version, ...entries.map(({ shown }) => shown)) as Data,
    secret: Object.assign({}, ...entries.map(({ secret }) => secret)) as Data,
  };
}

/**
 * The state of the run before, to be kept: what kURL has written, or an earlier curlew, has its secrets in the ConfigMap.
 * Values that cannot be read stay as they are.
 */
export function keptData(config: Data, secret: Data): KurlData {
  const entries = Object.entries(config).map(([key, text]): KurlData => {
    const entry = key.startsWith(ADDON) ? decodeEntry(text) : undefined;
    const whole = Object.hasOwn(secret, key) ? { [key]: secret[key] ?? '' } : {};
    if (entry === undefined) return { shown: { [key]: text }, secret: whole };
    const { shown, hidden } = withoutSecrets(entry, undefined);
    return hidden
      ? { shown: { [key]: encodeEntry(shown) }, secret: { [key]: text } }
      : { shown: { [key]: text }, secret: whole };
  });
  return beginData(undefined, entries);
}

export interface KurlState {
  readonly current: Data | undefined;
  readonly last: Data | undefined;
  readonly config: Data | undefined;
}

/** Secrets of kURL's that have no business anywhere else, and what is of no use without them. */
const NO_FACT = /token|cert|key|expiration/i;

/**
 * What can be known of add-ons that kURL has installed: version and settings, never the package. An entry that cannot be
 * read counts as not installed.
 */
export function adoptKurl({ current, last, config }: KurlState): {
  readonly applied: Readonly<Record<string, AppliedRecord>>;
  readonly adopted: Adopted;
} {
  const applied: Record<string, AppliedRecord> = {};
  // A run of kURL that failed has not written all keys again: then those of the one before hold.
  for (const [key, text] of Object.entries({ ...last, ...current })) {
    const name = key.startsWith(ADDON) ? key.slice(ADDON.length) : '';
    const entry = decodeEntry(text);
    if (!isAddonName(name) || entry === undefined) continue;
    const { version, s3Override: _override, ...settings } = entry;
    if (typeof version !== 'string' || !isVersion(version)) continue;
    applied[name] = { version, settings: settingsDigest(settings), run: NO_RUN, finished: true };
  }
  const facts = Object.entries(config ?? {}).filter(([key]) => !NO_FACT.test(key));
  const kurlVersion = current?.[VERSION_KEY] ?? last?.[VERSION_KEY];
  return { applied, adopted: { kurlVersion, facts: Object.fromEntries(facts) } };
}

function decodeEntry(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64').toString());
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Which facts are shell variables, where the spec does not set them (kurl.md 4.4, 6.8). */
const FACT_VARIABLES: Readonly<Record<string, string>> = {
  service_cidr: 'SERVICE_CIDR',
  pod_cidr: 'POD_CIDR',
  docker_registry_ip: 'DOCKER_REGISTRY_IP',
  additional_no_proxy_addresses: 'ADDITIONAL_NO_PROXY_ADDRESSES',
  kubernetes_cis_compliance: 'KUBERNETES_CIS_COMPLIANCE',
  ha: 'HA_CLUSTER',
};

type Variable = readonly [name: string, value: string];

/** The variables of a spec, with facts of the cluster where they are empty. */
export function withFacts(variables: readonly Variable[], { facts }: Adopted): readonly Variable[] {
  const out = new Map(variables);
  for (const [fact, name] of Object.entries(FACT_VARIABLES)) {
    const value = facts[fact] ?? '';
    if ((out.get(name) ?? '') !== '' || value === '' || value === 'false') continue;
    out.set(name, value === 'true' ? '1' : value);
  }
  return [...out];
}
