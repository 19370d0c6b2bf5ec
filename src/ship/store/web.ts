/**
 * A web server, or a CDN, that serves the objects of a store at their keys: a read-only store without listings.
 */
import { buffer } from 'node:stream/consumers';
import type { Bytes } from '../../core/bytes.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { download, type DownloadRequest } from '../../platform/http/download.ts';
import { secretsOf, serverMessage } from '../../platform/http/failure.ts';
import type { Http, SmallResponse } from '../../platform/http/http.ts';
import type { HttpRequest, Sink } from '../../platform/http/message.ts';
import { pulled } from '../../platform/limit/pulled.ts';
import { checkedKey } from './key.ts';
import { changed, missing, rangeIn, tooLarge } from './refusals.ts';
import type { GetOptions, ReadObject, Store, StoredObject } from './store.ts';

/** Number of objects whose size is cached, so that range reads need no HEAD request. */
const CACHE_SIZE = 2000;

/** The server reports the length of an object neither to HEAD nor to a range request: it can be read only in one stream. */
export class NoLength extends CurlewError {
  readonly http: Http;
  readonly url: string;
  constructor(http: Http, { doing, url }: HttpRequest) {
    const hint = 'use a server that sends the length of its files';
    super('FETCH_FAILED', `cannot ${doing}: the response has no Content-Length`, { hint });
    this.http = http;
    this.url = url;
  }
}

/** Bytes of a refusal that are read. */
const REFUSAL_LIMIT = 8192;

/** Some servers refuse only HEAD, such as for an address that is signed for GET; what others refuse, only GET gives a reason for. */
function asksAgain(status: number): boolean {
  return (status >= 400 && status < 500) || status === 501;
}

function isMissing({ status }: SmallResponse): boolean {
  return status === 404 || status === 410;
}

interface Web {
  readonly http: Http;
  /** With a trailing slash; its user info is sent to this server only. */
  readonly base: string;
  /** For messages. */
  readonly address: string;
  /** Query string for every request: that of a presigned address. */
  readonly query: string;
  readonly known: Map<string, StoredObject>;
}

/** True for the addresses that {@link createWebStore} takes. */
export function isWebAddress(address: string): boolean {
  return /^https?:\/\//i.test(address);
}

/** True for an address that ends like that of a package or bundle. */
export function isArchiveName(address: string): boolean {
  return /\.(?:tar\.gz|tgz)$/i.test(address);
}

/** What is done with the address of a package or bundle where that of a store is expected. */
export function archiveHint(address: string): string {
  return `it is the address of a file: curlew pull ${address} downloads it, and curlew install --bundle FILE installs it`;
}

/** A hint with a command that writes to a store. What a web server serves is written at another address, which its publisher knows. */
export function writingHint(address: string, hint: (store: string) => string): string {
  if (!isWebAddress(address)) return hint(address);
  return `${hint('STORE')}, where STORE is the folder or the S3 address that the web server serves`;
}

/** Creates a store without sending a request. Throws `USAGE` for an invalid address, or one with a query or fragment. */
export function createWebStore(address: string, http: Http): Store {
  const url = checkedUrl(address);
  if (url.search !== '' || url.hash !== '') {
    throw new CurlewError('USAGE', `cannot open ${address}: the address of a store must not have a query or fragment`);
  }
  return webStore(http, url, '');
}

/** The store and key of one object's address. The query of a presigned address is kept. */
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
    throw new CurlewError('USAGE', `cannot open ${address.slice(0, 200)}: not the URL of a web server`);
  }
  return new URL(address);
}

function decodedName(text: string, address: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new CurlewError('USAGE', `cannot open ${address.slice(0, 200)}: not a valid URL`);
  }
}

function webStore(http: Http, url: URL, query: string): Store {
  const base = `${url.href.replace(/\/+$/, '')}/`;
  const address = redact(base).replace(/\/$/, '');
  const web: Web = { http, base, address, query, known: new Map() };
  const refused = (what: string) => async (): Promise<never> => {
    throw new CurlewError('UNSUPPORTED', `${address}: a web server ${what}`, {
      hint: 'specify a folder, or s3://bucket/prefix',
    });
  };
  const unwritable = refused('is a read-only store');
  const unlisted = refused('cannot list its objects');
  return {
    address,
    place: { server: url.origin, base: address },
    head: async (key, { signal }) => look(web, checkedKey(key, address), signal),
    whyMissing: async (key, { signal }) => {
      const answer = await lookByGet(web, checkedKey(key, address), signal);
      return isMissing(answer) ? serverMessage(answer, answer.body, secretsOf(requestOf(web, key))) : undefined;
    },
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

/** Undefined if the object does not exist. */
async function look(web: Web, key: string, signal: AbortSignal): Promise<StoredObject | undefined> {
  const { http, known } = web;
  const request: HttpRequest = { ...requestOf(web, key), method: 'HEAD' };
  const response = await http.small(request, { limit: 0, signal });
  known.delete(key);
  if (isMissing(response)) return undefined;
  const isSilent = response.status === 200 && response.headers['content-length'] === undefined;
  const answer = isSilent || asksAgain(response.status) ? await lookByGet(web, key, signal) : response;
  if (isMissing(answer)) return undefined;
  if (answer.status !== 200) throw http.failure(request, answer, answer.body);
  const { etag, 'last-modified': modified, 'content-length': length } = answer.headers;
  if (length === undefined || !/^\d{1,15}$/.test(length)) throw new NoLength(http, request);
  const object = { key, size: Number(length), etag: etag ?? `${length} ${modified ?? ''}`, metadata: {} };
  if (known.size >= CACHE_SIZE) known.clear();
  known.set(key, object);
  return object;
}

/** Requests one byte: the head that HEAD would return, or a refusal with the beginning of its body. */
async function lookByGet(web: Web, key: string, signal: AbortSignal): Promise<SmallResponse> {
  const request: HttpRequest = { ...requestOf(web, key), headers: { range: 'bytes=0-0' } };
  let isRefused = false;
  let body = Buffer.alloc(0);
  const data = (chunk: Uint8Array): false | undefined => {
    if (isRefused) body = Buffer.concat([body, chunk.subarray(0, REFUSAL_LIMIT - body.byteLength)]);
    return isRefused && body.byteLength < REFUSAL_LIMIT ? undefined : false;
  };
  const sink: Sink = {
    head: ({ status }) => {
      isRefused = status >= 300;
    },
    data,
  };
  const outcome = await web.http.exchange(request, sink, { signal });
  if (outcome.kind === 'broken') throw outcome.error;
  const { head } = outcome;
  if (head.status !== 206) return { ...head, body };
  const [, total] = /^bytes 0-0\/(\d{1,15})$/.exec(head.headers['content-range']?.trim() ?? '') ?? [];
  const { 'content-length': _ofPart, ...headers } = head.headers;
  return {
    ...head,
    body,
    status: 200,
    headers: total === undefined ? headers : { ...headers, 'content-length': total },
  };
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
  return { data: await buffer(body), object };
}

async function get(web: Web, key: string, options: GetOptions): ReturnType<Store['get']> {
  const { range, ifMatch, signal, partsOnly = false, verified = false } = options;
  const known = web.known.get(key);
  const isKnown = known !== undefined && (verified || known.etag === ifMatch);
  const object = isKnown ? known : await look(web, key, signal);
  const { doing, url } = requestOf(web, key);
  if (object === undefined) throw missing(web.address, key);
  if (ifMatch !== undefined && object.etag !== ifMatch) throw changed(web.address, key);
  const { offset, length } = rangeIn(web.address, object, range);
  const request = {
    doing,
    url,
    from: offset,
    until: offset + length,
    expectedSize: object.size,
    expectedEtag: verified ? undefined : etagHeader(object),
    immutable: verified,
    partsOnly,
    restart: async () => {
      web.known.delete(key);
      throw changed(web.address, key);
    },
  };
  return { ...object, body: readWebRange(web.http, request, options) };
}

/** The server's etag; undefined for curlew's own, made of length and date, which a server does not know. */
function etagHeader({ etag }: StoredObject): string | undefined {
  return /^(?:W\/)?"/.test(etag) ? etag : undefined;
}

/**
 * The bytes of a download in the reader's memory. Resumes if the connection breaks. Sends no request before the first chunk is
 * requested.
 */
async function* readWebRange(
  http: Http,
  request: Omit<DownloadRequest, 'write'>,
  { allocate = (bytes) => Buffer.allocUnsafeSlow(bytes), signal }: GetOptions,
): Bytes {
  if (request.from === request.until) return;
  const chunks = pulled(async (write, context) => download(http, { ...request, write }, context), { signal });
  for await (const chunk of chunks) {
    for (let done = 0; done < chunk.byteLength;) {
      const copy = allocate(chunk.byteLength - done);
      copy.set(chunk.subarray(done, done + copy.byteLength));
      done += copy.byteLength;
      yield copy;
    }
  }
}
