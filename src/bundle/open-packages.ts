/** The packages of a bundle to be, as they lie in a store: their bytes by range, and their indexes. */
import { setImmediate } from 'node:timers/promises';
import type { ArchiveIndex } from '../formats/archive/entry.ts';
import { findEntry, readFile, readIndex } from '../formats/archive/read.ts';
import { compareDiagnostics, type Diagnostic } from '../core/diagnostic.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError } from '../core/errors.ts';
import { ADDON_JSON, prefixOf } from '../core/layout.ts';
import { ADDON_JSON_LIMIT, parseAddonJson, type AddonJson } from '../core/package.ts';
import type { Installer } from '../spec/installer.ts';
import { checkShipped } from '../spec/shipped-schema.ts';
import { openStoreSource, type SourceStore, type StoreSource } from '../store/source.ts';
import type { ResolvedPackage } from './resolve.ts';

export interface OpenPackage<Resolved extends ResolvedPackage = ResolvedPackage> {
  readonly resolved: Resolved;
  readonly source: StoreSource;
  /** Of the object, as it was when its index was read. */
  readonly etag: string;
  readonly index: ArchiveIndex;
}

const AT_ONCE = 8;

/** What a package says of itself: one small range of it is read, and proved by its table of contents. */
export async function readAddon(
  { resolved, source, index }: OpenPackage,
  { signal }: { readonly signal: AbortSignal },
): Promise<AddonJson> {
  const entry = findEntry(index, `${prefixOf(resolved)}${ADDON_JSON}`);
  if (entry === undefined) throw new CurlewError('PACKAGE_INVALID', `${source.name}: ${ADDON_JSON} is missing`);
  const data = await readFile(source, entry, { limit: ADDON_JSON_LIMIT, signal });
  return parseAddonJson(Buffer.from(data).toString('utf8'), source.name);
}

/**
 * The settings of a spec against the schemas in its packages: findings with their places. Where a package is not what the
 * catalogue says, its schema is not asked.
 */
export async function checkSettings(
  installer: Installer,
  packages: readonly OpenPackage[],
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly Diagnostic[]> {
  const found = await mapLimited(
    packages,
    async (one, context) => {
      const { name, toc } = one.resolved;
      const addon = installer.addons.find((wanted) => wanted.name === name);
      if (addon === undefined || (toc !== undefined && toc !== one.index.tocDigest)) return [];
      return [{ addon, schema: (await readAddon(one, context)).settings }];
    },
    { width: AT_ONCE, signal },
  );
  const diagnostics: Diagnostic[] = [];
  for (const { addon, schema } of found.flat()) {
    diagnostics.push(...checkShipped(addon, schema));
    // Each may take a moment, and a server has others to answer.
    await setImmediate();
    signal.throwIfAborted();
  }
  return diagnostics.toSorted(compareDiagnostics);
}

export interface OpenOptions {
  readonly signal: AbortSignal;
  /** Most bytes that the tables of contents of all packages may have together; more are `UNSUPPORTED`. Undefined: any. */
  readonly mostToc?: number | undefined;
}

/** Counts the bytes of tables of contents before they are read. */
function admitToc(most: number): (bytes: number) => void {
  let total = 0;
  return (bytes) => {
    total += bytes;
    if (total <= most) return;
    throw new CurlewError('UNSUPPORTED', `tables of contents of more than ${most} bytes are too much for one plan`, {
      hint: 'ask for fewer packages at once, or make the bundle with curlew bundle',
    });
  };
}

/** One package, whatever a catalogue says of it. */
export async function openIndex(
  store: SourceStore,
  key: string,
  { signal, mostToc = Number.POSITIVE_INFINITY }: OpenOptions,
): Promise<Pick<OpenPackage, 'source' | 'index'>> {
  const source = await openStoreSource(store, key, { signal });
  return { source, index: await readIndex(source, { signal, admit: admitToc(mostToc) }) };
}

/** Reads the end of each package only. An object of another size than the catalogue says is `DIGEST_MISMATCH`. */
export async function openPackages<Resolved extends ResolvedPackage>(
  store: SourceStore,
  packages: readonly Resolved[],
  { signal, mostToc = Number.POSITIVE_INFINITY }: OpenOptions,
): Promise<readonly OpenPackage<Resolved>[]> {
  const admit = admitToc(mostToc);
  return mapLimited(
    packages,
    async (resolved, context) => {
      const source = await openStoreSource(store, resolved.key, context);
      if (source.size !== resolved.size) {
        throw new CurlewError('DIGEST_MISMATCH', `${source.name}: has ${source.size} bytes, not ${resolved.size}`, {
          hint: 'the object in the store was replaced or damaged: publish the add-on again in a new release',
        });
      }
      return { resolved, source, etag: source.object.etag, index: await readIndex(source, { ...context, admit }) };
    },
    { width: AT_ONCE, signal },
  );
}
