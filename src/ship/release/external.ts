/**
 * External add-ons (kurl.md 3.6): the versions in a publisher's `versions.json`, and the registry of imported ones. A
 * version in the registry never changes, except that `isPrerelease` may become false. Pure.
 */
import * as v from 'valibot';
import { canonicalJson, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError, errorAbout, redact } from '../../core/errors.ts';
import { isObject, parseText, shallowJson } from '../../core/json.ts';
import type { ListedPackage } from './make-catalog.ts';
import { addonRef, compareText, compareVersions, formatRef, type AddonVersion } from '../../core/ref.ts';
import { byKey, readJson, type Read } from '../../core/schema.ts';

/** A version that a publisher offers. */
export interface OfferedVersion extends AddonVersion {
  readonly url: string;
  readonly range: string;
  readonly isPrerelease: boolean;
  /** From the publisher; undefined if not given. */
  readonly digest: Digest | undefined;
}

/** A row of the registry, with kURL's field names. */
const registryRow = v.object({
  version: v.string(),
  kurlVersionCompatibilityRange: v.string(),
  /** Address without user info and query. */
  origin: v.string(),
  isPrerelease: v.boolean(),
  /** Hex. */
  sha256Sum: v.custom<string>((value) => isDigest(`sha256:${String(value)}`), 'not a hex SHA-256'),
  /** The catalog entry of a package that curlew built. kURL's readers ignore it. */
  curlew: v.exactOptional(v.custom<ExternalPackage>(isObject, 'not an object')),
});
export type RegistryRow = Read<typeof registryRow>;

export type ExternalPackage = Omit<ListedPackage, 'name' | 'version'>;

const addonRegistry = byKey(v.array(registryRow));
export type AddonRegistry = ReadonlyMap<string, readonly RegistryRow[]>;

/** Maximum bytes of an `addon-registry.json`. */
export const REGISTRY_LIMIT: number = 16 << 20;
const MAX_VERSIONS = 10_000;

function cleanString(value: unknown, limit: number): string | undefined {
  return typeof value === 'string' && value.length <= limit && !/[\u0000-\u001f\u007f]/.test(value) ? value : undefined;
}

/**
 * Parses a `versions.json`: a list of versions of the add-on `name`, or an object with such a list per add-on. Any mistake
 * is `SPEC_INVALID`.
 */
export function parseOffers(text: string, from: string, name: string | undefined): readonly OfferedVersion[] {
  const bad = errorAbout(
    'SPEC_INVALID',
    from,
    'write a list of {version, url, kurlVersionCompatibilityRange, isPrerelease, sha256Sum}',
  );
  const value = parseText(text, shallowJson, bad);
  if (Array.isArray(value) && name === undefined) throw bad('it is a list without the name of an add-on: add --name');
  const lists = Array.isArray(value) ? [[name ?? '', value] as const] : isObject(value) ? Object.entries(value) : [];
  if (lists.length === 0) throw bad('it contains no versions');
  const offers = lists.flatMap(([addon, rows]) => {
    if (!Array.isArray(rows) || rows.length > MAX_VERSIONS) throw bad(`${addon.slice(0, 100)} has no list of versions`);
    return rows.map((row: unknown, at) => {
      const offer = offerOf(addon, row);
      if (typeof offer === 'string') throw bad(`version ${at + 1} of ${addon.slice(0, 100)}: ${offer}`);
      return offer;
    });
  });
  const files = offers.map((offer) => externalFile(offer));
  const twice = files.find((file, at) => files.indexOf(file) !== at);
  if (twice !== undefined) throw bad(`two versions have the same file name ${twice}`);
  return offers;
}

function offerOf(name: string, row: unknown): OfferedVersion | string {
  if (!isObject(row)) return 'it is not an object';
  const version = cleanString(row['version'], 128);
  const url = cleanString(row['url'], 4096);
  const range = cleanString(row['kurlVersionCompatibilityRange'] ?? '*', 256);
  const { isPrerelease = false, sha256Sum } = row;
  if (version === undefined) return 'it has no version';
  try {
    addonRef(name, version);
  } catch (error) {
    if (error instanceof CurlewError) return error.message;
    throw error;
  }
  if (url === undefined || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return 'its url is not a web address';
  if (range === undefined) return 'kurlVersionCompatibilityRange is not a string';
  if (typeof isPrerelease !== 'boolean') return 'isPrerelease is not a boolean';
  const digest = sha256Sum === undefined ? undefined : `sha256:${typeof sha256Sum === 'string' ? sha256Sum : ''}`;
  if (digest !== undefined && !isDigest(digest)) return 'sha256Sum is not a hex SHA-256';
  return { name, version, url, range, isPrerelease, digest };
}

/** File name of an external package, below `external/`. */
export function externalFile({ name, version }: Pick<OfferedVersion, 'name' | 'version'>): string {
  return `${formatRef({ name, version })}.tar.gz`.replaceAll('+', '-');
}

/** Parses a store's `addon-registry.json`; `PACKAGE_INVALID` if it is damaged, so that it is never overwritten. */
export function parseRegistry(text: string, from: string): AddonRegistry {
  const bad = errorAbout('PACKAGE_INVALID', `${from}: not an add-on registry`, 'restore its last good version');
  return new Map(Object.entries(readJson(addonRegistry, text, { bad, parse: shallowJson })));
}

/** Canonical JSON of a registry: add-ons by name, versions in descending order. */
export function formatRegistry(registry: AddonRegistry): string {
  const rows = [...registry]
    .toSorted(([a], [b]) => compareText(a, b))
    .map(([name, list]) => [name, list.toSorted((a, b) => compareVersions(b.version, a.version))] as const);
  return `${canonicalJson(Object.fromEntries(rows))}\n`;
}

/** Why an offer conflicts with its row; undefined if it is the same version, or the release of a prerelease. */
export function offerProblem(row: RegistryRow, offer: OfferedVersion): string | undefined {
  if (row.origin !== redact(offer.url)) return 'has a different address';
  if (row.kurlVersionCompatibilityRange !== offer.range) return 'is for different versions of kURL';
  if (offer.digest !== undefined && offer.digest !== `sha256:${row.sha256Sum}`) return 'has a different SHA-256';
  return !row.isPrerelease && offer.isPrerelease ? 'is already released' : undefined;
}

/** The registry with these rows added; each replaces the row of the same version. */
export function withRows(
  registry: AddonRegistry,
  rows: readonly { readonly name: string; readonly row: RegistryRow }[],
): AddonRegistry {
  const all = new Map(registry);
  for (const { name, row } of rows) {
    all.set(name, [...(all.get(name) ?? []).filter(({ version }) => version !== row.version), row]);
  }
  return all;
}
