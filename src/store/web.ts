/**
 * A web server, or a CDN in front of one, that hands out the objects of a store at their keys: a store that can only be
 * read, and not be listed.
 */
import { CurlewError, redact } from '../core/errors.ts';
import type { Http } from '../platform/http/http.ts';
import type { HttpRequest, ResponseHead } from '../platform/http/message.ts';
import { checkedKey, tooLarge } from './key.ts';
import type { GetOptions, ReadObject, Store, StoredObject } from './store.ts';
import { readWebRange } from './web-read.ts';

/** Objects whose size is remembered, so that reading them by range needs no further look. */
const REMEMBERED = 2000;

/** Servers answer so that refuse HEAD alone: an address that was signed for GET is one. */
const NO_HEAD: ReadonlySet<number> = new Set([400, 403, 405, 501]);

interface Web {
  readonly http: Http;
  /** With a slash at its end; user info in it goes to this server alone. */
  readonly base: string;
  /** For messages. */
  readonly address: string;
  /** What stands behind the key in every address: the query of an object's own address. */
  readonly query: string;
  readonly known: Map<string, StoredObject>;
}

/** True for the addresses that {@link createWebStore} takes. */
export function isWebAddress(address: string): boolean {
  return /^https?:\/\//i.test(address);
}

/** Sends nothing yet. Throws `USAGE` for an address that is none, or has a query or a fragment. */
export function createWebStore(address: string, http: Http): Store {
  const url = checkedUrl(address);
  if (url.search !== '' || url.hash !== '') {
    throw new CurlewError('USAGE', `open ${address}: the address of a store has neither a query nor a fragment`);
  }
  return webStore(http, url, '');
}

/** The store that one object's address lies in, and its key there; a query (a presigned address) stays with it. */
export function webObject(address: string, http: Http): { readonly store: Store; readonly key: string } {
  const url = checkedUrl(address);
  const path = url.pathname;
  const slash = path.lastIndexOf('/');
  const name = decodedName(path.slice(slash + 1), address);
  const { search } = url;
  url.pathname = path.slice(0, slash);
  url.search = '';
  url.hash = '';
  return { store: webStore(http, url, search), key: name };
}

function checkedUrl(address: string): URL {
  if (!isWebAddress(address) || !URL.canParse(address)) {
    throw new CurlewError('USAGE', `open ${address.slice(0, 200)}: not the address of a web server`);
  }
  return new URL(address);
}

function decodedName(text: string, address: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new CurlewError('USAGE', `open ${address.slice(0, 200)}: not a valid address`);
  }
}

function webStore(http: Http, url: URL, query: string): Store {
  const base = `${url.href.replace(/\/+$/, '')}/`;
  const address = redact(base).replace(/\/$/, '');
  const web: Web = { http, base, address, query, known: new Map() };
  const refused = (what: string) => async (): Promise<never> => {
    throw new CurlewError('UNSUPPORTED', `${address}: a web server ${what}`, {
      hint: 'name a folder, or s3://bucket/prefix',
    });
  };
  const unwritable = refused('can only be read from');
  const unlisted = refused('does not list what it has');
  return {
    address,
    place: { server: url.origin, base: address },
    head: async (key, { signal }) => look(web, checkedKey(key, address), signal),
    get: async (key, options) => get(web, checkedKey(key, address), options),
    read: async (key, options) => readSmall(web, checkedKey(key, address), options),
    put: unwritable,
    copy: unwritable,
    delete: unwritable,
    list: () => ({ [Symbol.asyncIterator]: () => ({ next: unlisted }) }),
  };
}

function requestOf({ base, address, query }: Web, key: string): HttpRequest {
  const path = key.split('/').map(encodeURIComponent).join('/');
  return { doing: `read ${key} in ${address}`, url: `${base}${path}${query}` };
}

/** Undefined when there is no such object. */
async function look(web: Web, key: string, signal: AbortSignal): Promise<StoredObject | undefined> {
  const { http, known } = web;
  const request: HttpRequest = { ...requestOf(web, key), method: 'HEAD' };
  const response = await http.small(request, { limit: 0, signal });
  known.delete(key);
  if (response.status === 404 || response.status === 410) return undefined;
  const found = NO_HEAD.has(response.status) ? await lookByGet(web, key, signal) : response;
  if (found?.status !== 200) throw http.failure(request, response, response.body);
  const { etag, 'last-modified': modified, 'content-length': length } = found.headers;
  if (length === undefined || !/^\d{1,15}$/.test(length)) {
    throw new CurlewError('FETCH_FAILED', `${request.doing}: the server does not say how long it is`);
  }
  const object = { key, size: Number(length), etag: etag ?? `${length} ${modified ?? ''}`, metadata: {} };
  if (known.size >= REMEMBERED) known.clear();
  known.set(key, object);
  return object;
}

/** Asks for one byte, and tells what HEAD would have told; undefined when that is refused, too. */
async function lookByGet(web: Web, key: string, signal: AbortSignal): Promise<ResponseHead | undefined> {
  const request: HttpRequest = { ...requestOf(web, key), headers: { range: 'bytes=0-0' } };
  const outcome = await web.http.exchange(request, { head: () => undefined, data: () => false }, { signal });
  if (outcome.kind === 'broken') throw outcome.error;
  const { head } = outcome;
  const [, total] = /^bytes 0-0\/(\d{1,15})$/.exec(head.headers['content-range']?.trim() ?? '') ?? [];
  if (head.status === 200) return head;
  return head.status === 206 && total !== undefined
    ? { ...head, status: 200, headers: { ...head.headers, 'content-length': total } }
    : undefined;
}

async function readSmall(
  web: Web,
  key: string,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<ReadObject | undefined> {
  const object = await look(web, key, signal);
  if (object === undefined) return undefined;
  if (object.size > limit) throw tooLarge(web.address, key, limit);
  const { body } = await get(web, key, { ifMatch: object.etag, signal });
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return { data: Buffer.concat(parts), object };
}

async function get(web: Web, key: string, options: GetOptions): ReturnType<Store['get']> {
  const { range, ifMatch, signal, allocate, partsOnly = false } = options;
  const known = web.known.get(key);
  const object = known !== undefined && known.etag === ifMatch ? known : await look(web, key, signal);
  const { doing, url } = requestOf(web, key);
  if (object === undefined) throw new CurlewError('NOT_FOUND', `${web.address}: there is no ${key}`);
  const conflict = (what: string): CurlewError => new CurlewError('STORE_CONFLICT', `${web.address}: ${key} ${what}`);
  if (ifMatch !== undefined && object.etag !== ifMatch) throw conflict('has changed meanwhile');
  const { offset, length } = range ?? { offset: 0, length: object.size };
  if (offset < 0 || length < 0 || offset + length > object.size) throw conflict(`ends before byte ${offset + length}`);
  const wanted = { doing, url, offset, length, size: object.size, etag: etagHeader(object), partsOnly };
  const changed = (): CurlewError => {
    web.known.delete(key);
    return conflict('has changed meanwhile');
  };
  return { ...object, body: readWebRange(web.http, wanted, { changed, allocate, signal }) };
}

/** An etag of ours, made of length and date, is none that a server could compare. */
function etagHeader({ etag }: StoredObject): string | undefined {
  return /^(?:W\/)?"/.test(etag) ? etag : undefined;
}
