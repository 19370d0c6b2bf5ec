/** Controllers, and agents whose add-ons register, killed at moments of what they write, and started again: as the processes that they are. */
import { writeFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import { eachLimited } from '../../src/platform/limit/each.ts';
import { addonRegistrationScene } from '../support/addon-registration-scene.ts';
import { apiClient, at, textAt, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import { StatusError } from '../support/api-server/store.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { hubCluster } from '../support/hub-objects.ts';
import { eventually, openHubScene } from '../support/hub-scene.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { sampleOf } from '../support/sweep.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import { startServer } from '../support/web-server.ts';
import { createOpened } from './support/opened.ts';

const test = suite('components/controller-kills', { timeoutMs: 900_000 });
const certificate = await makeCertificate();
const ROOT = '/apis/fleet.curlew.dev/v1alpha1';
const CLUSTERS = ['c1', 'c2', 'c3', 'c4'];
const MAPS = '/api/v1/namespaces/default/configmaps';
/** Each is killed at four moments: in all, at each eighth write. */
const JOURNEYS: readonly number[] = [0, 1, 2, 3, 4];
const STEP = 8;
const AT_ONCE = 3;

/** Names of the ConfigMaps in each version: what the next one lacks leaves with it. */
const CONTENTS: Readonly<Record<string, readonly string[]>> = {
  '1': ['page', 'sidebar'],
  '2': ['page'],
  '3': ['site'],
};

function contentOf(version: string): string {
  const objects = (CONTENTS[version] ?? []).map((name) =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'default' },
      data: { version },
    }),
  );
  return objects.join('\n---\n');
}

/** Whose field manager is curlew, and what else only it does. The Lease says who leads, and is renewed by time. */
const OWN = /^(?:POST|PATCH|PUT|DELETE) (?!.*(?:\/leases|dryRun|\/events))/;
const OWN_AT_HUB = /[?&]fieldManager=curlew(?:&|$)|^DELETE .*\/(?:clusteraddons|managedclusteraddons|rolebindings)\//;

interface Writes {
  /** What a server asks before it answers. `place`: `hub`, or the name of a cluster. */
  readonly before: (place: string) => (request: string) => void;
  /** Writes that were answered: `c1 DELETE /api/v1/…`. */
  readonly done: readonly string[];
  /** How many moments have not come. */
  readonly left: () => number;
}

/** Kills at writes of these numbers, alternately after they are handled and before: then the server never gets them. */
function killing(moments: readonly number[], kill: () => void): Writes {
  const done: string[] = [];
  const left = [...moments];
  const before = (place: string) => (request: string) => {
    if (!OWN.test(request) || (place === 'hub' && !OWN_AT_HUB.test(request))) return;
    const [next = Infinity] = left;
    const isHit = done.length >= next;
    if (isHit) {
      left.shift();
      kill();
    }
    if (isHit && left.length % 2 === 0) throw new StatusError(500, 'InternalError', 'nobody is there to hear this');
    done.push(`${place} ${request.split('?')[0] ?? ''}`);
  };
  return { before, done, left: () => left.length };
}

/** A process that is started again each time it is killed. */
function keptRunning(start: () => ReturnType<typeof startCurlew>) {
  let isOver = false;
  let present = start();
  const running = (async (): Promise<void> => {
    for (;;) {
      const { signal, stderr } = await present;
      if (isOver) return;
      assert.is(signal, 'SIGKILL', stderr);
      present = start();
    }
  })();
  running.catch(() => undefined);
  return {
    kill: () => void present.kill('SIGKILL'),
    /** Rejects when it has ended by itself. */
    running,
    [Symbol.asyncDispose]: async () => {
      isOver = true;
      present.kill('SIGKILL');
      await present;
    },
  };
}

async function tryJourney(journey: number): Promise<void> {
  const opened = createOpened();
  await using _all = { [Symbol.asyncDispose]: opened.close };
  const box = opened.keep(await tree({ 'ca.pem': certificate.ca }));
  const web = opened.keep(
    await startServer(
      ({ path }) => {
        const version = /page-(.*)\.yaml/.exec(path)?.[1];
        return version === undefined ? { status: 404 } : { status: 200, body: contentOf(version) };
      },
      { tls: certificate },
    ),
  );
  const moments = [0, 1, 2, 3].map((round) => STEP * (journey + round * JOURNEYS.length) + 4);
  let kill = (): void => undefined;
  const writes = killing(moments, () => kill());
  const own = opened.keep(await startMemoryApiServer({ certificate, before: writes.before('hub') }));
  await writeFile(box.at('hub.conf'), own.kubeconfig);
  const hub = opened.keep(await openHubScene(own.kubeconfig));
  const clients = new Map<string, ApiClient>();
  for (const name of CLUSTERS) {
    const server = opened.keep(await startMemoryApiServer({ certificate, before: writes.before(name) }));
    clients.set(name, apiClient(server.kubeconfig));
    const namespace = `fleet-${name}`;
    await hub.client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    const data = { value: Buffer.from(server.kubeconfig).toString('base64') };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'conf' }, data };
    await hub.client.create(`/api/v1/namespaces/${namespace}/secrets`, secret);
    const labels = { env: 'prod', ring: name === 'c1' ? 'canary' : 'rest' };
    const access = { kubeconfigSecret: 'conf' };
    await hub.client.create(`${ROOT}/namespaces/${namespace}/clusters`, hubCluster(name, labels, { access }));
  }
  const source = (version: string): object => ({
    manifest: `${web.url.replace('127.0.0.1', 'localhost')}/page-${version}.yaml`,
    hash: digestOf(contentOf(version)),
  });
  /** Waits until clusters wait for these reasons: `c3 Removals`. */
  const waits = async (expected: string): Promise<void> =>
    eventually(async () => {
      const { waiting = [] } = await hub.status('web');
      const found = (waiting as readonly JsonObject[]).map(
        (one) => `${textAt(one, 'cluster')} ${textAt(one, 'reason')}`,
      );
      return found.toSorted().join() === expected;
    });
  /** What the clusters have, and what the hub orders: `page1 sidebar1, -, -, -; c1:@1`. */
  const state = async (): Promise<string> => {
    const found = [...clients.values()].map(async (client) => {
      const items = (await client.get(MAPS)).body['items'] as readonly JsonObject[];
      return items.map((one) => `${textAt(one, 'metadata.name')}${textAt(one, 'data.version')}`).join(' ') || '-';
    });
    return `${(await Promise.all(found)).join(', ')}; ${await hub.contents('web')}`;
  };
  const approve = async (...words: readonly string[]): Promise<void> => {
    const command = ['fleet', 'approve', 'web', '--kubeconfig', 'hub.conf', ...words];
    const { exitCode, stderr } = await runCommand(command, box.path);
    assert.is(exitCode, 0, stderr);
  };
  const unselect = async (name: string): Promise<void> => {
    const path = `${ROOT}/namespaces/fleet-${name}/clusters/${name}`;
    await hub.client.merge(path, { metadata: { labels: { env: 'none' } } });
  };
  const ring = (name: string) => ({ name, selector: { matchLabels: { ring: name } } });
  const rollout = {
    type: 'Progressive',
    groups: [ring('canary'), ring('rest')],
    mandatoryDecisionGroups: [{ groupName: 'canary' }],
    approval: ['rest'],
    maxConcurrency: 2,
  };
  const controller = opened.keep(
    keptRunning(() =>
      startCurlew(['controller', '--kubeconfig', 'hub.conf', '--ca-file', 'ca.pem'], { cwd: box.path }),
    ),
  );
  ({ kill } = controller);
  const walk = async (): Promise<void> => {
    await hub.addon('web', { source: source('1'), rollout });
    await waits('c2 Approval,c3 Approval,c4 Approval');
    assert.is(await state(), 'page1 sidebar1, -, -, -; c1:@1');
    await approve('--group', 'rest');
    await hub.condition('web', 'Available', 'True AllSucceeded');
    const [one, both] = ['page2', 'page1 sidebar1'];
    assert.is(await state(), `${both}, ${both}, ${both}, ${both}; c1:@1 c2:@1 c3:@1 c4:@1`);
    await hub.change('web', { spec: { source: source('2') } });
    await waits('c2 Approval,c3 Approval,c4 Approval');
    assert.is(await state(), `${one}, ${both}, ${both}, ${both}; c1:@2 c2:@1 c3:@1 c4:@1`);
    await approve('--group', 'rest');
    await hub.condition('web', 'Available', 'True AllSucceeded');
    assert.is(await state(), `${one}, ${one}, ${one}, ${one}; c1:@2 c2:@2 c3:@2 c4:@2`);
    await hub.change('web', { spec: { source: source('3') } });
    await waits('c1 Deletions,c2 Unproven,c3 Unproven,c4 Unproven');
    assert.is(await state(), `${one}, ${one}, ${one}, ${one}; c1:@3 c2:@2 c3:@2 c4:@2`);
    await approve('--group', 'rest', '--deletions');
    await hub.condition('web', 'Available', 'True AllSucceeded');
    assert.is(await state(), 'site3, site3, site3, site3; c1:@4 c2:@3 c3:@3 c4:@3');
    await unselect('c4');
    await hub.becomes('web', 'c1:@4 c2:@3 c3:@3');
    await unselect('c3');
    await waits('c3 Removals');
    assert.is(await state(), 'site3, site3, site3, -; c1:@4 c2:@3 c3:@3');
    await approve('--removals', '1');
    await hub.becomes('web', 'c1:@4 c2:@3');
    await hub.client.remove(`${ROOT}/fleetaddons/web`);
    await waits('c1 Removals,c2 Removals');
    assert.is(await state(), 'site3, site3, -, -; c1:@4 c2:@3');
    await approve('--removals', '2');
    await eventually(async () => (await hub.client.get(`${ROOT}/fleetaddons/web`)).status === 404);
  };
  await Promise.race([walk(), controller.running]);
  assert.is(await state(), '-, -, -, -; ');
  for (const client of clients.values()) {
    const { body } = await client.get('/api/v1/namespaces/kube-system/configmaps/curlew-addons');
    assert.equal(at(body, 'data'), {});
    const marks = at((await client.get('/api/v1/namespaces/kube-system')).body, 'metadata.annotations') ?? {};
    assert.equal(marks, {});
  }
  const deleted = writes.done.filter((request) => / DELETE .*\/configmaps\//.test(request));
  const all = CLUSTERS.flatMap((name) => ['page', 'sidebar', 'site'].map((map) => `${name} DELETE ${MAPS}/${map}`));
  assert.equal([...new Set(deleted)].toSorted(), all);
  const most = all.map((one) => deleted.filter((request) => request === one).length);
  assert.ok(Math.max(...most) <= 2, deleted.join('\n'));
  assert.is(writes.left(), 0);
}

const GROUP = 'system:open-cluster-management:cluster:paris:addon:web';
const PAGE = '/api/v1/namespaces/agents/configmaps/page';
const ADDONS = '/apis/addon.open-cluster-management.io/v1alpha1';

/** Kills the controller or the agent of the site; the other one stays. */
async function tryRegistration(who: 'controller' | 'agent', journey: number): Promise<void> {
  const opened = createOpened();
  await using _all = { [Symbol.asyncDispose]: opened.close };
  const isAgent = who === 'agent';
  let kill = (): void => undefined;
  const moments = [2 * journey, (isAgent ? 15 : 17) - 2 * journey].toSorted((a, b) => a - b);
  const writes = killing(moments, () => kill());
  const look = writes.before(isAgent ? 'site' : 'hub');
  let hasBegun = false;
  const scene = opened.keep(
    await addonRegistrationScene({
      before: (request, { username }) => hasBegun && (username === 'admin') !== isAgent && look(request),
      beforeHere: (request) => void (isAgent && look(request)),
    }),
  );
  hasBegun = true;
  const { client, kubeconfig, box } = scene;
  const reconcile = 'clustermanagementaddons';
  const words = isAgent
    ? ['agent', 'run', '--root', 'site', '--kubeconfig', 'here.conf', '--delay', '1s', '--wait', '5s']
    : ['controller', '--kubeconfig', kubeconfig, '--reconcile', reconcile];
  if (isAgent) scene.hub.start({ reconcile: [[reconcile]] });
  else await scene.startAgent();
  const killed = opened.keep(keptRunning(() => startCurlew(words, { cwd: box.path })));
  ({ kill } = killed);
  const walk = async (): Promise<void> => {
    const hubPermissions = [{ type: 'CurrentCluster', currentCluster: { clusterRoleName: 'web-reader' } }];
    await scene.template([{ type: 'KubeClient', kubeClient: { hubPermissions } }]);
    const own = `${ADDONS}/namespaces/paris/managedclusteraddons/web`;
    const applied = async (): Promise<boolean> => {
      const all = at((await client.get(own)).body, 'status.conditions') ?? [];
      return (all as readonly JsonObject[]).some(
        (one) => one['type'] === 'RegistrationApplied' && one['status'] === 'True',
      );
    };
    await eventually(async () => (await scene.state()) === 'Succeeded' && (await applied()));
    assert.is((await scene.here.get(PAGE)).status, 200);
    assert.equal(await scene.rights(), [`paris web-reader ${GROUP}`]);
    // Whoever dies before it hears of its request asks again, with another key: once for each time. Of two that wait, one is answered.
    const answers = await scene.answers();
    assert.ok(answers.length <= 1 + (isAgent ? moments.length : 0), answers.join());
    const isRefused = (one: string): boolean => one === 'Denied: the agent has made a newer request';
    assert.equal([...new Set(answers.filter((one) => !isRefused(one)))], ['Approved']);
    assert.ok(isAgent || !answers.some(isRefused), answers.join());
    await client.remove(`${ADDONS}/clustermanagementaddons/web`);
    await eventually(async () => (await client.get(`${ADDONS}/clustermanagementaddons/web`)).status === 404);
    await eventually(async () => (await scene.rights()).length === 0);
    await eventually(async () => (await scene.secret('web-hub-kubeconfig')) === undefined);
    assert.is((await scene.here.get(PAGE)).status, 404);
    assert.is(await scene.hub.contents('web'), '');
  };
  await Promise.race([walk(), killed.running]);
  assert.is(writes.left(), 0);
}

const journeys = sampleOf(JOURNEYS, JOURNEYS.length);
test(`killed in rollouts, prunes, approvals and removals, at ${journeys.length * 4} moments in this run, it continues there`, async ({
  signal,
}) => {
  await eachLimited(journeys, tryJourney, { width: AT_ONCE, signal });
});

for (const who of ['controller', 'agent'] as const) {
  const title = `${who} killed while add-ons register at the hub and leave, at ${journeys.length * 2} moments in this run`;
  test(`${title}: it gives and takes what it should`, async ({ signal }) => {
    await eachLimited(journeys, async (one) => tryRegistration(who, one), { width: AT_ONCE, signal });
  });
}

test.run();
