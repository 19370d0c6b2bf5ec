/** Requests of tests to an API server, whichever it is: the real one or the one in this process. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { createSecureContext } from 'node:tls';
import { isMap, type Json, type JsonObject } from './api-server/fields.ts';

export interface ApiReply {
  readonly status: number;
  readonly body: JsonObject;
}

export interface ApiClient {
  readonly get: (path: string, accept?: string) => Promise<ApiReply>;
  readonly create: (path: string, object: object) => Promise<ApiReply>;
  readonly replace: (path: string, object: object) => Promise<ApiReply>;
  readonly remove: (path: string, options?: object) => Promise<ApiReply>;
  /** By a merge patch; `manager` owns the fields. */
  readonly merge: (path: string, change: object, manager?: string) => Promise<ApiReply>;
  readonly jsonPatch: (path: string, steps: readonly object[]) => Promise<ApiReply>;
  readonly apply: (path: string, object: object, manager: string, query?: string) => Promise<ApiReply>;
  /** The first events of a watch; it ends then. */
  readonly watch: (path: string, count: number) => Promise<readonly JsonObject[]>;
}

/** A client of the cluster in a kubeconfig in JSON. */
export function apiClient(kubeconfig: string): ApiClient {
  const conf = JSON.parse(kubeconfig) as {
    readonly clusters: readonly [{ readonly cluster: { readonly server: string } & Record<string, string> }];
    readonly users: readonly [{ readonly user: Readonly<Partial<Record<string, string>>> }];
  };
  const { server, 'certificate-authority-data': authority = '' } = conf.clusters[0].cluster;
  const { token, 'client-certificate-data': certificate, 'client-key-data': key = '' } = conf.users[0].user;
  const ca = Buffer.from(authority, 'base64');
  const own = certificate && { cert: Buffer.from(certificate, 'base64'), key: Buffer.from(key, 'base64') };
  // Most of what a request costs is a connection of its own.
  const agent = new Agent({ keepAlive: true, secureContext: createSecureContext({ ca, ...own }) });
  const bearer = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const open = async (
    method: string,
    path: string,
    { body, type = 'application/json', accept = 'application/json' }: Sent = {},
  ): Promise<IncomingMessage> => {
    const headers = { ...bearer, 'content-type': type, accept };
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const length = sent === undefined ? {} : { 'content-length': Buffer.byteLength(sent) };
    for (;;) {
      const request = httpsRequest(new URL(path, server), { method, headers: { ...headers, ...length }, agent });
      request.end(sent);
      try {
        const [response] = (await once(request, 'response')) as [IncomingMessage];
        return response;
      } catch (error) {
        // The server has closed the connection that it was kept open on.
        if (!request.reusedSocket) throw error;
      }
    }
  };
  const ask = async (method: string, path: string, sent: Sent = {}): Promise<ApiReply> => {
    const response = await open(method, path, sent);
    const answer = await text(response);
    // A path that is not served has no Status.
    const isJson = (response.headers['content-type'] ?? '').startsWith('application/json');
    return {
      status: response.statusCode ?? 0,
      body: isJson ? (JSON.parse(answer) as JsonObject) : { message: answer },
    };
  };
  return {
    get: async (path, accept) => ask('GET', path, accept === undefined ? {} : { accept }),
    create: async (path, body) => ask('POST', path, { body }),
    replace: async (path, body) => ask('PUT', path, { body }),
    remove: async (path, body) => ask('DELETE', path, body === undefined ? {} : { body }),
    merge: async (path, body, manager = 'jane') =>
      ask('PATCH', `${path}?fieldManager=${manager}`, { body, type: 'application/merge-patch+json' }),
    jsonPatch: async (path, body) => ask('PATCH', path, { body, type: 'application/json-patch+json' }),
    apply: async (path, body, manager, query = '') =>
      ask('PATCH', `${path}?fieldManager=${manager}${query}`, { body, type: 'application/apply-patch+yaml' }),
    watch: async (path, count) => {
      const response = await open('GET', path);
      const events: JsonObject[] = [];
      for await (const line of createInterface({ input: response })) {
        events.push(JSON.parse(line) as JsonObject);
        if (events.length >= count) break;
      }
      response.destroy();
      return events;
    },
  };
}

/** The body of a reply; one that refuses throws. */
export function accepted({ status, body }: ApiReply): JsonObject {
  if (status >= 300) throw new Error(`the API server answers ${status}: ${JSON.stringify(body)}`);
  return body;
}

interface Sent {
  readonly body?: object;
  readonly type?: string;
  readonly accept?: string;
}

/** The value at a path such as `metadata.labels.app`. */
export function at(body: Json | undefined, path: string): Json | undefined {
  return path.split('.').reduce<Json | undefined>((value, name) => {
    if (Array.isArray(value)) return (value as readonly Json[])[Number(name)];
    return isMap(value) ? value[name] : undefined;
  }, body);
}

/** The text at a path; empty if there is none. */
export function textAt(body: Json | undefined, path: string): string {
  const value = at(body, path);
  return typeof value === 'string' ? value : '';
}
