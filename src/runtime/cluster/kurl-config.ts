/**
 * kURL's own state in the cluster (kurl.md 6.8), for programs that read it: `kurl/kurl-current-config` lists the add-ons of this
 * run and their settings, `kurl/kurl-last-config` those of the run before. Pure.
 */
import { canonicalJson } from '../../core/digest.ts';
import { isObject, jsonIn } from '../../core/json.ts';
import { isAddonName, isVersion } from '../../core/ref.ts';
import { withoutSecrets } from '../../spec/secret-settings.ts';
import { NO_RUN, settingsDigest, type AppliedRecord } from '../plan/records.ts';
import type { Adopted } from './cluster-records.ts';
import type { ConfigMapName, Data } from '../../cluster/kube/config-map.ts';

export const CURRENT_CONFIG: ConfigMapName = { namespace: 'kurl', name: 'kurl-current-config' };
export const LAST_CONFIG: ConfigMapName = { namespace: 'kurl', name: 'kurl-last-config' };
/** Secrets with the same names: the complete entries of add-ons with secret settings. */
export const CURRENT_SECRET: ConfigMapName = { ...CURRENT_CONFIG, kind: 'Secret' };
export const LAST_SECRET: ConfigMapName = { ...LAST_CONFIG, kind: 'Secret' };
export const KURL_CONFIG: ConfigMapName = { namespace: 'kube-system', name: 'kurl-config' };
const VERSION_KEY = 'kurl-version';
const ADDON = 'addons-';

/** JSON as kURL's tool writes it, in Go: sorted keys, and HTML characters and line separators escaped. */
function goJson(value: unknown): string {
  const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return canonicalJson(value).replaceAll(/[<>&\u2028\u2029]/g, escape);
}

/** Base64 of an add-on's entry in the spec. */
export function encodeEntry(entry: unknown): string {
  return Buffer.from(goJson(entry)).toString('base64');
}

/** The key of an add-on. */
export function entryKey(name: string): string {
  return `${ADDON}${name}`;
}

/** An add-on of the spec: its entry, and the JSON Schema of its settings if its package has one. */
export interface SpecEntry {
  readonly entry: Readonly<Record<string, unknown>>;
  readonly schema: unknown;
}

/** State of a run: `shown` for ConfigMaps, `secret` for Secrets. */
export interface KurlData {
  readonly shown: Data;
  readonly secret: Data;
}

/**
 * Key and value of an installed add-on: its entry of the spec without secrets for the ConfigMap and, if it has secrets, the
 * complete entry for the Secret.
 */
export function entryData(name: string, { entry, schema }: SpecEntry = { entry: {}, schema: undefined }): KurlData {
  const { shown, hidden } = withoutSecrets(entry, schema);
  const key = entryKey(name);
  return { shown: { [key]: encodeEntry(shown) }, secret: hidden ? { [key]: encodeEntry(entry) } : {} };
}

/** The state at the start of a run, with the add-ons that are already installed. */
export function beginData(release: string | undefined, entries: readonly KurlData[]): KurlData {
  const version = release === undefined ? {} : { [VERSION_KEY]: release };
  return {
    shown: Object.assign({}, version, ...entries.map(({ shown }) => shown)) as Data,
    secret: Object.assign({}, ...entries.map(({ secret }) => secret)) as Data,
  };
}

/**
 * The state of the previous run, to be kept. In state of kURL or an earlier curlew, secrets are in the ConfigMap; they move to
 * the Secret. Values that cannot be decoded stay.
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

/** Keys with kURL's secrets, which must not be copied, and values that are useless without them. */
const NO_FACT = /token|cert|key|expiration/i;

/**
 * Add-ons that kURL installed: version and settings are known, the package is not. An entry that cannot be decoded counts as not
 * installed.
 */
export function adoptKurl({ current, last, config }: KurlState): {
  readonly applied: Readonly<Record<string, AppliedRecord>>;
  readonly adopted: Adopted;
} {
  const applied: Record<string, AppliedRecord> = {};
  // A failed run of kURL has not written all keys: the keys of the run before complete them.
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
  const value = jsonIn(Buffer.from(text, 'base64').toString());
  return isObject(value) ? value : undefined;
}

/** Facts that set shell variables if the spec does not (kurl.md 4.4, 6.8). */
const FACT_VARIABLES: Readonly<Record<string, string>> = {
  service_cidr: 'SERVICE_CIDR',
  pod_cidr: 'POD_CIDR',
  docker_registry_ip: 'DOCKER_REGISTRY_IP',
  additional_no_proxy_addresses: 'ADDITIONAL_NO_PROXY_ADDRESSES',
  kubernetes_cis_compliance: 'KUBERNETES_CIS_COMPLIANCE',
  ha: 'HA_CLUSTER',
};

type Variable = readonly [name: string, value: string];

/** The variables of a spec; empty ones are set from facts of the cluster. */
export function withFacts(variables: readonly Variable[], { facts }: Adopted): readonly Variable[] {
  const out = new Map(variables);
  for (const [fact, name] of Object.entries(FACT_VARIABLES)) {
    const value = facts[fact] ?? '';
    if ((out.get(name) ?? '') !== '' || value === '' || value === 'false') continue;
    out.set(name, value === 'true' ? '1' : value);
  }
  return [...out];
}
