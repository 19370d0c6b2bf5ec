/** A hub and the cluster of an agent, as API servers of the tests, and a web server with contents and their signatures. */
import { setMaxListeners } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentFolder } from '../../src/fleet/agent/folder.ts';
import { runLoop, type Packages } from '../../src/fleet/agent/run/loop.ts';
import type { AgentRunRequest } from '../../src/requests/agent.ts';
import type { Context } from '../../src/core/context.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { digestOf } from '../../src/core/digest.ts';
import { makeKeyPair, publicPart, readPrivateKey, type TrustedKey } from '../../src/formats/signing/keys.ts';
import { signText } from '../../src/formats/signing/signature.ts';
import type { HubKubeconfig } from '../../src/fleet/hub/kubeconfig.ts';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { openApi, type KubeApi } from '../../src/cluster/kube/api.ts';
import { apiClient, textAt, type ApiClient } from './api-client.ts';
import type { JsonObject } from './api-server/fields.ts';
import { startMemoryApiServer, type MemoryApiServer } from './api-server/server.ts';
import { startHelm, type HelmStandIn } from './helm-stand-in.ts';
import { hubCluster, hubClusterAddon } from './hub-objects.ts';
import { eventually } from './hub-scene.ts';
import { usualCertificate } from './tls.ts';
import { tree, type Tree } from './tree.ts';
import { startServer, type WebServer } from './web-server.ts';

const HUB = '0b9b6ae2-5a35-4e9a-9d4b-8e5f7a1c2d3e';
const ROOT = '/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-oslo';
const certificate = await usualCertificate();
const key = readPrivateKey(makeKeyPair(undefined).privateKey, 'pinned', undefined);
const stranger = readPrivateKey(makeKeyPair(undefined).privateKey, 'other', undefined);

export interface RunningAgent {
  readonly notes: readonly string[];
  /** Settles when it has ended. */
  readonly ended: Promise<void>;
  /** Ends it, as a signal does. */
  readonly stop: () => Promise<void>;
}

export interface AgentScene extends AsyncDisposable {
  /** Identifier of the hub. */
  readonly id: string;
  readonly box: Tree;
  readonly hub: ApiClient;
  readonly here: ApiClient;
  readonly helm: HelmStandIn;
  /** Requests to the hub so far. */
  readonly requests: readonly string[];
  /** Returns what restores the hub as it is now. */
  readonly backUp: () => () => void;
  /** Before each request to the hub, to the cluster of the agent, and to the web server: what it throws is the answer of the first two. */
  readonly before: (
    hook: ((request: string) => void) | undefined,
    hereToo?: (request: string) => void,
    filesToo?: (request: string) => void,
  ) => void;
  /** Registers the folder `site`, for agents that are processes of their own: `--root site`. */
  readonly register: (keys?: readonly TrustedKey[]) => Promise<void>;
  readonly start: (
    options?: Partial<AgentRunRequest> & {
      readonly allowUnsigned?: boolean;
      readonly packages?: Packages;
      /** Path of its executable. */
      readonly program?: string;
    },
  ) => Promise<RunningAgent>;
  /** A manifest of a ConfigMap with this version, or of other objects, at an address, signed by the pinned key; its source. */
  readonly manifest: (
    version: string,
    options?: { readonly by?: 'stranger' | 'none'; readonly objects?: readonly object[] },
  ) => object;
  /** The archive of a chart with the ConfigMap of {@link manifest}, signed by the pinned key; its source. */
  readonly chart: (version: string) => object;
  /** Lets nothing be read from the web server any more. */
  readonly cutFiles: () => void;
  /** The hub writes a ClusterAddon of this cluster, or changes its spec. */
  readonly order: (spec: object, name?: string) => Promise<void>;
  readonly drop: (name?: string) => Promise<void>;
  readonly status: (name?: string) => Promise<JsonObject>;
  /** Waits until an add-on is reported so: `2 Succeeded`, or `2 Failed Unsigned`. */
  readonly becomes: (expected: string, name?: string) => Promise<void>;
  readonly cluster: () => Promise<JsonObject>;
  /** The version of the ConfigMap in the cluster; `-` if it is not there. */
  readonly version: () => Promise<string>;
}

const NO_PACKAGES: Packages = {
  has: async () => Promise.resolve(false),
  install: async () => Promise.reject(new CurlewError('UNSUPPORTED', 'no packages in this test')),
  remove: async () => Promise.resolve(),
  health: async () => Promise.resolve(undefined),
};

function pageOf(version: string): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page', namespace: 'default' }, data: { version } };
}

/** `aheadMs`: how far the clock of the hub is ahead. */
export async function openAgentScene({ aheadMs = 0 }: { readonly aheadMs?: number } = {}): Promise<AgentScene> {
  const box = await tree();
  let before: ((request: string) => void) | undefined;
  let beforeHere: ((request: string) => void) | undefined;
  let beforeFile: ((request: string) => void) | undefined;
  const servers: MemoryApiServer[] = [];
  const start = async (
    name: string,
    hook: (request: string) => void,
    options: { readonly aheadMs?: number } = {},
  ): Promise<MemoryApiServer> => {
    const server = await startMemoryApiServer({ certificate, before: hook, ...options });
    await writeFile(box.at(`${name}.conf`), server.kubeconfig);
    servers.push(server);
    return server;
  };
  const hubServer = await start('hub', (request) => before?.(request), { aheadMs });
  const hereServer = await start('here', (request) => beforeHere?.(request));
  const [hub, here] = [apiClient(hubServer.kubeconfig), apiClient(hereServer.kubeconfig)];
  const helm = await startHelm(here, box);
  const files = new Map<string, string>();
  let isCut = false;
  const web: WebServer = await startServer(
    ({ method, path }) => {
      beforeFile?.(`${method} ${path}`);
      const body = isCut ? undefined : files.get(path);
      return body === undefined ? { status: isCut ? 503 : 404 } : { status: 200, body };
    },
    { tls: certificate },
  );
  await writeFile(box.at('ca.pem'), certificate.ca);
  for (const object of hubManifests()) {
    const { kind } = object as { readonly kind: string };
    if (kind === 'CustomResourceDefinition')
      await hub.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', object);
  }
  await hub.create('/api/v1/namespaces', { metadata: { name: 'fleet-oslo' } });
  await hub.create(`${ROOT}/clusters`, hubCluster('oslo'));
  await hub.create('/apis/coordination.k8s.io/v1/namespaces/fleet-oslo/leases', {
    metadata: { name: 'curlew-agent' },
    spec: {},
  });
  const open = async (name: string): Promise<KubeApi> => {
    const api = await openApi({ env: { KUBECONFIG: box.at(`${name}.conf`) } });
    if (api === undefined) throw new Error('no kubeconfig');
    return api;
  };
  const running = new Set<RunningAgent>();
  const status = async (name = 'web'): Promise<JsonObject> => {
    const { body } = await hub.get(`${ROOT}/clusteraddons/${name}`);
    return (body['status'] ?? {}) as JsonObject;
  };
  return {
    id: HUB,
    box,
    hub,
    here,
    helm,
    status,
    requests: hubServer.requests,
    backUp: hubServer.backUp,
    before: (hook, hereToo, filesToo) => ([before, beforeHere, beforeFile] = [hook, hereToo, filesToo]),
    register: async (keys = [publicPart(key, 'pinned')]) => {
      const folder = new AgentFolder(box.at('site'));
      await using _claim = await folder.claim();
      const { clusters, users } = JSON.parse(hubServer.kubeconfig) as {
        readonly clusters: readonly [{ readonly cluster: HubKubeconfig['hub'] }];
        readonly users: readonly [{ readonly user: HubKubeconfig['user'] }];
      };
      await folder.writeKubeconfig({ hub: clusters[0].cluster, user: users[0].user });
      await folder.writeSettings({ cluster: 'oslo', hub: HUB, keys, allowUnsigned: false });
    },
    start: async ({ allowUnsigned = false, packages = NO_PACKAGES, program, ...request } = {}) => {
      const controller = new AbortController();
      setMaxListeners(0, controller.signal);
      const notes: string[] = [];
      const context: Context = {
        signal: controller.signal,
        report: (event) => void (event.type === 'note' && notes.push(event.text)),
        env: { PATH: process.env['PATH'] },
        cwd: box.path,
        ...(program !== undefined && {
          program: () => ({ command: [program], files: [program], executable: program }),
        }),
      };
      const ended = runLoop({
        request: {
          kubeconfig: box.at('here.conf'),
          delay: 0,
          wait: 5000,
          caFile: box.at('ca.pem'),
          helm: helm.program,
          ...request,
        },
        context,
        cluster: 'oslo',
        hub: HUB,
        keys: [publicPart(key, 'pinned')],
        allowUnsigned,
        folder: join(box.path, 'agent'),
        hubApi: await open('hub'),
        api: await open('here'),
        packages,
        certificates: {
          bring: async () => Promise.resolve({ isHeld: false }),
          remove: async () => Promise.resolve(),
          renew: async () => Promise.resolve({ problem: undefined }),
        },
        renew: async () => Promise.resolve(),
      }).then(
        () => undefined,
        (error: unknown) => {
          if (!controller.signal.aborted) notes.push(`ended: ${String(error)}`);
        },
      );
      const one: RunningAgent = {
        notes,
        ended,
        stop: async () => {
          controller.abort(new Error('stopped'));
          running.delete(one);
          await ended;
        },
      };
      running.add(one);
      return one;
    },
    manifest: (version, { by, objects = [pageOf(version)] } = {}) => {
      const text = objects.map((one) => JSON.stringify(one)).join('\n---\n');
      const path = `/${version}.yaml`;
      files.set(path, text);
      if (by !== 'none')
        files.set(`${path}.sigstore.json`, signText(Buffer.from(text), by === 'stranger' ? stranger : key));
      return { manifest: `${web.url}${path}`, hash: digestOf(text) };
    },
    chart: (version) => {
      const text = JSON.stringify([pageOf(version)]);
      const path = `/web-${version}.tgz`;
      files.set(path, text);
      files.set(`${path}.sigstore.json`, signText(Buffer.from(text), key));
      return { chart: { package: `${web.url}${path}`, version, namespace: 'default' }, hash: digestOf(text) };
    },
    cutFiles: () => (isCut = true),
    order: async (spec, name = 'web') => {
      const { status: found } = await hub.get(`${ROOT}/clusteraddons/${name}`);
      const identity = `addon:kube-system/${name}`;
      const object = hubClusterAddon(name, 'oslo', { hub: HUB, identity, ...spec }) as { readonly spec: object };
      const { body, status: code } =
        found === 404
          ? await hub.create(`${ROOT}/clusteraddons`, object)
          : await hub.jsonPatch(`${ROOT}/clusteraddons/${name}`, [
              { op: 'replace', path: '/spec', value: object.spec },
            ]);
      if (code >= 300) throw new Error(textAt(body, 'message'));
    },
    drop: async (name = 'web') => void (await hub.remove(`${ROOT}/clusteraddons/${name}`)),
    becomes: async (expected, name) => {
      let last = '';
      const look = async (): Promise<boolean> => {
        const { applied, state, reason } = (await status(name)) as unknown as {
          applied?: { revision: number };
          state?: string;
          reason?: string;
        };
        last = [applied?.revision, state, reason].filter((one) => one !== undefined).join(' ');
        return last === expected;
      };
      await eventually(look).catch((error: unknown) => {
        throw new Error(`it is ${last}`, { cause: error });
      });
    },
    cluster: async () => ((await hub.get(`${ROOT}/clusters/oslo`)).body['status'] ?? {}) as JsonObject,
    version: async () =>
      textAt((await here.get('/api/v1/namespaces/default/configmaps/page')).body, 'data.version') || '-',
    [Symbol.asyncDispose]: async () => {
      for (const one of running) await one.stop();
      await helm[Symbol.asyncDispose]();
      await web[Symbol.asyncDispose]();
      for (const server of servers) await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}
