/** Opens packages in a store for a bundle: range sources and indexes. */
import { setImmediate } from 'node:timers/promises';
import type { Cancellable } from '../../core/cancellable.ts';
import type { ArchiveIndex } from '../../formats/archive/entry.ts';
import { findEntry, readFile, readIndex } from '../../formats/archive/read.ts';
import { compareDiagnostics, type Diagnostic } from '../../core/diagnostic.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { ADDON_JSON, prefixOf } from '../../core/layout.ts';
import { ADDON_JSON_LIMIT, parseAddonJson, type AddonJson } from '../../core/package.ts';
import type { Installer, InstallerAddon } from '../../spec/installer.ts';
import { partsWithSecrets } from '../../spec/secret-parts.ts';
import { openStoreSource, type SourceStore, type StoreSource } from '../store/source.ts';
import type { ResolvedPackage } from './resolve.ts';

export interface OpenPackage<Resolved extends ResolvedPackage = ResolvedPackage> {
  readonly resolved: Resolved;
  readonly source: StoreSource;
  /** ETag of the object when its index was read. */
  readonly etag: string;
  readonly index: ArchiveIndex;
}

const CONCURRENCY = 8;

/** Reads a package's `addon.json` with one small range, verified with its table of contents. */
export async function readPackageAddon(
  { resolved, source, index }: Pick<OpenPackage, 'resolved' | 'source' | 'index'>,
  { signal }: Cancellable,
): Promise<AddonJson> {
  const entry = findEntry(index, `${prefixOf(resolved)}${ADDON_JSON}`);
  if (entry === undefined) throw new CurlewError('PACKAGE_INVALID', `${source.name}: ${ADDON_JSON} is missing`);
  const data = await readFile(source, entry, { limit: ADDON_JSON_LIMIT, signal });
  return parseAddonJson(Buffer.from(data).toString('utf8'), source.name);
}

/** An add-on of a spec, and the schema of its settings in its package, if there is one. */
export interface AddonSchema {
  readonly addon: InstallerAddon;
  readonly schema: unknown;
}

/** Reads the schemas of a spec's add-ons from their packages. Skips a package that does not match the catalog. */
export async function readSchemas(
  { addons }: Pick<Installer, 'addons'>,
  packages: readonly Pick<OpenPackage, 'resolved' | 'source' | 'index'>[],
  { signal }: Cancellable,
): Promise<readonly AddonSchema[]> {
  const schemas = await mapLimited(
    packages,
    async (one, context) => {
      const { name, toc } = one.resolved;
      const addon = addons.find((one) => one.name === name);
      if (addon === undefined || (toc !== undefined && toc !== one.index.tocDigest)) return [];
      return [{ addon, schema: (await readPackageAddon(one, context)).settings }];
    },
    { width: CONCURRENCY, signal },
  );
  return schemas.flat();
}

/** The parts of a spec with secrets, installed or not: see {@link partsWithSecrets}. */
export function secretsOfSpec(spec: Uint8Array, schemas: readonly AddonSchema[]): readonly string[] {
  const schemaOf = new Map(schemas.map(({ addon, schema }) => [addon.specName, schema]));
  return partsWithSecrets(Buffer.from(spec).toString(), schemaOf);
}

/** Checks the settings of add-ons with their schemas. */
export async function checkSettings(
  schemas: readonly AddonSchema[],
  { signal }: Cancellable,
): Promise<readonly Diagnostic[]> {
  if (schemas.length === 0) return [];
  const { checkShipped } = await import('../../spec/shipped-schema.ts');
  const diagnostics: Diagnostic[] = [];
  for (const { addon, schema } of schemas) {
    diagnostics.push(...checkShipped(addon, schema));
    // Each check may take a while: let a server handle other requests.
    await setImmediate();
    signal.throwIfAborted();
  }
  return diagnostics.toSorted(compareDiagnostics);
}

export interface OpenOptions {
  readonly signal: AbortSignal;
  /** Maximum total bytes of all tables of contents; more are `UNSUPPORTED`. Undefined for no limit. */
  readonly maxTocBytes?: number | undefined;
}

/** Limits the total bytes of tables of contents before they are read. */
function admitToc(max: number): (bytes: number) => void {
  let total = 0;
  return (bytes) => {
    total += bytes;
    if (total <= max) return;
    throw new CurlewError('UNSUPPORTED', `the tables of contents exceed ${max} bytes, the limit for one plan`, {
      hint: 'request fewer packages at once, or create the bundle with curlew bundle',
    });
  };
}

/** Opens one package without checking it against a catalog. */
export async function openIndex(
  store: SourceStore,
  key: string,
  { signal, maxTocBytes = Number.POSITIVE_INFINITY }: OpenOptions,
): Promise<Pick<OpenPackage, 'source' | 'index'>> {
  const source = await openStoreSource(store, key, { signal });
  return { source, index: await readIndex(source, { signal, admit: admitToc(maxTocBytes) }) };
}

/** Reads only the end of each package. An object whose size differs from the catalog is `DIGEST_MISMATCH`. */
export async function openPackages<Resolved extends ResolvedPackage>(
  store: SourceStore,
  packages: readonly Resolved[],
  { signal, maxTocBytes = Number.POSITIVE_INFINITY }: OpenOptions,
): Promise<readonly OpenPackage<Resolved>[]> {
  const admit = admitToc(maxTocBytes);
  return mapLimited(
    packages,
    async (resolved, context) => {
      const source = await openStoreSource(store, resolved.key, context);
      if (source.size !== resolved.size) {
        throw new CurlewError(
          'DIGEST_MISMATCH',
          `${source.name}: has ${source.size} bytes instead of ${resolved.size}`,
          { hint: 'the object in the store was replaced or damaged: publish the add-on again in a new release' },
        );
      }
      return { resolved, source, etag: source.object.etag, index: await readIndex(source, { ...context, admit }) };
    },
    { width: CONCURRENCY, signal },
  );
}
