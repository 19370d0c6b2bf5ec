/** Channels, manifests and charts in a folder, and the API server of the tests that they are applied to. */
import { writeFile } from 'node:fs/promises';
import { applyChannels, previewChannels, type ChannelPass } from '../../src/app/channel-apply.ts';
import { removeFromCluster, type ChannelRemoval } from '../../src/app/channel-remove.ts';
import { channelStatus, type ChannelStatus } from '../../src/app/channel-status.ts';
import { apiClient, at, type ApiClient } from './api-client.ts';
import type { JsonObject } from './api-server/fields.ts';
import { startMemoryApiServer } from './api-server/server.ts';
import { noReport } from './context.ts';
import { startHelm, type HelmStandIn } from './helm-stand-in.ts';
import { usualCertificate } from './tls.ts';
import { tree, type Tree } from './tree.ts';
import type { ChannelApplyRequest, ChannelRemoveRequest } from '../../src/requests/channel.ts';

export interface Scene extends AsyncDisposable {
  readonly box: Tree;
  readonly api: ApiClient;
  readonly helm: HelmStandIn;
  readonly requests: readonly string[];
  /** Before each request that is no dry run: what it throws is the answer, and a promise is waited for. It stands until the next one is set. */
  readonly before: (hook: ((request: string) => void | Promise<void>) | undefined) => void;
  /** Writes a channel with these entries. */
  readonly channel: (...entries: readonly object[]) => Promise<void>;
  readonly write: (path: string, ...objects: readonly object[]) => Promise<void>;
  readonly plan: (request?: Partial<ChannelApplyRequest>) => Promise<ChannelPass>;
  readonly apply: (request?: Partial<ChannelApplyRequest>) => Promise<ChannelPass>;
  /** A pass that is stopped at the first of these requests, which has no effect; nor has a later one. */
  readonly applyUntil: (request: RegExp) => Promise<void>;
  readonly remove: (addon: string, request?: Partial<ChannelRemoveRequest>) => Promise<ChannelRemoval>;
  readonly status: () => Promise<ChannelStatus['addons']>;
  /** The full record of an add-on; undefined if it has none. */
  readonly record: (addon: string) => Promise<JsonObject | undefined>;
}

const certificate = await usualCertificate();
const HEADER = { apiVersion: 'fleet.curlew.dev/v1alpha1', kind: 'Channel', metadata: { name: 'stable' } };

export async function openScene(): Promise<Scene> {
  const box = await tree();
  let before: ((request: string) => void | Promise<void>) | undefined;
  const server = await startMemoryApiServer({
    certificate,
    before: (request) => (request.includes('dryRun=All') ? undefined : before?.(request)),
  });
  const api = apiClient(server.kubeconfig);
  const helm = await startHelm(api, box);
  await writeFile(box.at('conf'), server.kubeconfig);
  const never = new AbortController().signal;
  const context = { signal: never, report: noReport, env: { PATH: process.env['PATH'] }, cwd: box.path };
  const own = { kubeconfig: box.at('conf'), helm: helm.program };
  const request: ChannelApplyRequest = { ...own, channels: ['channel.yaml'], timeout: 60_000 };
  return {
    box,
    api,
    helm,
    requests: server.requests,
    before: (hook) => (before = hook),
    channel: async (...entries) => {
      const addons = entries.map((entry) => ({ namespace: 'default', version: '1.0.0', ...entry }));
      await writeFile(box.at('channel.yaml'), JSON.stringify({ ...HEADER, spec: { addons } }, undefined, 1));
    },
    write: async (path, ...objects) =>
      writeFile(box.at(path), objects.map((object) => JSON.stringify(object, undefined, 1)).join('\n---\n')),
    plan: async (given = {}) => previewChannels({ ...request, ...given }, context),
    apply: async (given = {}) => applyChannels({ ...request, ...given }, context),
    applyUntil: async (pattern) => {
      const stop = new AbortController();
      before = (asked) => {
        if (!stop.signal.aborted && pattern.test(asked)) stop.abort(new Error('killed'));
        if (stop.signal.aborted) throw new Error('the process is gone');
      };
      const end = await applyChannels(request, { ...context, signal: stop.signal }).then(
        () => undefined,
        (error: unknown) => error,
      );
      before = undefined;
      if (!stop.signal.aborted || end === undefined) throw new Error(`no request is like ${pattern.source}`);
      // The next pass would wait until it has run out.
      await api.remove('/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/curlew-addons');
    },
    remove: async (addon, given = {}) => removeFromCluster({ ...own, addon, ...given }, context),
    status: async () => (await channelStatus({ kubeconfig: own.kubeconfig }, context)).addons,
    record: async (addon) => {
      const { body } = await api.get('/api/v1/namespaces/kube-system/configmaps/curlew-addons');
      const data = at(body, 'data') as Readonly<Record<string, string>> | undefined;
      const record = data?.[`default.${addon}`];
      return record === undefined ? undefined : (JSON.parse(record) as JsonObject);
    },
    [Symbol.asyncDispose]: async () => {
      await helm[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

/** `web install applied` for each add-on. */
export function outcomes({ addons }: ChannelPass): readonly string[] {
  return addons.map(({ addon, action, state }) => `${addon} ${action} ${state}`);
}

/** The first message of each add-on that has one. */
export function failures({ addons }: ChannelPass): readonly string[] {
  return addons.flatMap(({ errors }) => errors[0]?.message ?? []);
}

export const MAPS = '/api/v1/namespaces/default/configmaps';

export function configMap(name: string, data: Readonly<Record<string, string>> = {}, metadata: object = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default', ...metadata }, data };
}

/** Nothing makes it healthy but {@link HEALTHY}. */
export function deployment(name: string): object {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name, image: `${name}:1` }] } };
  const spec = { selector: { matchLabels: labels }, template };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'default' }, spec };
}

export const HEALTHY = {
  status: { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 },
} as const;
