/** The objects of a kind as they are now: a list in pages, then each change. */
import * as v from 'valibot';
import { asError, CurlewError } from '../../core/errors.ts';
import { exactValue } from '../../core/json.ts';
import { Backoff } from '../../platform/limit/backoff.ts';
import { pause } from '../../platform/limit/repeat.ts';
import type { KubeApi } from './api.ts';
import { openCalls } from './call.ts';
import { listVersion, MAX_OBJECTS, readObject, type LiveObject, type Named } from './objects.ts';
import { collectionPath, withQuery, type Resource } from './resources.ts';

/** How long one request watches: at random, so that not all of them end together. A server sends a bookmark every minute. */
const WATCH_S = [300, 600] as const;
/** A connection without a byte for this time may be dead. */
const IDLE_MS = 150_000;
/** A connection that lasted this time ends the back-off. */
const STABLE_MS = 60_000;

interface WatchOptions<T> {
  readonly resource: Resource;
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly fieldSelector?: string;
  /** How long one request watches, in seconds. With it, each is followed by a list, in case that a change was lost. */
  readonly listEvery?: readonly [least: number, most: number];
  /** The kept part of an object: whole ones may be large. */
  readonly look: (object: LiveObject) => T;
  /** Called after each list, change and failure. */
  readonly onChange: () => void;
  readonly idleMs?: number;
  /** Default: 1 s to 5 min between attempts that fail. */
  readonly backoff?: Backoff;
}

interface Kept<T> {
  readonly uid: string;
  readonly version: string;
  readonly value: T;
}

const eventSchema = v.object({
  type: v.picklist(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']),
  object: v.looseObject({ code: v.optional(v.number()), message: v.optional(v.string(), '') }),
});

/** Objects by namespace and name. What a list or a connection that fails leaves out is not gone: it stays as it was. */
export class Watch<T> {
  readonly #api: KubeApi;
  readonly #options: WatchOptions<T>;
  readonly #doing: string;
  readonly #backoff: Backoff;
  #objects = new Map<string, Map<string, Kept<T>>>();
  #size = 0;
  #problem: string | undefined;

  constructor(api: KubeApi, options: WatchOptions<T>) {
    this.#api = api;
    this.#options = options;
    this.#doing = `watch ${options.resource.plural}`;
    this.#backoff = options.backoff ?? new Backoff();
    this.#problem = `${options.resource.plural} have not been listed yet`;
  }

  /** Why the objects may not be all, or be old; undefined if they are all. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** All objects, or those of a namespace. */
  values(namespace?: string): readonly T[] {
    const spaces = namespace === undefined ? [...this.#objects.values()] : [this.#objects.get(namespace)];
    return spaces.flatMap((space) => [...(space?.values() ?? [])].map(({ value }) => value));
  }

  get(named: Named): T | undefined {
    return this.#find(named)?.value;
  }

  /** Takes the object that a write has returned, which the watch may bring only later. A deleted object without finalizers is gone. */
  put(object: LiveObject): void {
    const { uid, resourceVersion: version, finalizers, deletionTimestamp } = object.metadata;
    if ((deletionTimestamp ?? undefined) !== undefined && finalizers.length === 0) {
      this.drop(object.metadata);
      return;
    }
    const known = this.#find(object.metadata);
    if (known !== undefined && known.uid === uid && isBefore(version, known.version)) return;
    if (known === undefined && this.#size >= MAX_OBJECTS) {
      throw new CurlewError('CLUSTER_FAILED', `cannot ${this.#doing}: there are more than ${MAX_OBJECTS}`);
    }
    this.#keep(object.metadata, { uid, version, value: this.#options.look(object) });
  }

  /** Drops a deleted object; another object of its name stays. */
  drop(gone: Named & { readonly uid: string }): void {
    if (this.#find(gone)?.uid !== gone.uid) return;
    this.#objects.get(gone.namespace ?? '')?.delete(gone.name);
    this.#size -= 1;
  }

  #find({ namespace = '', name }: Named): Kept<T> | undefined {
    return this.#objects.get(namespace)?.get(name);
  }

  #keep({ namespace = '', name }: Named, entry: Kept<T>): void {
    const space = this.#objects.get(namespace) ?? new Map<string, Kept<T>>();
    this.#objects.set(namespace, space);
    if (!space.has(name)) this.#size += 1;
    space.set(name, entry);
  }

  /** Until the signal aborts, whose reason it throws. */
  async run(signal: AbortSignal): Promise<never> {
    let version: string | undefined;
    for (;;) {
      let hasFailed = false;
      try {
        version ??= await this.#list(signal);
        const last = await this.#follow(version, signal);
        // A server that ends each watch at once would be asked without end.
        hasFailed = last === version;
        version = this.#options.listEvery === undefined ? last : undefined;
      } catch (error) {
        signal.throwIfAborted();
        version = undefined;
        hasFailed = true;
        // A list is needed, and until it is there what is known may be old.
        this.#problem = asError(error).message;
        this.#options.onChange();
      }
      if (hasFailed) await pause(this.#backoff.failed(), { signal });
    }
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { resource, namespace, fieldSelector, look, onChange } = this.#options;
    const keep = (object: LiveObject): readonly [Named, Kept<T>] => {
      const { namespace: space, name, uid, resourceVersion: version } = object.metadata;
      return [
        { namespace: space, name },
        { uid, version, value: look(object) },
      ];
    };
    const listed = await listVersion(
      openCalls(this.#api, { patienceMs: 0, signal }),
      resource,
      { namespace, fieldSelector },
      keep,
    );
    if (listed === undefined) {
      throw new CurlewError('CLUSTER_FAILED', `cannot ${this.#doing}: the server does not have this kind`, {
        hint: 'curlew hub manifests | kubectl apply -f - creates it',
      });
    }
    this.#objects = new Map();
    this.#size = 0;
    for (const one of listed.objects) this.#keep(...one);
    this.#problem = undefined;
    onChange();
    return listed.version;
  }

  /** Returns the last version that was seen. */
  async #follow(from: string, signal: AbortSignal): Promise<string> {
    const {
      resource,
      namespace,
      fieldSelector,
      idleMs = IDLE_MS,
      onChange,
      listEvery: [least, most] = WATCH_S,
    } = this.#options;
    const path = withQuery(collectionPath(resource, namespace), {
      watch: 'true',
      fieldSelector,
      resourceVersion: from,
      allowWatchBookmarks: 'true',
      timeoutSeconds: Math.round(least + (most - least) * Math.random()),
    });
    let version = from;
    const onLine = (line: string): void => {
      version = this.#event(line);
      this.#backoff.succeeded();
      onChange();
    };
    const began = performance.now();
    const problem = await this.#api.follow(path, { signal, idleMs, onLine });
    if (performance.now() - began >= STABLE_MS) this.#backoff.succeeded();
    if (problem === undefined) return version;
    throw new CurlewError('CLUSTER_FAILED', `cannot ${this.#doing}: ${problem.message}`, { hint: problem.hint });
  }

  /** Returns the version of the event. */
  #event(line: string): string {
    const read = v.safeParse(eventSchema, exactValue(line));
    if (!read.success) throw new CurlewError('CLUSTER_FAILED', 'the response has no event');
    const { type, object } = read.output;
    if (type === 'ERROR')
      throw new CurlewError('CLUSTER_FAILED', object.message || `the server ended it (${object.code ?? ''})`);
    const live = readObject(object, this.#doing);
    if (type === 'DELETED') this.drop(live.metadata);
    else if (type !== 'BOOKMARK') this.put(live);
    return live.metadata.resourceVersion;
  }
}

/** Versions are numbers of etcd. Of others, each is taken as newer. */
function isBefore(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && BigInt(a) < BigInt(b);
}
