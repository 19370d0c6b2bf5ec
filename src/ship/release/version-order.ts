/**
 * The order of an add-on's versions in a catalog; the first is `latest` (kurl.md 3.4). Pure.
 */
import { isTime } from '../../core/catalog.ts';
import { asError, errorAbout } from '../../core/errors.ts';
import { fieldsOf, isObject, jsonIn, shallowJson } from '../../core/json.ts';
import { compareVersions, isAddonName, isVersion } from '../../core/ref.ts';

/** Per add-on: the first versions, in order. */
export type VersionOrders = ReadonlyMap<string, readonly string[]>;

/**
 * Parses an order file: a JSON list of versions, `latest` first; `from` names the file. Anything else is
 * `MANIFEST_INVALID`.
 */
export function parseOrderFile(text: string, from: string): readonly string[] {
  const bad = errorAbout(
    'MANIFEST_INVALID',
    `${from}: not a version order`,
    'write a JSON list of versions, latest first: ["1.2.3", "1.1.0"]',
  );
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch (error) {
    throw bad(asError(error).message.slice(0, 200), error);
  }
  if (!Array.isArray(value)) throw bad('it is not a list');
  const versions = new Set<string>();
  for (const version of value as readonly unknown[]) {
    if (typeof version !== 'string' || !isVersion(version)) {
      throw bad(`${JSON.stringify(version)?.slice(0, 120)} is not a version`);
    }
    if (versions.has(version)) throw bad(`${version} is listed twice`);
    versions.add(version);
  }
  return [...versions];
}

/**
 * Sorts versions: first those in `order`, then the rest in descending order, so that a new version becomes the latest only
 * if `order` says so.
 */
export function orderVersions<Item extends { readonly version: string }>(
  items: readonly Item[],
  order: readonly string[] = [],
): readonly Item[] {
  const ranks = new Map(order.map((version, rank) => [version, rank]));
  const rankOf = ({ version }: Item): number => ranks.get(version) ?? ranks.size;
  return items.toSorted((a, b) => rankOf(a) - rankOf(b) || compareVersions(b.version, a.version));
}

/** The time of the release in a `supported-versions-gen.json`; undefined if it has none. */
export function publishedOf(text: string): string | undefined {
  const published = fieldsOf(jsonIn(text))['_published'];
  return typeof published === 'string' && isTime(published) ? published : undefined;
}

/** The version orders in a `supported-versions-gen.json`; undefined if it cannot be parsed. */
export function parseSupportedVersions(text: string): VersionOrders | undefined {
  const lists = fieldsOf(jsonIn(text))['supportedVersions'];
  if (!isObject(lists)) return undefined;
  const orders = new Map<string, readonly string[]>();
  for (const [name, list] of Object.entries(lists)) {
    if (!isAddonName(name) || !Array.isArray(list)) return undefined;
    const versions = (list as readonly unknown[]).filter((one): one is string => typeof one === 'string');
    orders.set(name, versions[0] === 'latest' ? versions.slice(1) : versions);
  }
  return orders;
}
