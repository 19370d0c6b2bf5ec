/** Charts of a fleet, with a program in the place of helm. */
import { chmod, readFile, writeFile } from 'node:fs/promises';
import type { FleetPass } from '../../src/app/fleet-apply.ts';
import { retryAddon } from '../../src/app/fleet-order.ts';
import { checkFleet } from '../../src/app/fleet-check.ts';
import { planFleetPass, planFleets } from '../../src/app/fleet-plan.ts';
import * as assert from '../support/assert.ts';
import { addon, channel } from '../support/fleet-files.ts';
import { doneIn, openFleetScene, statesIn } from '../support/fleet-scene.ts';
import { startHelm, type HelmStandIn } from '../support/helm-stand-in.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';
import { createDefinitions } from '../support/upstream-kinds.ts';

const test = suite('app/fleet-charts');
const WORK = { group: 'work.open-cluster-management.io', version: 'v1', kind: 'AppliedManifestWork' };
const WORKS = [{ ...WORK, plural: 'appliedmanifestworks', scope: 'Cluster' }] as const;

/** `helm-of-repository`: `show` prints the file `newest`, and `pull` notes its words in `pulled`, and takes the file `page` as the chart. */
async function writeRepositoryHelm({ at }: Tree, { program }: Pick<HelmStandIn, 'program'>): Promise<void> {
  await writeFile(at('page'), JSON.stringify([{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page' } }]));
  const text = `#!/bin/bash
if [ "$1" = show ]; then exec cat '${at('newest')}'; fi
if [ "$1" = pull ]; then
  echo "$*" >>'${at('pulled')}'
  while [ "$1" != --destination ]; do shift; done
  exec cp '${at('page')}' "$2/page.tgz"
fi
exec '${program}' "$@"
`;
  await writeFile(at('helm-of-repository'), text);
  await chmod(at('helm-of-repository'), 0o755);
}

test('values are rendered once, and a release passes to another add-on of the fleet only by name', async () => {
  await using scene = await openFleetScene(['lyon']);
  await using helm = await startHelm(scene.api('lyon'), scene.box);
  const program = scene.box.at('helm-with-copy');
  const env = { PATH: process.env['PATH'] };
  const apply = async (more: object = {}): Promise<FleetPass> => scene.apply({ helm: program, ...more }, { env });
  const copy = 'while [ $# -gt 0 ]; do [ "$1" != --values ] || cp "$2" values.json; shift; done';
  await writeFile(program, `#!/bin/bash\n(${copy})\nexec '${helm.program}' "$@"\n`);
  await chmod(program, 0o755);
  const page = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page' }, data: { version: '1' } };
  await writeFile(scene.box.at('web.tgz'), JSON.stringify([page]));
  const chart = { package: 'web.tgz', values: { server: '{{ .Cluster.server }}', cpu: null, log: 'debug' } };
  const entry = { name: 'web', version: '1.0.0', namespace: 'default', chart: { ...chart, namespace: 'default' } };
  const source = { channel: { name: 'stable', addon: 'web' } };
  const config = { default: { text: '{{ raw }}', probe: { port: null } } };
  const spec = { source, config, valuesTemplate: 'host: "{{ .Cluster.name }}"\nlog: null' };
  await scene.fleet([channel('stable', entry), addon('web', spec)]);
  assert.equal(doneIn(await apply()), ['lyon web install done']);
  const written = JSON.parse(await readFile(scene.box.at('values.json'), 'utf8')) as Record<string, unknown>;
  const { server, ...values } = written;
  assert.match(String(server), /^https:/);
  assert.equal(values, { cpu: null, log: null, text: '{{ raw }}', probe: { port: null }, host: 'lyon' });
  assert.equal(doneIn(await apply()), []);

  await scene.fleet([channel('stable', entry), addon('web', spec), addon('site', spec)]);
  await assert.rejectsWith(apply(), 'SPEC_INVALID', /1 error in its files/);
  await scene.fleet([channel('stable', entry), addon('site', spec)]);
  assert.equal(statesIn(await apply()), ['lyon ToApply wait Owner']);
  const taken = await apply({ takeOver: ['site'] });
  assert.equal([doneIn(taken), taken.detached], [['lyon site install done'], []]);
  assert.equal(
    helm.commands.filter((one) => one.startsWith('uninstall')),
    [],
  );
});

test('the chart of a HelmChartProxy is downloaded with the login in a Secret among the files, which is kept nowhere', async () => {
  await using scene = await openFleetScene(['lyon']);
  await using helm = await startHelm(scene.api('lyon'), scene.box);
  const { at } = scene.box;
  await writeRepositoryHelm(scene.box, helm);
  const proxy = (annotations: object) => ({
    apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
    kind: 'HelmChartProxy',
    metadata: { name: 'page', annotations },
    spec: {
      clusterSelector: { matchLabels: { env: 'prod' } },
      repoURL: 'https://charts.example.com',
      chartName: 'page',
    },
  });
  const given = { helm: at('helm-of-repository') };
  const env = { PATH: process.env['PATH'] };
  const apply = async (): Promise<FleetPass> => scene.apply(given, { env });
  await scene.fleet([proxy({ 'curlew.dev/compat': 'caaph' })]);
  await writeFile(at('newest'), 'apiVersion: v2\nname: page\nversion: 1.0.0\n');
  assert.equal(doneIn(await apply()), ['lyon page install done']);
  assert.equal(doneIn(await apply()), []);
  await writeFile(at('newest'), 'name: page\nversion: "1.1.0"\n');
  assert.equal(doneIn(await apply()), ['lyon page update done']);
  await writeFile(at('newest'), '');
  const unknown = await apply();
  assert.equal([doneIn(unknown), unknown.warnings], [[], []]);
  const pulled = await readFile(at('pulled'), 'utf8');
  assert.equal(
    pulled.split('\n').flatMap((line) => /--version (\S+)/.exec(line)?.[1] ?? []),
    ['1.0.0', '1.1.0'],
  );
  await writeFile(at('newest'), 'version: 1.2.0\n');
  await scene.fleet([proxy({})]);
  const { warnings } = await apply();
  assert.match(warnings[0] ?? '', 'keeps it; the provider upgrades it');
});

test('a chart repository with plain http needs to be allowed, which each verb says and accepts in the same way', async () => {
  await using scene = await openFleetScene(['lyon']);
  await using helm = await startHelm(scene.api('lyon'), scene.box);
  const { at } = scene.box;
  await writeRepositoryHelm(scene.box, helm);
  const chart = { repoURL: 'http://charts.test:8080', name: 'page', version: '1.0.0', namespace: 'default' };
  await scene.fleet([addon('page', { source: { chart } })]);
  const context = { ...scene.context, env: { PATH: process.env['PATH'] } };
  const files = ['fleet.yaml'];
  const refused = /plain http to charts\.test:8080 is not allowed; .*--allow-http charts\.test:8080/;
  const allowHttp = ['charts.test:8080'];
  await writeFile(at('config.json'), JSON.stringify({ allowHttp }));
  const given = { helm: at('helm-of-repository') };
  const checked = await checkFleet({ files }, context);
  assert.equal([checked.errors, checked.warnings], [0, 1]);
  assert.match(checked.diagnostics[0]?.message ?? '', refused);
  assert.is((await checkFleet({ files, config: 'config.json' }, context)).warnings, 0);
  for (const plan of [planFleets, planFleetPass]) {
    assert.match((await plan({ files }, context)).warnings.join(), refused);
    assert.equal((await plan({ files, allowHttp }, context)).warnings, []);
  }
  assert.match((await planFleets({ files, diff: true, ...given }, context)).targets[0]?.message ?? '', refused);
  const { diffs } = await planFleets({ files, diff: true, allowHttp, ...given }, context);
  assert.equal(
    diffs?.map(({ objects }) => objects.map(({ object }) => object)),
    [['ConfigMap default/page']],
  );
  assert.match(
    (await scene.apply({ ...given, state: 'other' }, context)).done[0]?.reason ?? '',
    'plain http to charts.test:8080 is not allowed',
  );
  assert.equal(doneIn(await scene.apply({ ...given, allowHttp }, context)), ['lyon page install done']);
  assert.match(await readFile(at('pulled'), 'utf8'), 'page --repo http://charts.test:8080');
});

test('what others add to a release stays with Revert, and is named; a cluster that is not selected keeps the release with Leave', async () => {
  await using scene = await openFleetScene(['lyon']);
  await using helm = await startHelm(scene.api('lyon'), scene.box);
  const context = { env: { PATH: process.env['PATH'] } };
  const apply = async (): Promise<FleetPass> => scene.apply({ helm: helm.program }, context);
  const client = scene.api('lyon');
  const page = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page' }, data: { own: '1' } };
  await writeFile(scene.box.at('web.tgz'), JSON.stringify([page]));
  const chart = { package: 'web.tgz', namespace: 'default' };
  const entry = { name: 'web', version: '1.0.0', drift: 'Revert', chart };
  const source = { channel: { name: 'stable', addon: 'web' } };
  const web = addon('web', { source, remove: { onUnselect: 'Leave' } });
  await scene.fleet([channel('stable', entry), web]);
  assert.equal(doneIn(await apply()), ['lyon web install done']);
  const map = '/api/v1/namespaces/default/configmaps/page';
  await client.merge(map, { data: { more: '2' } }, 'kubectl-edit');
  assert.equal(doneIn(await apply()), []);
  assert.equal((await scene.plan()).targets[0]?.added, ['ConfigMap default/page: data more of kubectl-edit']);
  await client.merge(map, { data: { own: '3' } }, 'kubectl-edit');
  assert.equal(doneIn(await apply()), ['lyon web restore done']);
  assert.equal((await client.get(map)).body['data'], { own: '1', more: '2' });

  await scene.fleet([channel('stable', entry), web], { lyon: { env: 'test' } });
  assert.equal(doneIn(await apply()), ['lyon web forget done']);
  assert.equal((await client.get(map)).body['data'], { own: '1', more: '2' });
  const { body } = await client.get('/api/v1/namespaces/kube-system/configmaps/curlew-addons');
  assert.equal([body['data'] ?? {}, helm.commands.filter((one) => one.startsWith('uninstall'))], [{}, []]);
});

test('a chart that takes over objects takes none that an AppliedManifestWork owns, before helm has changed anything', async () => {
  await using scene = await openFleetScene(['lyon']);
  await using helm = await startHelm(scene.api('lyon'), scene.box);
  const env = { PATH: process.env['PATH'] };
  const apply = async (): Promise<FleetPass> => scene.apply({ helm: helm.program }, { env });
  const maps = '/api/v1/namespaces/default/configmaps';
  const map = (name: string, more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, ...more },
  });
  const work = {
    apiVersion: 'work.open-cluster-management.io/v1',
    kind: 'AppliedManifestWork',
    name: 'h-web',
    uid: 'w1',
  };
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'boss', uid: 'b1' };
  const client = scene.api('lyon');
  await client.create(maps, map('page', { ownerReferences: [work] }));
  await client.create(maps, map('style', { ownerReferences: [other] }));
  await writeFile(scene.box.at('web.tgz'), JSON.stringify(['first', 'page', 'style'].map((name) => map(name))));
  const chart = { package: 'web.tgz', namespace: 'default' };
  const entry = { name: 'web', version: '1.0.0', namespace: 'default', chart };
  const source = { channel: { name: 'stable', addon: 'web' } };
  await scene.fleet([channel('stable', entry), addon('web', { source, adopt: true })]);
  const plan = async () =>
    planFleets({ files: ['fleet.yaml'], diff: true, helm: helm.program }, { ...scene.context, env });
  // Without the kind, no chart is rendered for this.
  assert.equal((await plan()).targets[0]?.message, undefined);
  await createDefinitions(client, WORKS);
  const way = 'set spec.deleteOption.propagationPolicy of its ManifestWork to Orphan, and delete that';
  const why = `cannot apply ConfigMap default/page of default.web: Kubernetes deletes it with its owner, AppliedManifestWork h-web: ${way}`;
  assert.is((await plan()).targets[0]?.message, why);
  const { done } = await apply();
  assert.equal(
    done.map(({ result, reason }) => [result, reason]),
    [['failed', why]],
  );
  assert.is((await client.get(`${maps}/first`)).status, 404);
  assert.ok(!helm.commands.includes('upgrade web'));
  await client.merge(`${maps}/page`, { metadata: { ownerReferences: [] } });
  await retryAddon({ addon: 'web', files: ['fleet.yaml'] }, scene.context);
  assert.equal(doneIn(await apply()), ['lyon web install done']);
  // What the release has may get an owner.
  await client.merge(`${maps}/page`, { metadata: { ownerReferences: [work] } });
  await writeFile(scene.box.at('web.tgz'), JSON.stringify(['page', 'style'].map((name) => map(name))));
  assert.equal(doneIn(await apply()), ['lyon web update done']);
});

test.run();
