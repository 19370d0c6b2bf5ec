/**
 * The steps of `scripts/fleet-demo`: each prints the command that it runs and what that has printed, and then looks at the clusters
 * themselves. Ends with status 1 at the first thing that is not as it should be.
 */
import { writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { chartOf, GONE, PAGE } from '../components/support/chart-scene.ts';
import { openFleetLab, type FleetLab, type Running } from '../components/support/fleet-lab.ts';
import { BUILT_MAIN } from '../support/built.ts';

const WIDTH = 110;
const LINES = 6;
const FIELDS = [
  '.metadata.namespace',
  '.spec.version',
  '.spec.revision',
  '.spec.startedAt',
  '.status.applied.revision',
  '.status.state',
  '.status.reason',
  '.status.since',
  '.status.message',
];
/** Kubectl makes blanks of tabs here. */
const CHANGES = `${FIELDS.map((field) => `{${field}}`).join('|')}{"\\n"}`;
const EVENTS =
  'kubectl get events -o jsonpath=\'{range .items[?(@.involvedObject.kind=="FleetAddon")]}{.firstTimestamp}{"\\t"}{.reason}{"\\t"}{.message}{"\\n"}{end}\'';

const isKept = process.argv.includes('--keep');
let number = 0;

function step(text: string): void {
  number += 1;
  console.log(`\n${number}. ${text}`);
}

function shown(text: string, most = LINES): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const first = lines.length > most ? [...lines.slice(0, most - 1), `… and ${lines.length - most + 1} lines`] : lines;
  return first.map((line) => `   ${line.length > WIDTH ? `${line.slice(0, WIDTH - 1)}…` : line}`).join('\n');
}

function check(what: string, found: string, expected: string): void {
  if (found.trim() !== expected)
    throw new Error(`${what}: it is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
  console.log(`   ✓ ${what}`);
}

/** A version of the add-on, which goes to the canary first and back if it fails. */
async function apply(lab: FleetLab, version: string, templates: Readonly<Record<string, string>>): Promise<void> {
  const { url, hash } = lab.publish(`web-${version}.tgz`, chartOf(version, templates));
  const spec = {
    source: { chart: { package: url, version, namespace: 'default' }, hash },
    clusterSelector: { matchLabels: { env: 'prod' } },
    valuesTemplate: `data: {version: ${version}, greeting: "hello from {{ .Cluster.name }}"}`,
    rollout: {
      type: 'Progressive',
      groups: [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }],
      mandatoryDecisionGroups: [{ groupName: 'canary' }],
      maxConcurrency: 2,
      onFailure: 'Rollback',
    },
  };
  const object = { apiVersion: 'fleet.curlew.dev/v1alpha1', kind: 'FleetAddon', metadata: { name: 'web' }, spec };
  await writeFile(lab.box.at(`web-${version}.json`), JSON.stringify(object, undefined, 2));
  await lab.run(`kubectl apply -f web-${version}.json`);
}

/** From each change of an object that the API server of the hub has shown, and from its events. */
function timeline(changes: string, events: string): readonly string[] {
  const found = new Map<string, string>();
  for (const line of changes.split('\n')) {
    const [namespace = '', version, revision, startedAt, applied, state, reason, since, message] = line.split('|');
    if (startedAt === undefined) continue;
    const what = `${namespace.replace('fleet-', '').padEnd(6)} ${version}, revision ${revision}:`;
    found.set(`${what} ordered`, startedAt);
    if (applied === revision)
      found.set([what, state, reason, message].filter((one) => one !== '').join(' '), since ?? '');
  }
  const all = [...found].map(([what, at]) => ({ what, at }));
  for (const line of events.split('\n')) {
    const [at = '', reason, message] = line.split('\t');
    all.push({ what: `hub    ${reason}: ${message}`, at });
  }
  return all
    .toSorted((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)))
    .map(({ what, at }) => `${at.slice(11, 19)}  ${what}`);
}

async function demo(lab: FleetLab): Promise<void> {
  const { run, start, becomes } = lab;
  const page = async (cluster: string): Promise<string> =>
    run(`kubectl --kubeconfig ${cluster}.conf get configmap page -o jsonpath='{.data.version}, {.data.greeting}'`);
  const table = async (): Promise<string> => run('kubectl get clusteraddons -A');
  const available = async (): Promise<string> =>
    run('kubectl wait --for=condition=Available fleetaddon/web --timeout=180s');

  step('The controller, with the account that the manifests have made for it');
  await lab.startController();
  const changes = start(`kubectl get clusteraddons -A --watch -o jsonpath='${CHANGES}'`);

  step('oslo is near: the hub gets its kubeconfig, and the controller delivers to it. It is the canary');
  await lab.push('oslo', { env: 'prod', ring: 'canary' });

  step('paris and rome are remote: their agents connect to the hub, and nothing connects to them');
  const agents = new Map<string, Running>();
  for (const cluster of ['paris', 'rome']) {
    await lab.register(cluster);
    await run(`kubectl label clusters.fleet.curlew.dev ${cluster} -n fleet-${cluster} env=prod`);
    agents.set(cluster, lab.startAgent(cluster));
  }
  for (const cluster of ['oslo', 'paris', 'rome'])
    await run(
      `kubectl wait --for=condition=Available clusters.fleet.curlew.dev/${cluster} -n fleet-${cluster} --timeout=120s`,
    );
  await run('kubectl get clusters.fleet.curlew.dev -A');

  step('web 1.0.0: a signed chart with values of each cluster, first on the canary');
  await apply(lab, '1.0.0', { page: PAGE });
  await available();
  await table();
  for (const cluster of ['oslo', 'paris', 'rome'])
    check(`${cluster} has 1.0.0 with its own values`, await page(cluster), `1.0.0, hello from ${cluster}`);

  step('web 1.1.0 is bad: it has an object of an API that Kubernetes has not served since 1.25');
  await apply(lab, '1.1.0', { page: PAGE, budget: GONE });
  await run('kubectl wait --for=condition=Degraded fleetaddon/web --timeout=180s');
  await run("kubectl get fleetaddon web -o jsonpath='{.status.stopped}'");
  await becomes(
    "kubectl get clusteraddon web -n fleet-oslo -o jsonpath='{.spec.version} {.status.applied.revision} {.status.state}'",
    '1.0.0 3 Succeeded',
  );
  await table();
  check('the canary is back at 1.0.0', await page('oslo'), '1.0.0, hello from oslo');
  for (const cluster of ['paris', 'rome']) {
    const revision = await run(`kubectl get clusteraddon web -n fleet-${cluster} -o jsonpath='{.spec.revision}'`);
    check(`${cluster} has never heard of 1.1.0`, revision, '1');
  }

  step('rome has no power, its agent and its API server are killed, and web 1.2.0 comes meanwhile');
  await agents.get('rome')?.kill();
  await lab.clusters.get('rome')?.kill();
  await apply(lab, '1.2.0', { page: PAGE });
  await becomes("kubectl get fleetaddon web -o jsonpath='{.status.counts.Succeeded} {.status.batch}'", '2 ["rome"]');
  await table();
  for (const cluster of ['oslo', 'paris'])
    check(`${cluster} has 1.2.0`, await page(cluster), `1.2.0, hello from ${cluster}`);
  console.log('   rome is back, and needs nothing from people');
  await lab.clusters.get('rome')?.startAgain();
  lab.startAgent('rome');
  await available();
  check('rome has 1.2.0', await page('rome'), '1.2.0, hello from rome');

  step('paris leaves the fleet: its agent has no rights from then on, and what it runs stays');
  await run('curlew fleet detach paris --yes');
  const asParis = 'kubectl --kubeconfig paris/var/lib/curlew/agent/kubeconfig get clusteraddons -n fleet-paris';
  const refused = await run(asParis, 1);
  check('its certificate gives no rights', String(refused.includes('Forbidden')), 'true');
  await agents.get('paris')?.kill();
  await run('curlew agent unregister --root paris --yes');
  check('paris has 1.2.0', await page('paris'), '1.2.0, hello from paris');

  step('What happened, from the objects and events of the hub');
  console.log(shown(timeline(changes.said(), await run(EVENTS)).join('\n'), Infinity));
}

const begun = Date.now();
step(
  'API servers with their etcd: one for the hub, with kube-controller-manager, and one for each of oslo, paris and rome',
);
await using lab = await openFleetLab({
  main: BUILT_MAIN,
  clusters: ['oslo', 'paris', 'rome'],
  onCommand: (line, output) => {
    if (output === undefined) console.log(`$ ${line}`);
    else if (output.trim() !== '') console.log(shown(output));
  },
});
let failed = false;
try {
  await demo(lab);
  console.log(`\nAll of it was as it should be, in ${Math.round((Date.now() - begun) / 1000)} s.`);
} catch (error) {
  failed = true;
  console.error(`\nerror: ${error instanceof Error ? error.message : String(error)}`);
}
if (isKept) {
  console.log(`
It runs until Ctrl-C. In another terminal:
  cd ${lab.box.path}
  export PATH=$PWD/bin:$PATH KUBECONFIG=$PWD/hub.conf
  kubectl get fleet -A
  kubectl describe fleetaddon web
  kubectl --kubeconfig rome.conf get configmap page -o yaml`);
  await wait(2 ** 31 - 1, undefined, { ref: true });
}
process.exitCode = failed ? 1 : 0;
