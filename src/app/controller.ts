/** The controller of a hub: watches its objects, and writes what a step of the fleet decides. */
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import { asError, requireRefusal } from '../core/errors.ts';
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import { openClusterApi } from '../cluster/deliver/channel-cluster.ts';
import { readHubChannel } from '../fleet/hub/channel.ts';
import { readFleetAddon, readClusterAddon } from '../fleet/hub/observe.ts';
import { AGENT } from '../fleet/hub/identity.ts';
import { controllerMetrics, PassCounts } from '../fleet/hub/metrics.ts';
import { CONTROLLER_LEASE } from '../fleet/hub/manifests.ts';
import { readAgentRequest, SIGNING_REQUESTS } from '../fleet/hub/certificate-requests.ts';
import type { KubeApi } from '../cluster/kube/api.ts';
import { openCalls } from '../cluster/kube/call.ts';
import { holdLease, LEASES, type HeldLease } from '../cluster/kube/lease.ts';
import { pacedApi } from '../cluster/kube/paced-api.ts';
import { Watch } from '../cluster/kube/watch.ts';
import { Backoff } from '../platform/limit/backoff.ts';
import { pause } from '../platform/limit/repeat.ts';
import { Wake } from '../platform/limit/wake.ts';
import { Memo } from '../fleet/rollout/content.ts';
import { AddonRights } from '../fleet/hub/run/addon-rights.ts';
import { clusterReader } from '../fleet/hub/run/cluster-reader.ts';
import { Heartbeats } from '../fleet/hub/run/heartbeats.ts';
import { StoredStatuses } from '../fleet/hub/run/stored-statuses.ts';
import { identifyHub } from '../fleet/hub/run/identify.ts';
import { passHub, resourceOf, type Hub, type HubPassed } from '../fleet/hub/run/hub-pass.ts';
import { findNewest } from '../fleet/run/newest.ts';
import { Pushes } from '../fleet/hub/run/push.ts';
import { Upstream } from '../fleet/hub/run/upstream.ts';
import { ValuesObjects } from '../fleet/hub/run/values-objects.ts';
import { decideRequests, RESYNC_MS, type Say } from '../fleet/hub/run/renewals.ts';
import { serveMetrics, serveReadiness } from '../steps/open/readiness.ts';
import { CONTROLLER, type ControllerRequest } from '../requests/hub.ts';

/** A change of many objects at once is no flood. */
const PACE = { perSecond: 50, burst: 100 };
/** Changes that come together are one pass. */
const GATHER_MS = 100;
/** A controller that does not lead asks again. */
const CANDIDATE_MS = 5000;

/**
 * Until the signal aborts, whose reason it throws. Of several controllers one leads, by a Lease; the others wait for it. A hub without
 * the kinds is `CLUSTER_FAILED`.
 */
export const runController = useCase(CONTROLLER, async ({ ready, metrics, ...request }, context): Promise<never> => {
  const { signal } = context;
  const say = saying(context);
  let isReady = false;
  const passes = new PassCounts();
  let addons: Hub['addons'] | undefined;
  await using _server = await serveReadiness(ready, () => isReady, 'the last pass has not succeeded');
  await using _metrics = await serveMetrics(metrics, () => {
    const statuses = (addons?.values() ?? []).flatMap((one) => one.addon.status ?? []);
    return controllerMetrics({ passes, leads: addons !== undefined, statuses });
  });
  const { api, call } = await openClusterApi(request, context);
  const uid = await identifyHub(call, 'lead the hub');
  for (;;) {
    try {
      const holder = `${hostname()}/${process.pid}`;
      await using lease = await holdLease(
        { api, call },
        { ...CONTROLLER_LEASE, holder, doing: 'lead the hub', signal },
      );
      say('info', 'leading the hub');
      const onPass = (succeeded: boolean, seen: Hub['addons']): void => {
        isReady = succeeded;
        addons = seen;
        passes.ended(succeeded, Math.floor(Date.now() / 1000));
      };
      await lead(api, { lease, uid, say, request, context, onPass });
    } catch (error) {
      requireRefusal(error, signal);
      addons = undefined;
      // Another one leads: this one works, and can take over.
      isReady = error.code === 'BUSY';
      say(isReady ? 'info' : 'warning', error.message);
    }
    await pause(CANDIDATE_MS * (0.5 + Math.random()), { signal });
  }
});

/** The same again says nothing new. */
function saying({ report }: Context): Say {
  let last = '';
  return (level, text) => {
    if (text !== last) report({ type: 'note', level, text });
    last = text;
  };
}

interface Leading {
  readonly lease: HeldLease;
  readonly uid: string;
  readonly say: Say;
  readonly request: Omit<ControllerRequest, 'ready' | 'metrics'>;
  readonly context: Context;
  readonly onPass: (hasSucceeded: boolean, addons: Hub['addons']) => void;
}

/** Until the lease is lost, or the signal of the controller aborts. */
async function lead(direct: KubeApi, { lease, uid, say, request, context, onPass }: Leading): Promise<never> {
  const over = new AbortController();
  const signal = AbortSignal.any([lease.signal, over.signal]);
  // Each watch listens.
  setMaxListeners(0, signal);
  const api = pacedApi(direct, PACE);
  const changes = new Wake();
  const watching = { onChange: () => changes.set() };
  const heartbeats = new Heartbeats(() => changes.set());
  let unseen: string | undefined = '';
  const leases: Hub['leases'] = new Watch(api, {
    resource: LEASES,
    fieldSelector: `metadata.name=${AGENT}`,
    look: (lease) => heartbeats.see(lease),
    // A Lease that is renewed is no reason for a pass.
    onChange: () => {
      if (leases.problem !== unseen) changes.set();
      unseen = leases.problem;
    },
  });
  const { reconcile = [] } = request;
  const report = (text: string): void => say('info', text);
  const upstream =
    reconcile.length === 0
      ? undefined
      : await Upstream.open(api, reconcile.flat(), {
          signal,
          say,
          findNewest: findNewest(request, { ...context, signal }),
          ...watching,
        });
  const call = openCalls(api, { patienceMs: 0, signal, guard: lease.guard });
  const asked = new Wake();
  const takesAddons = reconcile.flat().includes('clustermanagementaddons');
  const clusterAddons = new Watch(api, {
    onChange: () => {
      changes.set();
      if (takesAddons) asked.set();
    },
    resource: resourceOf('ClusterAddon'),
    look: readClusterAddon,
  });
  const onRights = (): void => {
    changes.set();
    asked.set();
  };
  const addons = takesAddons ? new AddonRights(api, { call, clusterAddons, onChange: onRights }) : undefined;
  const hub: Hub = {
    uid,
    signal,
    upstream,
    rights: addons,
    call,
    clusters: new Watch(api, {
      ...watching,
      resource: resourceOf('Cluster'),
      look: clusterReader((text) => say('warning', text)),
    }),
    addons: new Watch(api, { ...watching, resource: resourceOf('FleetAddon'), look: readFleetAddon }),
    clusterAddons,
    channels: new Watch(api, { ...watching, resource: resourceOf('Channel'), look: readHubChannel }),
    leases,
    heartbeats,
    backoff: new Backoff(),
    memo: new Memo(),
    statuses: new StoredStatuses(report),
    valuesObjects: new ValuesObjects(call),
    report,
  };
  // Controllers and agents have clocks of their own; what is written has that of the hub.
  const now = (): number => Math.floor(direct.now().getTime() / 1000);
  const requests = new Watch(api, { onChange: () => asked.set(), resource: SIGNING_REQUESTS, look: readAgentRequest });
  const answers = saying(context);
  // Apart from the passes: whoever may ask for certificates cannot hold them up.
  const answering = decideRequests(
    { call, signal, requests, addons, backoff: new Backoff(), say: answers },
    asked,
  ).catch((error: unknown) => over.abort(error));
  const watches = [hub.clusters, hub.addons, hub.clusterAddons, hub.channels, requests, addons, leases, upstream].map(
    async (one) => one?.run(signal).catch(() => undefined),
  );
  const pushes = new Pushes(hub, { request, context, now, onEnd: () => changes.set() });
  const failures = new Backoff();
  try {
    for (;;) {
      changes.clear();
      const { problem, nextMs, isDecided } = await passHub(hub, now()).catch((error: unknown): HubPassed => {
        requireRefusal(error, signal);
        return { problem: asError(error).message, nextMs: failures.failed(), isDecided: false };
      });
      if (isDecided) failures.succeeded();
      if (problem !== undefined) say('warning', problem);
      onPass(isDecided, hub.addons);
      await pause(GATHER_MS, { signal });
      const turnMs = isDecided ? pushes.start() : Infinity;
      await changes.wait(Math.min(nextMs, RESYNC_MS, turnMs, heartbeats.nextMs), { signal });
    }
  } finally {
    over.abort();
    await Promise.all([...watches, answering, pushes.ended()]);
  }
}
