/** A hub on any API server, its controllers in this process, and agents that say what a test wants. */
import { setMaxListeners } from 'node:events';
import { runController } from '../../src/app/controller.ts';
import type { ControllerRequest } from '../../src/requests/hub.ts';
import type { Context } from '../../src/core/context.ts';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { setTimeout as wait } from 'node:timers/promises';
import { apiClient, at, textAt, type ApiClient } from './api-client.ts';
import { isMap, type JsonObject } from './api-server/fields.ts';
import { hubAddon, hubCluster } from './hub-objects.ts';
import { tree } from './tree.ts';

const ROOT = '/apis/fleet.curlew.dev/v1alpha1';
const THEN = '2026-01-02T03:04:05Z';

export interface RunningController {
  readonly notes: readonly string[];
  /** Ends it as SIGTERM does. */
  readonly stop: () => Promise<void>;
}

export interface HubScene extends AsyncDisposable {
  readonly client: ApiClient;
  readonly start: (options?: Partial<ControllerRequest>) => RunningController;
  /** A cluster with these labels besides `env: prod`, which answers. */
  readonly cluster: (name: string, labels?: object, spec?: object) => Promise<void>;
  readonly addon: (name: string, spec?: object) => Promise<void>;
  readonly change: (addon: string, change: object) => Promise<void>;
  /** An order of a person, for the present generation. */
  readonly order: (addon: string, verb: string, more?: object) => Promise<void>;
  /** The agents of these clusters say that what they are to have is in this state. */
  readonly report: (addon: string, state: string, ...clusters: readonly string[]) => Promise<void>;
  /** `paris:1.2.3@1`, and `-1.2.3@2` for a removal, in the order of their names. */
  readonly contents: (addon: string) => Promise<string>;
  /** Waits until {@link contents} is this. */
  readonly becomes: (addon: string, contents: string) => Promise<void>;
  readonly status: (addon: string) => Promise<JsonObject>;
  /** Waits until a condition of an add-on has this status and reason. */
  readonly condition: (addon: string, type: string, expected: string) => Promise<void>;
}

/** Longer than anything takes that is waited for here, on a machine with too much to do. */
const PATIENCE_MS = 200_000;

/** Each look is a request with a handshake: pauses leave time for the others. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    // The deadline of a test cannot say what it waited for.
    if (performance.now() > end) throw new Error(`still not after ${PATIENCE_MS / 1000} s: ${String(holds)}`);
    await wait(200);
  }
}

export async function openHubScene(kubeconfig: string): Promise<HubScene> {
  const box = await tree({ conf: kubeconfig });
  const client = apiClient(kubeconfig);
  const running = new Set<RunningController>();
  for (const object of hubManifests()) {
    const { kind, metadata } = object as { readonly kind: string; readonly metadata: { readonly name: string } };
    if (kind === 'CustomResourceDefinition') {
      await client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', object);
      await eventually(async () => (await client.get(`${ROOT}/${metadata.name.split('.')[0] ?? ''}`)).status === 200);
    } else if (kind === 'Namespace') await client.create('/api/v1/namespaces', object);
  }
  const list = async (addon: string): Promise<readonly JsonObject[]> => {
    const { body } = await client.get(`${ROOT}/clusteraddons`);
    const items = (body['items'] ?? []) as readonly JsonObject[];
    const own = items.filter((one) => textAt(one, 'metadata.name') === addon);
    return own.toSorted((a, b) => (textAt(a, 'metadata.namespace') < textAt(b, 'metadata.namespace') ? -1 : 1));
  };
  const status = async (addon: string): Promise<JsonObject> => {
    const found = at((await client.get(`${ROOT}/fleetaddons/${addon}`)).body, 'status');
    return isMap(found) ? found : {};
  };
  const contents = async (addon: string): Promise<string> =>
    (await list(addon))
      .map((one) => {
        const sign = textAt(one, 'spec.action') === 'Remove' ? '-' : '';
        const name = textAt(one, 'metadata.namespace').slice('fleet-'.length);
        return `${name}:${sign}${textAt(one, 'spec.version')}@${Number(at(one, 'spec.revision'))}`;
      })
      .join(' ');
  const done = async (reply: Promise<{ readonly status: number; readonly body: JsonObject }>): Promise<void> => {
    const { status: code, body } = await reply;
    if (code >= 300) throw new Error(textAt(body, 'message'));
  };
  return {
    client,
    status,
    contents,
    start: (options = {}) => {
      const controller = new AbortController();
      setMaxListeners(0, controller.signal);
      const notes: string[] = [];
      const context: Context = {
        signal: controller.signal,
        report: (event) => void (event.type === 'note' && notes.push(event.text)),
        env: {},
        cwd: box.path,
      };
      const ended = runController({ kubeconfig: 'conf', ...options }, context).then(
        () => undefined,
        (error: unknown) => {
          if (!controller.signal.aborted) notes.push(`ended: ${String(error)}`);
        },
      );
      const one: RunningController = {
        notes,
        stop: async () => {
          controller.abort(new Error('stopped'));
          running.delete(one);
          await ended;
        },
      };
      running.add(one);
      return one;
    },
    cluster: async (name, labels = {}, spec = {}) => {
      await client.create('/api/v1/namespaces', { metadata: { name: `fleet-${name}` } });
      await done(
        client.create(`${ROOT}/namespaces/fleet-${name}/clusters`, hubCluster(name, { env: 'prod', ...labels }, spec)),
      );
      const available = { type: 'Available', status: 'True', reason: 'Answers', lastTransitionTime: THEN };
      const change = { status: { facts: { version: 'v1.34.1' }, conditions: [available] } };
      await done(client.merge(`${ROOT}/namespaces/fleet-${name}/clusters/${name}/status`, change));
    },
    addon: async (name, spec) => done(client.create(`${ROOT}/fleetaddons`, hubAddon(name, spec))),
    change: async (addon, change) => done(client.merge(`${ROOT}/fleetaddons/${addon}`, change)),
    order: async (addon, verb, more = {}) => {
      const { body } = await client.get(`${ROOT}/fleetaddons/${addon}`);
      const order = { by: 'jane', at: new Date().toISOString(), generation: at(body, 'metadata.generation'), ...more };
      const annotations = { [`fleet.curlew.dev/${verb}`]: JSON.stringify(order) };
      await done(client.merge(`${ROOT}/fleetaddons/${addon}`, { metadata: { annotations } }));
    },
    report: async (addon, state, ...clusters) => {
      for (const one of await list(addon)) {
        const namespace = textAt(one, 'metadata.namespace');
        if (!clusters.includes(namespace.slice('fleet-'.length))) continue;
        const applied = { revision: at(one, 'spec.revision'), hash: at(one, 'spec.specHash') };
        const change = { status: { applied, state, since: new Date().toISOString().replace(/\.\d+Z/, 'Z') } };
        await done(client.merge(`${ROOT}/namespaces/${namespace}/clusteraddons/${addon}/status`, change));
      }
    },
    becomes: async (addon, expected) => {
      let last = '';
      await eventually(async () => (last = await contents(addon)) === expected).catch((error: unknown) => {
        throw new Error(`${addon} is ${last}`, { cause: error });
      });
    },
    condition: async (addon, type, expected) =>
      eventually(async () => {
        const { conditions = [] } = await status(addon);
        const found = (conditions as readonly JsonObject[]).find((one) => one['type'] === type);
        return `${textAt(found, 'status')} ${textAt(found, 'reason')}` === expected;
      }),
    [Symbol.asyncDispose]: async () => {
      for (const one of running) await one.stop();
      await box[Symbol.asyncDispose]();
    },
  };
}
