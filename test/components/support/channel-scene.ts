/** Channels and their manifests in a folder, and a real API server that they are applied to. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import type { ClientRequest } from 'node:http';
import { createServer, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { applyChannels, previewChannels, type AddonResult, type ChannelPass } from '../../../src/app/channel-apply.ts';
import type { Context } from '../../../src/core/context.ts';
import { accepted } from '../../support/api-client.ts';
import { kubeconfigText } from '../../support/kube-server.ts';
import { makeCertificate } from '../../support/tls.ts';
import { never, noReport } from '../../support/context.ts';
import { tree, type Tree } from '../../support/tree.ts';
import type { ApiServer } from './api-server.ts';
import type { ChannelApplyRequest } from '../../../src/requests/channel.ts';

export interface ChannelScene extends AsyncDisposable {
  readonly box: Tree;
  /** Namespace of the records and of all objects; it is this scene's own, so that scenes do not meet. */
  readonly namespace: string;
  readonly kubectl: (...args: readonly string[]) => Promise<string>;
  /** Writes a native channel with these entries, as YAML flow maps; the record's namespace is added. */
  readonly channel: (entries: readonly object[], name?: string) => Promise<string>;
  readonly write: (path: string, ...objects: readonly object[]) => Promise<void>;
  readonly apply: (request?: Partial<ChannelApplyRequest>) => Promise<ChannelPass>;
  readonly plan: (request?: Partial<ChannelApplyRequest>) => Promise<ChannelPass>;
  readonly context: Context;
  readonly request: ChannelApplyRequest;
  /** The annotation of an add-on; undefined: nothing is recorded. */
  readonly annotation: (addon: string) => Promise<Readonly<Record<string, unknown>> | undefined>;
}

let scenes = 0;

export async function channelScene(
  server: Pick<ApiServer, 'kubeconfig' | 'kubectl' | 'client'>,
): Promise<ChannelScene> {
  scenes += 1;
  const namespace = `scene-${process.pid}-${scenes}`;
  const box = await tree();
  const kubectl = async (...args: readonly string[]): Promise<string> => server.kubectl(args);
  accepted(await server.client.create('/api/v1/namespaces', { metadata: { name: namespace } }));
  const context: Context = { signal: never, report: noReport, env: { PATH: process.env['PATH'] }, cwd: box.path };
  const request: ChannelApplyRequest = { channels: ['channel.yaml'], kubeconfig: server.kubeconfig, timeout: 20_000 };
  return {
    box,
    namespace,
    kubectl: async (...args) => kubectl('-n', namespace, ...args),
    context,
    request,
    channel: async (entries, name = namespace) => {
      const addons = entries.map((entry) => ({ namespace, ...entry }));
      const file = { apiVersion: 'fleet.curlew.dev/v1alpha1', kind: 'Channel', metadata: { name }, spec: { addons } };
      await writeFile(box.at('channel.yaml'), JSON.stringify(file, undefined, 1));
      return box.at('channel.yaml');
    },
    write: async (path, ...objects) => {
      await writeFile(box.at(path), objects.map((object) => JSON.stringify(object, undefined, 1)).join('\n---\n'));
    },
    apply: async (given = {}) => applyChannels({ ...request, ...given }, context),
    plan: async (given = {}) => previewChannels({ ...request, ...given }, context),
    annotation: async (addon) => {
      const found = accepted(await server.client.get(`/api/v1/namespaces/${namespace}`)) as unknown as {
        readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
      };
      const text = found.metadata.annotations?.[`addons.k8s.io/${addon}`];
      return text === undefined ? undefined : (JSON.parse(text) as Readonly<Record<string, unknown>>);
    },
    [Symbol.asyncDispose]: async () => box[Symbol.asyncDispose](),
  };
}

/** What a pass says in one line for each add-on: `web install applied`. */
export function outcomes({ addons }: ChannelPass): readonly string[] {
  return addons.map(({ addon, action, state }) => `${addon} ${action} ${state}`);
}

/** What changed, or would: `+ ConfigMap ns/page`. */
export function changes({ objects }: Pick<AddonResult, 'objects'>, namespace: string): readonly string[] {
  const signs = { create: '+', change: '~', delete: '-' };
  return objects.map(({ object, change }) => `${signs[change]} ${object.replace(`${namespace}/`, '')}`);
}

export function configMap(name: string, namespace: string, data: Readonly<Record<string, string>> = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data };
}

/** Runs `work`, and counts the requests that this process makes meanwhile. */
export async function countRequests(work: () => Promise<unknown>): Promise<readonly string[]> {
  const requests: string[] = [];
  const note = (message: unknown): void => {
    const { request } = message as { readonly request: ClientRequest };
    requests.push(`${request.method} ${request.path}`);
  };
  subscribe('http.client.request.start', note);
  try {
    await work();
  } finally {
    unsubscribe('http.client.request.start', note);
  }
  return requests;
}

export interface Gateway extends AsyncDisposable {
  /** A kubeconfig that leads through it. */
  readonly kubeconfig: string;
}

/**
 * A proxy of an API server: `before` gets each request that writes, by its number from 0, before it is passed on; `after` when the
 * server has answered and the client has not heard of it.
 */
export async function startGateway(
  server: Pick<ApiServer, 'kubectl' | 'url'>,
  box: Tree,
  {
    before,
    after = () => undefined,
  }: { readonly before: (write: number) => void; readonly after?: (write: number) => void },
): Promise<Gateway> {
  const { key, cert, ca } = await makeCertificate();
  const conf = JSON.parse(await server.kubectl(['config', 'view', '--raw', '-o', 'json'])) as {
    readonly users: readonly [{ readonly user: object }];
  };
  let writes = 0;
  const gateway = createServer({ key, cert }, (incoming, outgoing) => {
    const number = incoming.method === 'GET' || incoming.url?.includes('dryRun=All') === true ? undefined : writes;
    if (number !== undefined) {
      writes += 1;
      before(number);
    }
    const { host: _host, ...headers } = incoming.headers;
    const to = new URL(incoming.url ?? '/', server.url);
    const forwarded = httpsRequest(to, { method: incoming.method, headers, rejectUnauthorized: false }, (answer) => {
      if (number !== undefined) after(number);
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    incoming.on('error', () => forwarded.destroy());
    outgoing.on('error', () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  gateway.listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  const { port } = gateway.address() as AddressInfo;
  const cluster = { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const kubeconfig = box.at(`gateway-${port}`);
  await writeFile(kubeconfig, kubeconfigText(`https://127.0.0.1:${port}`, conf.users[0].user, cluster));
  return {
    kubeconfig,
    [Symbol.asyncDispose]: async () => {
      gateway.closeAllConnections();
      gateway.close();
      await once(gateway, 'close');
    },
  };
}
