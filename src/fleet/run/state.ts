/** The folder in which the commands of a fleet keep their state, and the files that it went through. */
import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Entry } from '../../cluster/channel/channel.ts';
import type { Context } from '../../core/context.ts';
import { digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import {
  encodeState,
  NO_ORDERS,
  NO_STATE,
  ordersFor,
  readOrders,
  readState,
  type FleetOrders,
  type FleetState,
  type GivenOrder,
} from '../state.ts';
import { claim } from '../../platform/files/claim.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { readFound, readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';
import type { ChannelFiles } from '../../steps/open/channel-files.ts';

const MAX_BYTES = 64 << 20;
const DOING = 'keep the state of the fleet';

/** For a folder that Git would otherwise take: values may be secret. */
const IGNORED = ['.gitignore', 'state.json', 'orders.json', 'files/', '.*.claim'].map((name) => `/${name}\n`).join('');

/** Passes write the state, and people the orders, which they can give during a pass. Both are replaced as a whole. */
export class StateFolder {
  readonly #ignore: string;
  readonly #state: string;
  readonly #orders: string;
  readonly #files: string;
  #text: string | undefined;
  #id: string | undefined;
  #isBound = false;

  constructor(path: string, { cwd }: Pick<Context, 'cwd'>) {
    this.#ignore = resolve(cwd, path, '.gitignore');
    this.#state = resolve(cwd, path, 'state.json');
    this.#orders = resolve(cwd, path, 'orders.json');
    this.#files = resolve(cwd, path, 'files');
  }

  /** `FILE_UNUSABLE` for a file that this version has not written, or that others may write. */
  async read(): Promise<FleetState> {
    this.#text = await readOwnFile(this.#state, MAX_BYTES);
    const state = this.#text === undefined ? NO_STATE : readState(this.#text, this.#state);
    this.#id = state.id;
    return state;
  }

  async readOrders(): Promise<FleetOrders> {
    const text = await readOwnFile(this.#orders, MAX_BYTES);
    return text === undefined ? NO_ORDERS : readOrders(text, this.#orders);
  }

  /** Changes the orders about an add-on, and returns them. */
  async order(addon: string, change: (order: GivenOrder) => GivenOrder): Promise<GivenOrder> {
    await makeFolder(this.#files, DOING);
    await using _claim = await claim(this.#orders);
    const orders = await this.readOrders();
    // The next pass binds new ones.
    const { addons, ...others } = orders.state === undefined ? orders : ordersFor(await this.read(), orders);
    const order = change(addons[addon] ?? {});
    await writeStateFile(this.#orders, encodeState({ ...others, addons: { ...addons, [addon]: order } }));
    await this.#ignoreFiles();
    return order;
  }

  /** `BUSY` while another process makes a pass from this folder. */
  async claim(): Promise<AsyncDisposable> {
    await makeFolder(this.#files, DOING);
    await this.#ignoreFiles();
    return claim(this.#state);
  }

  async #ignoreFiles(): Promise<void> {
    const isThere = (await readFound(this.#ignore, MAX_BYTES)) !== undefined;
    if (!isThere) await writeStateFile(this.#ignore, IGNORED);
  }

  /** Writes nothing if nothing has changed. */
  async write(state: FleetState): Promise<void> {
    const id = this.#id ?? randomBytes(8).toString('hex');
    const text = encodeState({ ...state, id });
    if (text !== this.#text) await writeStateFile(this.#state, text);
    this.#text = text;
    this.#id = id;
    if (!this.#isBound) await this.#bind(id);
    this.#isBound = true;
  }

  /** From now on, the orders count only together with this state. */
  async #bind(id: string): Promise<void> {
    if ((await readOwnFile(this.#orders, MAX_BYTES)) === undefined || (await this.readOrders()).state === id) return;
    await using _claim = await claim(this.#orders);
    const orders = ordersFor({ id }, await this.readOrders());
    await writeStateFile(this.#orders, encodeState({ ...orders, state: id }));
  }

  /** Reads the file of an entry with a hash from its place, or as it was when it was delivered: files change. Each is read once. */
  reader(files: ChannelFiles, { signal }: Pick<Context, 'signal'>): (entry: Entry) => Promise<Uint8Array> {
    const read = async (entry: Entry): Promise<Uint8Array> => {
      const copy = join(this.#files, entry.hash);
      const { file: location } = entry.place;
      const from = { kind: 'Channel', name: undefined, location, compat: 'native', entries: [] } as const;
      try {
        const content = await files.readManifest(from, entry, { signal });
        await writeStateFile(copy, content);
        return content;
      } catch (error) {
        const before = error instanceof CurlewError ? await readFound(copy, MAX_BYTES) : undefined;
        if (before === undefined || hexOf(digestOf(before)) !== entry.hash) throw error;
        return before;
      }
    };
    const known = new Map<string, Promise<Uint8Array>>();
    return async (entry) => {
      const content = known.get(entry.hash) ?? read(entry);
      known.set(entry.hash, content);
      return content;
    };
  }

  /** Deletes the files that no kept content has. */
  async sweep({ addons }: FleetState): Promise<void> {
    const entries = Object.values(addons).flatMap(({ kept: all }) => all.flatMap((one) => one.entries));
    const hashes = new Set(entries.map(({ hash }) => hash));
    for (const name of await readdir(this.#files)) {
      if (!hashes.has(name)) await rm(join(this.#files, name), { force: true });
    }
  }
}
