/**
 * An API server in this process: kinds, lists in pages, watches, server-side apply with owners of fields, dry runs, and
 * CustomResourceDefinitions. It has no controllers and no rights; `test/cluster/kube/api-behavior.ts` holds it to the real one.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { text } from 'node:stream/consumers';
import { kubeconfigText } from '../kube-server.ts';
import { usualCertificate, type TestCertificate } from '../tls.ts';
import { isMap, textOf, type JsonObject } from './fields.ts';
import { apiVersionOf, BUILT_IN, customKinds, DEFINITIONS, discoveryOf, type ServedKind } from './kinds.ts';
import {
  fieldSelector,
  labelSelector,
  metadataOf,
  StatusError,
  Store,
  type Change,
  type StoredObject,
} from './store.ts';
import { notFound, Writes, type PatchType, type Target, type WriteOptions } from './writes.ts';

export interface MemoryApiServer extends AsyncDisposable {
  readonly url: string;
  /** Text of a kubeconfig that leads to it. */
  readonly kubeconfig: string;
  /** Expires all lists and watches so far. */
  readonly compact: () => void;
  /** Returns what restores the objects as they are now, and ends all connections. */
  readonly backUp: () => () => void;
  /** Requests so far: `GET /api/v1/namespaces`. */
  readonly requests: readonly string[];
}

export interface MemoryApiOptions {
  /** Default: `v1.34.4` */
  readonly version?: string;
  readonly certificate?: TestCertificate;
  /** Gets each request before it is answered: `PATCH /api/v1/…`. What it throws, such as a {@link StatusError}, is the answer, and a promise is waited for. */
  readonly before?: (request: string, user: User) => unknown;
  /** What the server says of itself at `/metrics`. */
  readonly metrics?: string;
  /** Knows users by bootstrap tokens and client certificates, of any signer; default: all are administrators. */
  readonly users?: boolean;
  /** How far its clock is ahead. */
  readonly aheadMs?: number;
}

export interface User {
  readonly username: string;
  readonly groups: readonly string[];
}

interface Budget {
  readonly spec: { readonly selector: { readonly matchLabels: Readonly<Record<string, string>> } };
  readonly status: Readonly<Record<'disruptionsAllowed' | 'desiredHealthy' | 'currentHealthy', number>>;
}

const BUDGETS = BUILT_IN.find(({ kind }) => kind === 'PodDisruptionBudget') as ServedKind;
const ADMIN: User = { username: 'admin', groups: ['system:masters', 'system:authenticated'] };

export async function startMemoryApiServer(options: MemoryApiOptions = {}): Promise<MemoryApiServer> {
  const { key, cert, ca } = options.certificate ?? (await usualCertificate());
  const api = new Api(options);
  const clients = { requestCert: true, rejectUnauthorized: false };
  const server = createServer(
    { key, cert, ...(options.users === true && clients) },
    (request, response) => void api.handle(request, response),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cluster = { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  return {
    url,
    kubeconfig: kubeconfigText(url, { token: 'test-token' }, cluster),
    compact: () => api.store.compact(),
    backUp: () => {
      const restore = api.store.backUp();
      return () => {
        restore();
        server.closeAllConnections();
      };
    },
    requests: api.requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Clients take a watch without any data for dead. */
const BOOKMARK_MS = 60_000;
const FIRST_NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

class Api {
  readonly store = new Store();
  readonly requests: string[] = [];
  readonly #writes = new Writes(this.store);
  readonly #options: MemoryApiOptions;
  /** Lists that were begun, by the token of their next page. */
  readonly #pages = new Map<string, { readonly version: number; readonly rest: readonly StoredObject[] }>();

  constructor(options: MemoryApiOptions) {
    this.#options = options;
    const write = { manager: 'kube-apiserver', force: false, dryRun: false };
    for (const name of FIRST_NAMESPACES) {
      const target = { kind: this.#kind('', 'v1', 'namespaces'), namespace: '', name, subresource: '' };
      this.#writes.create(target, { metadata: { name } }, write);
    }
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push(`${request.method} ${request.url}`);
    response.setHeader('date', new Date(Date.now() + (this.#options.aheadMs ?? 0)).toUTCString());
    try {
      // Whole before the hook, which may kill the client: nobody would send the rest of the body.
      const body = await text(request);
      const user = this.#user(request);
      await this.#options.before?.(`${request.method} ${request.url}`, user);
      const url = new URL(request.url ?? '/', 'https://server');
      const fixed = this.#fixed(url.pathname);
      if (url.pathname === '/metrics') response.end(this.#options.metrics);
      else if (fixed !== undefined) send(response, 200, fixed);
      else this.#respond(request, response, { url, body, user });
    } catch (error) {
      const failure =
        error instanceof StatusError
          ? error
          : new StatusError(500, 'InternalError', error instanceof Error ? error.message : '');
      if (!response.headersSent) send(response, failure.code, failure.body);
    }
  }

  #user({ headers, socket }: IncomingMessage): User {
    if (this.#options.users !== true) return ADMIN;
    const token = /^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1];
    if (token === 'test-token') return ADMIN;
    const user = token === undefined ? certified(socket as TLSSocket) : this.#bootstrapped(token);
    if (user === undefined) throw new StatusError(401, 'Unauthorized', 'Unauthorized');
    return user;
  }

  #bootstrapped(token: string): User | undefined {
    const [id = '', secret] = token.split('.');
    const data = this.store.get(this.#kind('', 'v1', 'secrets'), 'kube-system', `bootstrap-token-${id}`)?.value['data'];
    const field = (name: string): string => Buffer.from(isMap(data) ? textOf(data[name]) : '', 'base64').toString();
    const isValid = field('token-secret') === secret && Date.parse(field('expiration')) > Date.now();
    if (!isValid || field('usage-bootstrap-authentication') !== 'true') return undefined;
    const extra = field('auth-extra-groups')
      .split(',')
      .filter((group) => group !== '');
    return { username: `system:bootstrap:${id}`, groups: [...extra, 'system:bootstrappers', 'system:authenticated'] };
  }

  #customKinds(): readonly ServedKind[] {
    return this.store.list(DEFINITIONS, '').flatMap(({ value }) => customKinds(value));
  }

  #kind(group: string, version: string, plural: string): ServedKind {
    const isIt = (one: ServedKind): boolean => one.group === group && one.version === version && one.plural === plural;
    const kind = BUILT_IN.find(isIt) ?? this.#customKinds().find(isIt);
    if (kind === undefined) throw new StatusError(404, 'NotFound', 'the server could not find the requested resource');
    return kind;
  }

  #fixed(path: string): object | undefined {
    const version = this.#options.version ?? 'v1.34.4';
    const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
    if (path === '/version') return { major, minor, gitVersion: version, platform: 'linux/amd64' };
    if (path === '/api' || path === '/apis') return discoveryOf([...BUILT_IN, ...this.#customKinds()], path === '/api');
    return undefined;
  }

  #target(path: string): Target {
    const [root, ...parts] = path.split('/').slice(1).map(decodeURIComponent);
    const [group = '', version = ''] = root === 'api' ? ['', ...parts.splice(0, 1)] : parts.splice(0, 2);
    // Also the path of a namespace itself.
    const isIn = parts[0] === 'namespaces' && parts.length > 2 && parts[2] !== 'status' && parts[2] !== 'finalize';
    const namespace = isIn ? (parts.splice(0, 2)[1] ?? '') : '';
    const [plural = '', name = '', subresource = ''] = parts;
    return { kind: this.#kind(group, version, plural), namespace, name, subresource };
  }

  #respond(
    { method, headers }: IncomingMessage,
    response: ServerResponse,
    { url, body, user }: { readonly url: URL; readonly body: string; readonly user: User },
  ): void {
    const target = this.#target(url.pathname);
    const query = url.searchParams;
    const options = writeOptions(query, headers['user-agent'] ?? '');
    const onlyMetadata = (headers.accept ?? '').includes('as=PartialObjectMetadata');
    const document = body === '' ? {} : parse(body);
    if (method === 'GET' && target.name !== '') {
      const stored = this.store.get(target.kind, target.namespace, target.name);
      if (stored === undefined) throw notFound(target);
      return send(response, 200, onlyMetadata ? partial(stored.value) : stored.value);
    }
    if (method === 'GET' && query.get('watch') === 'true')
      return this.#watch(target, query, { response, onlyMetadata });
    if (method === 'GET') return send(response, 200, this.#list(target, query, onlyMetadata));
    if (method === 'POST' && target.subresource === 'eviction') {
      this.#requireBudgets(target);
      this.#writes.delete({ ...target, subresource: '' }, (document['deleteOptions'] ?? {}) as JsonObject, options);
      return send(response, 201, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
    }
    if (method === 'POST')
      return send(response, 201, this.#writes.create(target, signedBy(target, document, user), options));
    if (method === 'PUT') return send(response, 200, this.#writes.replace(target, document, options));
    if (method === 'DELETE') return send(response, 200, this.#writes.delete(target, document, options));
    const isNew = this.store.get(target.kind, target.namespace, target.name) === undefined;
    const type = headers['content-type'] ?? '';
    const value = type.startsWith('application/apply-patch')
      ? this.#writes.apply(target, document, options)
      : this.#writes.patch(target, patchType(type), document, options);
    send(response, isNew ? 201 : 200, value);
  }

  /** Pods that run are evicted as budgets allow. */
  #requireBudgets({ kind, namespace, name }: Target): void {
    const pod = this.store.get(kind, namespace, name)?.value ?? {};
    const { labels } = metadataOf(pod);
    if (!isMap(pod['status']) || pod['status']['phase'] !== 'Running') return;
    for (const { value, ...budget } of this.store.list(BUDGETS, namespace)) {
      const { spec, status } = value as unknown as Budget;
      const wanted = Object.entries(spec.selector.matchLabels);
      if (!wanted.every(([key, text]) => isMap(labels) && labels[key] === text)) continue;
      const { disruptionsAllowed, desiredHealthy, currentHealthy } = status;
      if (disruptionsAllowed > 0) continue;
      const message = `The disruption budget ${budget.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
      const text = "Cannot evict pod as it would violate the pod's disruption budget.";
      throw new StatusError(429, 'TooManyRequests', text, { causes: [{ reason: 'DisruptionBudget', message }] });
    }
  }

  #chosen({ kind, namespace }: Target, query: URLSearchParams): (object: StoredObject) => boolean {
    const labels = labelSelector(query.get('labelSelector') ?? '');
    const hasFields = fieldSelector(query.get('fieldSelector') ?? '');
    const isOf = (one: StoredObject): boolean => one.kind.group === kind.group && one.kind.plural === kind.plural;
    return (one) => isOf(one) && (namespace === '' || one.namespace === namespace) && labels(one) && hasFields(one);
  }

  #list(target: Target, query: URLSearchParams, onlyMetadata: boolean): object {
    const token = query.get('continue') ?? '';
    const begun = this.#pages.get(token);
    if (token !== '') this.store.requireVersion(begun?.version ?? 0);
    const version = begun?.version ?? this.store.version;
    const all = begun?.rest ?? this.store.list(target.kind, target.namespace).filter(this.#chosen(target, query));
    const limit = Number(query.get('limit') ?? 0);
    const items = limit === 0 ? all : all.slice(0, limit);
    const rest = all.slice(items.length);
    const next = rest.length === 0 ? '' : `${version}-${this.#pages.size}`;
    if (next !== '') this.#pages.set(next, { version, rest });
    const remaining = rest.length === 0 ? {} : { continue: next, remainingItemCount: rest.length };
    const head = onlyMetadata
      ? { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' }
      : { kind: `${target.kind.kind}List`, apiVersion: apiVersionOf(target.kind) };
    const shown = items.map(({ value: { kind: _kind, apiVersion: _version, ...item } }) =>
      onlyMetadata ? partial(item) : item,
    );
    return { ...head, metadata: { resourceVersion: String(version), ...remaining }, items: shown };
  }

  #watch(
    target: Target,
    query: URLSearchParams,
    { response, onlyMetadata }: { readonly response: ServerResponse; readonly onlyMetadata: boolean },
  ): void {
    const isChosen = this.#chosen(target, query);
    let seen = Number(query.get('resourceVersion'));
    this.store.requireVersion(seen);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const write = (type: string, object: JsonObject): void =>
      void response.write(`${JSON.stringify({ type, object })}\n`);
    const flush = (): void => {
      for (const change of this.store.changesAfter(seen)) {
        seen = change.version;
        const type = seenAs(change, isChosen);
        if (type !== undefined) write(type, onlyMetadata ? partial(change.object.value) : change.object.value);
      }
    };
    const stop = this.store.onChange(flush);
    const seconds = Number(query.get('timeoutSeconds') ?? 1800);
    const mark = (): void => {
      if (query.get('allowWatchBookmarks') === 'true')
        write('BOOKMARK', { kind: target.kind.kind, metadata: { resourceVersion: String(seen) } });
    };
    const marks = setInterval(mark, BOOKMARK_MS);
    const end = (): void => {
      stop();
      clearInterval(marks);
      clearTimeout(timer);
    };
    const timer = setTimeout(() => {
      mark();
      end();
      response.end();
    }, seconds * 1000);
    response.on('close', end);
    flush();
  }
}

/** How a watch with selectors sees a change; undefined: not at all. */
function seenAs(
  { type, object, before }: Change,
  isChosen: (object: StoredObject) => boolean,
): Change['type'] | undefined {
  const [was, is] = [before !== undefined && isChosen(before), type !== 'DELETED' && isChosen(object)];
  if (was && is) return 'MODIFIED';
  if (was) return 'DELETED';
  return is ? 'ADDED' : undefined;
}

function certified(socket: TLSSocket): User | undefined {
  const { CN, O } = socket.getPeerCertificate().subject ?? {};
  if (CN === undefined) return undefined;
  return { username: [CN].flat().join(), groups: [O ?? [], 'system:authenticated'].flat() };
}

/** The server says itself who has asked for a certificate. */
function signedBy({ kind }: Target, document: JsonObject, { username, groups }: User): JsonObject {
  if (kind.kind !== 'CertificateSigningRequest') return document;
  const spec = isMap(document['spec']) ? document['spec'] : {};
  return { ...document, spec: { ...spec, username, groups } };
}

function writeOptions(query: URLSearchParams, agent: string): WriteOptions {
  const manager = query.get('fieldManager') ?? agent.split('/')[0] ?? '';
  return {
    manager: manager === '' ? 'unknown' : manager,
    force: query.get('force') === 'true',
    dryRun: query.get('dryRun') === 'All',
  };
}

function patchType(contentType: string): PatchType {
  if (contentType.startsWith('application/json-patch')) return 'json';
  if (contentType.startsWith('application/merge-patch')) return 'merge';
  if (contentType.startsWith('application/strategic-merge-patch')) return 'strategic';
  throw new StatusError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - ${contentType}`,
  );
}

function parse(body: string): JsonObject {
  try {
    return JSON.parse(body) as JsonObject;
  } catch {
    throw new StatusError(400, 'BadRequest', 'the object provided is unrecognized');
  }
}

function partial(value: JsonObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: metadataOf(value) };
}

function send(response: ServerResponse, status: number, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(bytes);
}
