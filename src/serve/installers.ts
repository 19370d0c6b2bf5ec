/** Installer specs that are known here: `<id>.yaml` below a prefix of a store, put there by people or by POST. */
import { INSTALLER_LIMIT } from '../core/bundle.ts';
import { digestOf, type Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { installerHash, installerId } from '../spec/id.ts';
import type { Installer } from '../spec/installer.ts';
import { parseInstaller } from '../spec/parse.ts';
import { createSingleFlightCache } from '../platform/limit/single-flight-cache.ts';
import type { JsonObject } from '../formats/yaml/yaml.ts';
import type { Store } from '../store/store.ts';
import { isInstallerName } from './route.ts';

export interface KnownSpec {
  readonly text: string;
  /** Of the text. */
  readonly digest: Digest;
  readonly installer: Installer;
  readonly document: JsonObject;
}

export interface Installers {
  /** A spec that is not there is `NOT_FOUND`, one that is wrong `SPEC_INVALID`. */
  readonly read: (id: string, options: { readonly signal: AbortSignal }) => Promise<KnownSpec>;
  /** The specs that are kept here; none where the store does not list what it has. */
  readonly list: (options: { readonly signal: AbortSignal }) => Promise<KeptSpecs>;
  /** Keeps a spec under its id. One that is there already stays; another one of the same id is `FILE_EXISTS`. */
  readonly add: (spec: KnownSpec, options: { readonly signal: AbortSignal }) => Promise<AddedSpec>;
}

export interface KeptSpecs {
  /** At most so many as are remembered. */
  readonly ids: readonly string[];
  /** Keys below the prefix that no address leads to, since a spec cannot have that name: a few of them. */
  readonly unreachable: readonly string[];
}

export interface AddedSpec {
  readonly id: string;
  readonly isNew: boolean;
}

/** Specs whose meaning is remembered. */
const MOST = 256;
/** Keys that are looked at. */
const LOOKED_AT = 10_000;
const FEW = 5;
const OWN_ID = /^[0-9a-f]{7}$/;

/** `prefix` is empty, or ends in a slash. */
export function createInstallers(store: Store, prefix: string): Installers {
  const parsed = createSingleFlightCache<KnownSpec>({ most: MOST });
  const read: Installers['read'] = async (id, { signal }) => {
    const found = await store.read(`${prefix}${id}.yaml`, { limit: INSTALLER_LIMIT, signal });
    if (found === undefined) throw new CurlewError('NOT_FOUND', `there is no installer ${id}`);
    const spec = await parsed.get(digestOf(found.data), async () => readSpecText(found.data, `${id}.yaml`));
    const own = installerId(spec.installer);
    if (!OWN_ID.test(id) || own === id) return spec;
    throw new CurlewError('DIGEST_MISMATCH', `${store.address}/${prefix}${id}.yaml: its id is ${own}`, {
      hint: 'give the file that name, or a name that is no id',
    });
  };
  return {
    read,
    list: async ({ signal }) => {
      const ids: string[] = [];
      const unreachable: string[] = [];
      let left = LOOKED_AT;
      try {
        for await (const { key } of store.list(prefix, { signal })) {
          const [, id] = /^([^/]+)\.ya?ml$/.exec(key.slice(prefix.length)) ?? [];
          const isId = id !== undefined && isInstallerName(id) && key.endsWith('.yaml');
          if (isId && ids.length < MOST) ids.push(id);
          if (id !== undefined && !isId && unreachable.length < FEW) unreachable.push(key);
          left -= 1;
          if (left === 0) break;
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
      throw new CurlewError('FILE_EXISTS', `another spec has the id ${id} already`, {
        hint: 'change a setting that does not matter',
      });
    },
  };
}

/** A spec from outside; all that is wrong with it is told at once, as `SPEC_INVALID`. */
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
