/** A fleet in a folder, each of whose clusters is an API server of the tests. */
import { setMaxListeners } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { applyFleet, type FleetPass } from '../../src/app/fleet-apply.ts';
import { planFleets, type FleetPlan } from '../../src/app/fleet-plan.ts';
import type { FleetApplyRequest } from '../../src/requests/fleet.ts';
import type { Context } from '../../src/core/context.ts';
import { apiClient, textAt, type ApiClient } from './api-client.ts';
import { startMemoryApiServer, type MemoryApiServer } from './api-server/server.ts';
import { noReport } from './context.ts';
import { addon, cluster, documents } from './fleet-files.ts';
import { usualCertificate } from './tls.ts';
import { tree, type Tree } from './tree.ts';

type BeforeRequest = (name: string, request: string) => unknown;

export interface FleetScene extends AsyncDisposable {
  readonly box: Tree;
  readonly context: Context;
  /** Requests to a cluster so far. */
  readonly requests: (name: string) => readonly string[];
  readonly api: (name: string) => ApiClient;
  /** Before each request to any cluster: what it throws is the answer, and a promise is waited for. */
  readonly before: (hook: BeforeRequest | undefined) => void;
  /** Writes the fleet: these add-ons, and all clusters with these labels besides `env: prod`. */
  readonly fleet: (addons: readonly object[], labels?: Readonly<Record<string, object>>) => Promise<void>;
  /** Writes a manifest of one ConfigMap in `default` with this version, or of other objects. */
  readonly manifest: (version: string, ...objects: readonly object[]) => Promise<void>;
  readonly apply: (request?: Partial<FleetApplyRequest>, context?: Partial<Context>) => Promise<FleetPass>;
  readonly plan: () => Promise<FleetPlan>;
  /** The version of the ConfigMap on each cluster, `-` where it is not. */
  readonly versions: () => Promise<string>;
}

const certificate = await usualCertificate();
const MAP = '/api/v1/namespaces/default/configmaps/page';

/** A release of the add-on `web`, in `web.yaml`. */
function page(version: string): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page', namespace: 'default' }, data: { version } };
}

/** No server takes it. */
export const BAD = { apiVersion: 'example.com/v1', kind: 'Missing', metadata: { name: 'bad', namespace: 'default' } };

export async function openFleetScene(names: readonly string[]): Promise<FleetScene> {
  const box = await tree();
  let before: BeforeRequest | undefined;
  const servers = new Map<string, MemoryApiServer>();
  const clients = new Map<string, ApiClient>();
  for (const name of names) {
    const server = await startMemoryApiServer({ certificate, before: (request) => before?.(name, request) });
    servers.set(name, server);
    clients.set(name, apiClient(server.kubeconfig));
    await writeFile(box.at(`${name}.conf`), server.kubeconfig);
  }
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  const context: Context = { signal, report: noReport, env: {}, cwd: box.path };
  const request = { files: ['fleet.yaml'], timeout: 15_000 };
  const api = (name: string): ApiClient => {
    const client = clients.get(name);
    if (client === undefined) throw new Error(`the fleet has no cluster ${name}`);
    return client;
  };
  return {
    box,
    context,
    api,
    requests: (name) => servers.get(name)?.requests ?? [],
    before: (hook) => (before = hook),
    fleet: async (addons, labels = {}) => {
      const clusters = names.map((name) => cluster(name, { env: 'prod', ...labels[name] }));
      await writeFile(box.at('fleet.yaml'), documents(...clusters, ...addons));
    },
    manifest: async (version, ...objects) =>
      writeFile(box.at('web.yaml'), documents(...(objects.length === 0 ? [page(version)] : objects))),
    apply: async (given = {}, more = {}) => applyFleet({ ...request, wait: 5000, ...given }, { ...context, ...more }),
    plan: async () => planFleets(request, context),
    versions: async () => {
      const versions = names.map(async (name) => textAt((await api(name).get(MAP)).body, 'data.version') || '-');
      return (await Promise.all(versions)).join(' ');
    },
    [Symbol.asyncDispose]: async () => {
      for (const server of servers.values()) await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

/** A scene in which each of these versions of the add-on `web` was applied, by default one. */
export async function installedScene(names: readonly string[], ...versions: readonly string[]): Promise<FleetScene> {
  const scene = await openFleetScene(names);
  await scene.fleet([addon('web')]);
  for (const version of versions.length > 0 ? versions : ['1']) {
    await scene.manifest(version);
    await scene.apply();
  }
  return scene;
}

/** `paris web install done` */
export function doneIn({ done }: FleetPass): readonly string[] {
  return done.map(({ cluster: where, addon: name, act, result }) => `${where} ${name} ${act} ${result}`);
}

/** `paris ToApply wait Group` for each target. */
export function statesIn({ targets }: FleetPlan): readonly string[] {
  return targets.map(({ cluster: where, state, now, reason = '' }) => `${where} ${state} ${now} ${reason}`.trim());
}

/** The add-on `web`: first the canary, then the rest. */
export function canaryAddon(rollout: object = {}, spec: object = {}): object {
  return addon('web', {
    rollout: {
      type: 'Progressive',
      groups: [{ name: 'canary', selector: { matchLabels: { canary: 'true' } } }],
      mandatoryDecisionGroups: [{ groupName: 'canary' }],
      ...rollout,
    },
    ...spec,
  });
}
