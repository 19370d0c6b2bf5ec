/** A hub with an add-on of Open Cluster Management whose template asks for certificates, and a registered site with its agent. */
import { setMaxListeners } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { acceptCluster } from '../../src/app/fleet-accept.ts';
import { runAgent } from '../../src/app/agent-run.ts';
import type { Context } from '../../src/core/context.ts';
import { AgentFolder } from '../../src/fleet/agent/folder.ts';
import { apiClient, at, textAt, type ApiClient } from './api-client.ts';
import { isMap, type JsonObject } from './api-server/fields.ts';
import { startMemoryApiServer } from './api-server/server.ts';
import { answerTo, requestsOf } from './hub-signer.ts';
import { eventually } from './hub-scene.ts';
import { addOnTemplate, binding, configOf, deploymentConfig, managementAddOn, onCluster } from './ocm-files.ts';
import { registrationScene, type RegistrationScene } from './registration-scene.ts';
import { makeCertificate } from './tls.ts';
import { createDefinitions, OCM_KINDS } from './upstream-kinds.ts';

const ADDON = '/apis/addon.open-cluster-management.io/v1alpha1';
const certificate = await makeCertificate();
const LABEL = 'open-cluster-management.io/addon-name';

export interface AddonRegistrationScene
  extends AsyncDisposable, Pick<RegistrationScene, 'client' | 'context' | 'hub' | 'kubeconfig' | 'box'> {
  /** The cluster of the site. */
  readonly here: ApiClient;
  /** Client of the hub with the certificate of the agent. */
  readonly agent: () => Promise<ApiClient>;
  /** What the agent has reported. */
  readonly notes: readonly string[];
  readonly startAgent: () => Promise<() => Promise<void>>;
  /** The template asks for this. */
  readonly template: (registration: readonly object[]) => Promise<void>;
  /** Requests of add-ons at the hub: their answers, with the reason of a refusal. */
  readonly answers: () => Promise<readonly string[]>;
  /** RoleBindings of add-ons, as `NAMESPACE ROLE GROUP`. */
  readonly rights: () => Promise<readonly string[]>;
  /** State, reason and message of the add-on on its cluster. */
  readonly state: () => Promise<string>;
  /** A Secret of the cluster, decoded. */
  readonly secret: (name: string) => Promise<Readonly<Record<string, string>> | undefined>;
}

function itemsIn(body: JsonObject): readonly JsonObject[] {
  return (body['items'] ?? []) as readonly JsonObject[];
}

/** `beforeHere`: before each request to the cluster of the site. */
export async function addonRegistrationScene({
  beforeHere,
  ...options
}: Parameters<typeof registrationScene>[0] & {
  readonly beforeHere?: (request: string) => void;
} = {}): Promise<AddonRegistrationScene> {
  const scene = await registrationScene(options);
  const { client, box, context: outer, kubeconfig } = scene;
  const created = async (path: string, object: object): Promise<void> => {
    const { status, body } = await client.create(path, object);
    if (status !== 201) throw new Error(textAt(body, 'message'));
  };
  await createDefinitions(client, OCM_KINDS);
  for (const name of ['fleet-ops', 'paris', 'shared']) await created('/api/v1/namespaces', { metadata: { name } });
  await created(
    '/apis/cluster.open-cluster-management.io/v1beta2/namespaces/fleet-ops/managedclustersetbindings',
    binding(),
  );
  const server = await startMemoryApiServer({ certificate, ...(beforeHere && { before: beforeHere }) });
  await writeFile(box.at('here.conf'), server.kubeconfig);
  const here = apiClient(server.kubeconfig);
  const site = scene.site('site', await scene.token('paris'));
  await eventually(() => site.fingerprint() !== '');
  await acceptCluster({ cluster: 'paris', kubeconfig }, outer);
  await site.done;
  const page = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page', namespace: 'default' }, data: {} };
  const ended = new AbortController();
  setMaxListeners(0, ended.signal);
  const notes: string[] = [];
  const running = new Set<() => Promise<void>>();
  const spec = { defaultConfigs: undefined, supportedConfigs: [], installStrategy: { type: 'Manual' } };
  return {
    client,
    context: outer,
    hub: scene.hub,
    kubeconfig,
    box,
    here,
    notes,
    agent: async () => {
      const config = await new AgentFolder(box.at('site')).readKubeconfig();
      const { hub, user } = config ?? {};
      return apiClient(JSON.stringify({ clusters: [{ cluster: hub }], users: [{ user }] }));
    },
    startAgent: async () => {
      const own = new AbortController();
      setMaxListeners(0, own.signal);
      const context: Context = {
        signal: own.signal,
        report: (event) => void (event.type === 'note' && notes.push(event.text)),
        env: { PATH: process.env['PATH'] },
        cwd: box.path,
      };
      const done = runAgent({ root: 'site', kubeconfig: 'here.conf', delay: 0, wait: 5000 }, context).catch(
        (error: unknown) => void (own.signal.aborted || notes.push(`ended: ${String(error)}`)),
      );
      const stop = async (): Promise<void> => {
        own.abort(new Error('stopped'));
        running.delete(stop);
        await done;
      };
      running.add(stop);
      return Promise.resolve(stop);
    },
    template: async (registration) => {
      const path = `${ADDON}/addontemplates`;
      const value = addOnTemplate('web-1', [page], { registration });
      if ((await client.get(`${path}/web-1`)).status === 200) {
        await client.jsonPatch(`${path}/web-1`, [
          { op: 'replace', path: '/spec', value: (value as { spec: object }).spec },
        ]);
        return;
      }
      await created(path, value);
      await created(
        `${ADDON}/namespaces/fleet-ops/addondeploymentconfigs`,
        deploymentConfig('web', { agentInstallNamespace: 'agents' }),
      );
      const configs = [
        { group: 'addon.open-cluster-management.io', resource: 'addontemplates' },
        { group: 'addon.open-cluster-management.io', resource: 'addondeploymentconfigs' },
      ];
      const management = managementAddOn({}, { ...spec, supportedConfigs: configs }) as Record<string, unknown>;
      await created(`${ADDON}/clustermanagementaddons`, {
        ...management,
        apiVersion: 'addon.open-cluster-management.io/v1alpha1',
      });
      const chosen = [
        { group: 'addon.open-cluster-management.io', resource: 'addontemplates', name: 'web-1' },
        configOf('web'),
      ];
      await created(`${ADDON}/namespaces/paris/managedclusteraddons`, onCluster('paris', { configs: chosen }));
    },
    answers: async () =>
      (await requestsOf(client)).flatMap((one) => {
        const labels = at(one, 'metadata.labels');
        if (!isMap(labels) || labels[LABEL] === undefined) return [];
        const given = answerTo(one);
        return given === 'Denied' ? `${given}: ${textAt(one, 'status.conditions.0.message')}` : given;
      }),
    rights: async () => {
      const { body } = await client.get('/apis/rbac.authorization.k8s.io/v1/rolebindings');
      return itemsIn(body)
        .filter((one) => textAt(one, 'metadata.name').startsWith('curlew:addon:'))
        .map((one) =>
          ['metadata.namespace', 'roleRef.name', 'subjects.0.name'].map((path) => textAt(one, path)).join(' '),
        )
        .toSorted();
    },
    state: async () => {
      const { body } = await client.get('/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-paris/clusteraddons/web');
      return ['state', 'reason', 'message']
        .map((key) => textAt(body, `status.${key}`))
        .filter(Boolean)
        .join(' ');
    },
    secret: async (name) => {
      const { status, body } = await here.get(`/api/v1/namespaces/agents/secrets/${name}`);
      const data = (body['data'] ?? {}) as Readonly<Record<string, string>>;
      if (status !== 200) return undefined;
      return Object.fromEntries(
        Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]),
      );
    },
    [Symbol.asyncDispose]: async () => {
      for (const stop of running) await stop();
      await server[Symbol.asyncDispose]();
      await scene[Symbol.asyncDispose]();
    },
  };
}
