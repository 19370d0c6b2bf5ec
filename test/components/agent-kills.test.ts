/** An agent that the system kills at a moment of a delivery, and starts again: as the process that it is. */
import { execa } from 'execa';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { readAgentRecord } from '../../src/fleet/hub/agent-record.ts';
import { hexOf, type Digest } from '../../src/core/digest.ts';
import { readPublicKey } from '../../src/formats/signing/keys.ts';
import { eachLimited } from '../../src/platform/limit/each.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import { openAgentScene, type AgentScene } from '../support/agent-scene.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { cleanEnvironment, curlewOk } from '../support/curlew.ts';
import { madePackage, publishAs } from '../support/releases.ts';
import { suite } from '../support/suite.ts';
import { sampleOf } from '../support/sweep.ts';
import { tree } from '../support/tree.ts';
import { POINTS } from './support/kill-scene.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/agent-kills', { timeoutMs: 600_000 });
/** A predecessor that was killed has the Lease of the cluster for 15 seconds, in which its successor only waits. */
const WIDTH = 5;
/** One of so many points in each run, about ten in all. */
const SHARE = 3;
const SOON_MS = 20_000;

type Journey = 'install' | 'update' | 'remove';
type Place = 'hub' | 'here' | 'files' | 'helm';

interface Point {
  readonly title: string;
  /** Which order the agent is killed in; default: `install`. */
  readonly journey?: Journey;
  /** What it does there, as requests or as moments of kill-points.mjs. */
  readonly at: readonly [place: Place, request: RegExp] | string;
  /** Not before such a request to the cluster. */
  readonly after?: RegExp;
  /** The request is answered, and nobody gets the answer; otherwise it was never sent. */
  readonly isHandled?: boolean;
  /** How often the content is brought, or taken away, in all; at most, where a number is not certain. */
  readonly times: number;
}

const PAGE = /^(?:PATCH|DELETE) \/api\/v1\/namespaces\/default\/configmaps\/page(?!.*dryRun)/;
/** What the content has lost in an update. */
const LOST = /^DELETE \/api\/v1\/namespaces\/default\/configmaps\/sidebar(?!.*dryRun)/;
const RECORDS = /^(?:POST|PATCH|PUT) \/api\/v1\/namespaces\/kube-system\/configmaps/;
const REPORT = /^PATCH .*\/clusteraddons\/web\/status/;
const LEASE = /^PUT .*\/leases\/curlew-agent$/;

const RECORD = 'rename curlew/agent/record.json';

const MANIFEST: readonly Point[] = [
  { title: 'before the orders are read', at: ['hub', /^GET .*\/clusteraddons(?!\/|.*watch=true)/], times: 1 },
  { title: 'before an order is kept', at: `${RECORD} before 2`, times: 1 },
  { title: 'after an order is kept', at: `${RECORD} after 2`, times: 1 },
  { title: 'while the content is fetched', at: ['files', /\.yaml$/], times: 1 },
  { title: 'after it is verified, before its copy is kept', at: 'copy before', times: 1 },
  { title: 'after its copy is kept, before that of its signature', at: 'copy after', times: 1 },
  { title: 'before the cluster knows that something begins', at: ['here', RECORDS], times: 1 },
  { title: 'after the cluster knows that something has begun', at: ['here', RECORDS], isHandled: true, times: 1 },
  { title: 'after objects are applied', at: ['here', PAGE], isHandled: true, times: 2 },
  { title: 'before the record of what was applied', at: ['here', RECORDS], after: PAGE, times: 2 },
  { title: 'before it knows that it has succeeded', at: `${RECORD} before 3`, times: 2 },
  { title: 'after it knows that it has succeeded', at: `${RECORD} after 3`, times: 1 },
  { title: 'before the report', at: ['hub', REPORT], after: PAGE, times: 1 },
  { title: 'after the report', at: ['hub', REPORT], after: PAGE, isHandled: true, times: 1 },
  { title: 'before its Lease is renewed', at: ['hub', LEASE], times: 1 },
  {
    title: 'in an update, after objects are applied',
    journey: 'update',
    at: ['here', PAGE],
    isHandled: true,
    times: 2,
  },
  { title: 'in an update, before the report', journey: 'update', at: ['hub', REPORT], after: PAGE, times: 1 },
  { title: 'in an update, before what it lost is deleted', journey: 'update', at: ['here', LOST], times: 2 },
  {
    title: 'in an update, after what it lost is deleted',
    journey: 'update',
    at: ['here', LOST],
    isHandled: true,
    times: 2,
  },
  { title: 'in a removal, before objects are deleted', journey: 'remove', at: ['here', PAGE], times: 1 },
  {
    title: 'in a removal, after objects are deleted',
    journey: 'remove',
    at: ['here', PAGE],
    isHandled: true,
    times: 1,
  },
  { title: 'in a removal, before the report', journey: 'remove', at: ['hub', REPORT], after: PAGE, times: 1 },
];

const CHART: readonly Point[] = [
  { title: 'before helm installs', at: ['helm', /^upgrade/], times: 1 },
  { title: 'after helm has installed', at: ['helm', /^upgrade/], isHandled: true, times: 2 },
  { title: 'before helm removes', journey: 'remove', at: ['helm', /^uninstall/], times: 1 },
  { title: 'after helm has removed', journey: 'remove', at: ['helm', /^uninstall/], isHandled: true, times: 1 },
];

const PACKAGE: readonly Point[] = [
  { title: 'before the package is known to come', at: `${RECORD} before 3`, times: 1 },
  { title: 'after the package is known to come', at: `${RECORD} after 3`, times: 1 },
  { title: 'while the package is unpacked', at: 'extract page/1.0.0/install.sh opened 1', times: 1 },
  { title: 'before the hook', at: 'journal started hook page before 1', times: 1 },
  { title: 'in the hook', at: 'spawn page 1', times: 2 },
  { title: 'after the hook', at: 'journal done hook page after 1', times: 1 },
  { title: 'before it knows that the package is there', at: `${RECORD} before 4`, times: 1 },
  { title: 'in the hook of a removal', journey: 'remove', at: 'spawn page_uninstall 1', times: 2 },
  { title: 'after the hook of a removal', journey: 'remove', at: 'journal done hook page_uninstall after 1', times: 1 },
  { title: 'before it knows that the package is gone', journey: 'remove', at: `${RECORD} before 6`, times: 1 },
];

/** Each hook writes down that it has ended. */
const SCRIPT = `page() { echo "$PAGE_GREETING" >>"$DIR/page"; }
page_uninstall() { echo gone >>"$DIR/page"; }
`;

const KINDS = { manifest: MANIFEST, chart: CHART } as const;
const REVISIONS: Readonly<Record<Journey, number>> = { install: 1, update: 2, remove: 2 };
const DONE: Readonly<Record<Journey, string>> = { install: '1', update: '2', remove: '-' };

type Agent = ReturnType<typeof startAgent>;

function startAgent({ box }: AgentScene, env: Readonly<Record<string, string>> = {}, words: readonly string[] = []) {
  const own = ['--root', 'site', '--kubeconfig', 'here.conf', '--ca-file', 'ca.pem', '--helm', box.at('helm')];
  return execa(process.execPath, ['--import', POINTS, MAIN, 'agent', 'run', ...own, '--delay', '1s', ...words], {
    cwd: box.path,
    env: cleanEnvironment({ cwd: box.path, env: { KILL_MODE: 'tree', ...env } }),
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
}

/** Ends those that are still running. */
async function endAll(agents: readonly Agent[]): Promise<void> {
  for (const one of agents) {
    one.kill('SIGKILL');
    await one;
  }
}

/** Lets the next request at the point kill the agent. Returns how often the page was written or deleted in the cluster since. */
function arm(scene: AgentScene, { at, after, isHandled = false }: Point, agent: () => Agent | undefined): () => number {
  const counted: Record<Place, number> = { hub: 0, here: 0, files: 0, helm: 0 };
  let isArmed = typeof at !== 'string';
  let isAfter = after === undefined;
  const [place, pattern] = typeof at === 'string' ? [undefined, /^$/] : at;
  const look =
    (from: Place) =>
    (request: string): void => {
      const isHit = isArmed && isAfter && from === place && pattern.test(request);
      if (isHit) {
        isArmed = false;
        agent()?.kill('SIGKILL');
      }
      if (from === 'here' && after?.test(request) === true) isAfter = true;
      if (isHit && !isHandled) throw new StatusError(500, 'InternalError', 'nobody is there to hear this');
      if (from === 'helm' ? /^(?:upgrade|uninstall)/.test(request) : from === 'here' && PAGE.test(request))
        counted[from] += 1;
    };
  scene.before(look('hub'), look('here'), look('files'));
  scene.helm.before(look('helm'));
  return () => (place === 'helm' ? counted.helm : counted.here);
}

/** The last failure, if it still fails after a while. */
async function soon(check: () => Promise<void>): Promise<void> {
  const end = performance.now() + SOON_MS;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
      await wait(100);
    }
  }
}

/** What is left on the disk: nothing half-written, and the record of what was reported. */
async function requireTidy(scene: AgentScene, revision: number, files: readonly string[]): Promise<void> {
  const folder = scene.box.at('site/var/lib/curlew/agent');
  const text = await readFile(`${folder}/record.json`, 'utf8');
  const { addons } = readAgentRecord(text, (what) => new Error(what));
  assert.is(addons['web']?.spec.revision, revision);
  assert.is(addons['web']?.state, 'Succeeded');
  const all = await readdir(folder, { recursive: true });
  assert.equal(
    all.filter((one) => one.includes('partial')),
    [],
  );
  const kept = all.filter((one) => /^files\/[0-9a-f]{64}$/.test(one)).map((one) => one.slice('files/'.length));
  assert.equal(kept, files);
}

async function tryPoint(kind: keyof typeof KINDS, point: Point): Promise<void> {
  const { journey = 'install', times } = point;
  await using scene = await openAgentScene();
  await scene.register();
  const map = (name: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default' },
    data: { version: '1' },
  });
  const source = (
    kind === 'manifest' ? scene.manifest('1', { objects: [map('page'), map('sidebar')] }) : scene.chart('1')
  ) as { readonly hash: Digest };
  const next = journey === 'update' ? (scene[kind]('2') as { readonly hash: Digest }) : source;
  const agents: Agent[] = [];
  try {
    const { hash } = journey === 'install' ? source : next;
    const at =
      typeof point.at === 'string' ? point.at.replace(/^copy (\w+)/, `rename agent/files/${hexOf(hash)} $1 1`) : '';
    let agent: Agent | undefined;
    if (journey !== 'install') {
      await scene.order({ source });
      agents.push((agent = startAgent(scene)));
      await scene.becomes('1 Succeeded');
    }
    const count = arm(scene, point, () => agent);
    const revision = REVISIONS[journey];
    const action = journey === 'remove' ? 'Remove' : 'Install';
    await scene.order({ source: next, revision, action });
    if (agent === undefined) agents.push((agent = startAgent(scene, { KILL_AT: at })));
    const { signal, stderr } = await agent;
    assert.is(signal, 'SIGKILL', stderr);
    agents.push(startAgent(scene));
    await scene.becomes(`${revision} Succeeded`);
    assert.is(await scene.version(), DONE[journey]);
    const sidebar = await scene.here.get('/api/v1/namespaces/default/configmaps/sidebar');
    assert.is(sidebar.status, kind === 'manifest' && journey === 'install' ? 200 : 404);
    await soon(async () => requireTidy(scene, revision, [hexOf(hash)]));
    assert.ok(count() <= times && count() > 0, `done ${count()} times`);
  } catch (error) {
    throw new Error(`killed ${point.title}: ${String(error)}`, { cause: error });
  } finally {
    await endAll(agents);
  }
}

for (const kind of ['manifest', 'chart'] as const) {
  const points = sampleOf(KINDS[kind], SHARE);
  test(`killed at points of a ${kind}, ${points.length} in this run, it does what was left, and reports it`, async ({
    signal,
  }) => {
    await eachLimited(points, async (point) => tryPoint(kind, point), { width: WIDTH, signal });
  });
}

const reason = cannotRun();
const hooks = sampleOf(PACKAGE, SHARE);
if (reason === undefined) {
  test(`killed at points of a package, ${hooks.length} in this run, it continues there, and no hook that has ended runs again`, async ({
    signal,
  }) => {
    await using box = await tree();
    await mkdir(box.at('store'));
    const made = await madePackage(box, 'page', '1.0.0', SCRIPT);
    await publishAs(createFolderStore(box.at('store')), 'r1', [made], signal);
    await curlewOk(['keygen', 'our'], { cwd: box.path });
    await curlewOk(['sign', '--store', 'store', '--release', 'r1', '--key', 'our.key'], { cwd: box.path });
    const keys = [readPublicKey(await readFile(box.at('our.pub'), 'utf8'), 'our.pub')];
    const source = { package: { name: 'page', version: '1.0.0', hash: made.addon.digest } };
    const tryPackage = async ({ title, journey, at, times }: Point): Promise<void> => {
      await using scene = await openAgentScene();
      await scene.register(keys);
      const order = { source, values: { greeting: 'hello' } };
      await scene.order(order);
      const from = ['--from', box.at('store')];
      const first = startAgent(scene, { KILL_AT: String(at) }, from);
      const agents = [first];
      try {
        const isRemoval = journey === 'remove';
        if (isRemoval) {
          await scene.becomes('1 Succeeded');
          await scene.order({ ...order, revision: 2, action: 'Remove' });
        }
        const { signal: killed, stderr } = await first;
        assert.is(killed, 'SIGKILL', stderr);
        agents.push(startAgent(scene, {}, from));
        await scene.becomes(isRemoval ? '2 Succeeded' : '1 Succeeded');
        const lines = (await readFile(scene.box.at('site/var/lib/curlew/page'), 'utf8')).trim().split('\n');
        const ended = lines.filter((one) => one === (isRemoval ? 'gone' : 'hello')).length;
        assert.ok(ended > 0 && ended <= times, lines.join(' '));
        await soon(async () => requireTidy(scene, isRemoval ? 2 : 1, []));
      } catch (error) {
        throw new Error(`killed ${title}: ${String(error)}`, { cause: error });
      } finally {
        await endAll(agents);
      }
    };
    await eachLimited(hooks, tryPackage, { width: WIDTH, signal });
  });
} else test.skip('agents killed in the hooks of packages', reason);

test.run();
