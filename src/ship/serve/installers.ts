/** Stored installer specs: `<id>.yaml` under a prefix of a store, uploaded manually or with POST. */
import type { Cancellable } from '../../core/cancellable.ts';
import { INSTALLER_LIMIT } from '../../core/bundle.ts';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { installerHash, installerId } from '../../spec/id.ts';
import type { Installer } from '../../spec/installer.ts';
import { parseInstaller } from '../../spec/parse.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import type { JsonObject } from '../../formats/yaml/yaml.ts';
import type { Store } from '../store/store.ts';
import { isInstallerName } from './route.ts';

export interface KnownSpec {
  readonly text: string;
  /** Digest of the text. */
  readonly digest: Digest;
  readonly installer: Installer;
  readonly document: JsonObject;
}

export interface Installers {
  /** A missing spec is `NOT_FOUND`, an invalid one `SPEC_INVALID`. */
  readonly read: (id: string, options: Cancellable) => Promise<KnownSpec>;
  /** The stored specs; empty if the store cannot list. */
  readonly list: (options: Cancellable) => Promise<StoredSpecs>;
  /** Stores a spec under its id. The same existing spec is kept; a different one with the same id is `FILE_EXISTS`. */
  readonly add: (spec: KnownSpec, options: Cancellable) => Promise<{ readonly id: string; readonly isNew: boolean }>;
}

export interface StoredSpecs {
  /** At most the number of cached specs. */
  readonly ids: readonly string[];
  /** Some keys whose names are not valid for a spec, so that no address leads to them. */
  readonly unreachable: readonly string[];
}

/** Number of cached parsed specs. */
const MAX_CACHED = 256;
/** Maximum number of listed keys. */
const SCAN_LIMIT = 10_000;
const MAX_UNREACHABLE = 5;
const OWN_ID = /^[0-9a-f]{7}$/;

/** `prefix` is empty, or ends with a slash. */
export function createInstallers(store: Store, prefix: string): Installers {
  const parsed = createSingleFlightCache<KnownSpec>({ most: MAX_CACHED });
  const read: Installers['read'] = async (id, { signal }) => {
    const stored = await store.read(`${prefix}${id}.yaml`, { limit: INSTALLER_LIMIT, signal });
    if (stored === undefined) throw new CurlewError('NOT_FOUND', `installer ${id} does not exist`);
    const spec = await parsed.get(digestOf(stored.data), async () => readSpecText(stored.data, `${id}.yaml`));
    const own = installerId(spec.installer);
    if (!OWN_ID.test(id) || own === id) return spec;
    throw new CurlewError('DIGEST_MISMATCH', `${store.address}/${prefix}${id}.yaml: its id is ${own}`, {
      hint: 'rename the file to its id, or to a name that is not an id',
    });
  };
  return {
    read,
    list: async ({ signal }) => {
      const ids: string[] = [];
      const unreachable: string[] = [];
      let budget = SCAN_LIMIT;
      try {
        for await (const { key } of store.list(prefix, { signal })) {
          const [, id] = /^([^/]+)\.ya?ml$/.exec(key.slice(prefix.length)) ?? [];
          const isId = id !== undefined && isInstallerName(id) && key.endsWith('.yaml');
          if (isId && ids.length < MAX_CACHED) ids.push(id);
          if (id !== undefined && !isId && unreachable.length < MAX_UNREACHABLE) unreachable.push(key);
          budget -= 1;
          if (budget === 0) break;
        }
      } catch (error) {
        if (!(error instanceof CurlewError) || error.code !== 'UNSUPPORTED') throw error;
      }
      return { ids, unreachable };
    },
    add: async (spec, { signal }) => {
      const id = installerId(spec.installer);
      try {
        await store.put(`${prefix}${id}.yaml`, Buffer.from(spec.text), { ifNoneMatch: '*', signal });
        return { id, isNew: true };
      } catch (error) {
        if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
      }
      const other = await read(id, { signal });
      if (installerHash(other.installer) === installerHash(spec.installer)) return { id, isNew: false };
      throw new CurlewError('FILE_EXISTS', `a different spec already has the id ${id}`, {
        hint: 'change an unimportant setting',
      });
    },
  };
}

/** Parses a spec; reports all mistakes at once, as `SPEC_INVALID`. */
export function readSpecText(data: Uint8Array, name: string): KnownSpec {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(data);
  } catch (error) {
    throw new CurlewError('SPEC_INVALID', `${name} is not valid UTF-8`, { cause: error });
  }
  const { installer, document, diagnostics } = parseInstaller(name, text);
  if (installer !== undefined && document !== undefined) return { text, digest: digestOf(data), installer, document };
  throw new CurlewError('SPEC_INVALID', `${name} is not a valid installer spec`, { diagnostics });
}
