/** Passes over a fleet, whose clusters are API servers of the tests. */
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { at } from '../support/api-client.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { addon, channel, cluster, documents } from '../support/fleet-files.ts';
import { BAD, canaryAddon, doneIn, installedScene, openFleetScene, statesIn } from '../support/fleet-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/fleet-apply');
const THREE = ['lyon', 'nice', 'paris'];
const CANARY = { nice: { canary: 'true' } };

test('passes bring an add-on to the canary, then to the rest, and a settled pass writes nothing', async () => {
  await using scene = await openFleetScene(THREE);
  await scene.fleet([canaryAddon()], CANARY);
  await scene.manifest('1');
  assert.equal(doneIn(await scene.apply()), ['nice web install done']);
  assert.is(await scene.versions(), '- 1 -');
  const second = await scene.apply();
  assert.equal(doneIn(second), ['lyon web install done', 'paris web install done']);
  assert.equal(statesIn(second), ['lyon Succeeded none', 'nice Succeeded none', 'paris Succeeded none']);
  await scene.apply();
  const before = THREE.map((name) => scene.requests(name).length);
  const state = await readFile(scene.box.at('.curlew/fleet/state.json'), 'utf8');
  assert.equal(doneIn(await scene.apply()), []);
  const written = THREE.flatMap((name, at) =>
    scene
      .requests(name)
      .slice(before[at])
      .filter((one) => !one.startsWith('GET ')),
  );
  assert.equal(written, []);
  assert.is(await readFile(scene.box.at('.curlew/fleet/state.json'), 'utf8'), state);
});

test('a bad manifest at the canary stops there, although no record says so, and others stay', async () => {
  await using scene = await openFleetScene(THREE);
  await scene.fleet([canaryAddon()], CANARY);
  await scene.manifest('1', BAD);
  const first = await scene.apply();
  assert.equal(doneIn(first), ['nice web install failed']);
  assert.match(first.targets.find(({ cluster }) => cluster === 'nice')?.message ?? '', 'Missing');
  const again = await scene.apply();
  assert.equal(doneIn(again), []);
  assert.equal(statesIn(again), ['lyon ToApply wait Stopped', 'nice Failed none', 'paris ToApply wait Stopped']);
  await scene.manifest('2');
  assert.equal(doneIn(await scene.apply()), ['nice web install done']);
  assert.equal(doneIn(await scene.apply()), ['lyon web install done', 'paris web install done']);
});

test('a bad version that five clusters have taken goes back to the last good one, whose file is gone', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  await using scene = await openFleetScene(names);
  const rollout = { type: 'Progressive', maxFailures: 0, minSuccessTime: '1h', onFailure: 'Rollback' };
  await scene.fleet([addon('web')]);
  await scene.manifest('1');
  await scene.apply();
  await scene.fleet([addon('web', { rollout })]);
  await scene.manifest('2');
  scene.before((name, request) => {
    if (name === 'e' && request.startsWith('PATCH /api/v1/namespaces/default/configmaps'))
      throw new StatusError(422, 'Invalid', 'broken');
  });
  assert.equal(doneIn(await scene.apply()), [
    'a web update done',
    'b web update done',
    'c web update done',
    'd web update done',
    'e web update failed',
    'f web update done',
  ]);
  scene.before(undefined);
  assert.is(await scene.versions(), '2 2 2 2 1 2');
  const back = await scene.apply();
  assert.equal(
    doneIn(back),
    names.map((name) => `${name} web go back done`),
  );
  assert.is(await scene.versions(), '1 1 1 1 1 1');
  assert.equal(doneIn(await scene.apply()), []);
  await scene.manifest('3');
  await scene.apply();
  assert.is(await scene.versions(), '3 3 3 3 3 3');
});

test('a canary that goes back has failed until it is back', async () => {
  await using scene = await openFleetScene(THREE);
  await scene.fleet([canaryAddon({ onFailure: 'Rollback' })], CANARY);
  await scene.manifest('1');
  await scene.apply();
  await scene.apply();
  await scene.manifest('2');
  scene.before((name, request) => {
    if (name === 'nice' && request.startsWith('PATCH /api/v1/namespaces/default/configmaps'))
      throw new StatusError(422, 'Invalid', 'broken');
  });
  const failed = await scene.apply();
  assert.equal(statesIn(failed), ['lyon ToApply wait Stopped', 'nice Failed go back', 'paris ToApply wait Stopped']);
  assert.not.match(failed.done[0]?.reason ?? '', /[0-9a-f]{64}/);
});

test('what others delete returns, and what they change as drift says', async () => {
  await using scene = await openFleetScene(['lyon']);
  const path = '/api/v1/namespaces/default/configmaps/page';
  const change = async () => scene.api('lyon').merge(path, { data: { version: 'mine' } });
  await scene.fleet([addon('web')]);
  await scene.manifest('1');
  await scene.apply();
  await scene.api('lyon').remove(path);
  assert.equal(statesIn(await scene.plan()), ['lyon Succeeded restore']);
  assert.equal(doneIn(await scene.apply()), ['lyon web restore done']);
  assert.is(await scene.versions(), '1');
  await change();
  const warned = await scene.apply();
  assert.equal([doneIn(warned), statesIn(warned)], [[], ['lyon Succeeded none']]);
  assert.match(warned.warnings.join(), 'lyon: web was changed by others: ConfigMap default/page');
  await scene.fleet([addon('web', { drift: 'Keep' })]);
  assert.equal((await scene.apply()).warnings, []);
  assert.is(await scene.versions(), 'mine');
  const windows = [{ cron: `0 0 1 ${((new Date().getUTCMonth() + 2) % 12) + 1} *`, duration: '1m' }];
  await scene.fleet([addon('web', { drift: 'Revert', rollout: { windows } })]);
  assert.equal(statesIn(await scene.apply()), ['lyon Succeeded wait Window']);
  await scene.fleet([addon('web', { drift: 'Revert' })]);
  assert.equal(doneIn(await scene.apply()), ['lyon web restore done']);
  assert.is(await scene.versions(), '1');
});

test('what an add-on says of drift counts before what its channel says for the Kubernetes of the cluster', async () => {
  await using scene = await openFleetScene(['lyon']);
  const path = '/api/v1/namespaces/default/configmaps/page';
  const change = async () => scene.api('lyon').merge(path, { data: { version: 'mine' } });
  const source = { channel: { name: 'stable' } };
  const entry = { name: 'web', version: '1.0.0', manifest: 'web.yaml' };
  const fleet = async (spec: object, drift: object): Promise<void> => {
    const other = { ...entry, version: '2.0.0', kubernetesVersion: '>=1.99.0', drift: 'Keep' };
    await scene.fleet([channel('stable', other, { ...entry, ...drift }), addon('web', { source, ...spec })]);
  };
  await fleet({}, {});
  await scene.manifest('1');
  await scene.apply();
  await change();
  const warned = await scene.apply();
  assert.match(warned.warnings.join(), 'lyon: web was changed by others: ConfigMap default/page');
  await fleet({ drift: 'Keep' }, { drift: 'Revert' });
  const kept = await scene.apply();
  assert.equal([doneIn(kept), kept.warnings, await scene.versions()], [[], [], 'mine']);
  await fleet({ drift: 'Revert' }, { drift: 'Keep' });
  assert.equal(doneIn(await scene.apply()), ['lyon web restore done']);
  assert.is(await scene.versions(), '1');
  await change();
  await fleet({}, { drift: 'Revert' });
  assert.equal(doneIn(await scene.apply()), ['lyon web restore done']);
});

test('two clusters that cannot be read hold no other, and catch up when they are back', async () => {
  await using scene = await openFleetScene(['a', 'b', 'c', 'd']);
  await scene.fleet([addon('web')]);
  await scene.manifest('1');
  let gone = ['b', 'c'];
  scene.before((name) => {
    if (gone.includes(name)) throw new StatusError(401, 'Unauthorized', 'Unauthorized');
  });
  const first = await scene.apply();
  assert.equal(doneIn(first), ['a web install done', 'd web install done']);
  const since = first.targets.find(({ cluster }) => cluster === 'b')?.since;
  assert.equal(statesIn(first)[1], 'b Unreachable wait Unreachable');
  assert.is((await scene.apply()).targets.find(({ cluster }) => cluster === 'b')?.since, since);
  gone = ['c'];
  assert.equal(doneIn(await scene.apply()), ['b web install done']);
});

test('a label that changes on all clusters by mistake removes the add-on from none', async () => {
  await using scene = await installedScene(THREE);
  await scene.fleet([addon('web')], Object.fromEntries(THREE.map((name) => [name, { env: 'test' }])));
  const held = await scene.apply();
  assert.equal(doneIn(held), []);
  assert.equal(new Set(statesIn(held).map((line) => line.split(' ').at(-1))), new Set(['Removals']));
  await scene.fleet([addon('web')], { nice: { env: 'test' } });
  assert.equal(doneIn(await scene.apply()), ['nice web remove done']);
  assert.is(await scene.versions(), '1 - 1');
  assert.equal(statesIn(await scene.apply()), ['lyon Succeeded none', 'paris Succeeded none']);
});

test('labels that change one after the other take the add-on from no more clusters in a day than all at once', async () => {
  await using scene = await installedScene(THREE);
  const cwd = scene.box.path;
  const apply = async () => curlew(['fleet', 'apply', 'fleet.yaml', '--state', '.curlew/fleet', '--yes'], { cwd });
  const labels: Record<string, { env: string }> = {};
  for (const name of THREE) {
    labels[name] = { env: 'test' };
    await scene.fleet([addon('web')], labels);
    const { exitCode, stdout } = await apply();
    assert.is(exitCode, name === 'lyon' ? 0 : 2);
    if (name !== 'lyon') assert.match(stdout, / removals within 24h, and 1 may: approve /);
  }
  assert.is(await scene.versions(), '- 1 1');
  const state = await readFile(scene.box.at('.curlew/fleet/state.json'), 'utf8');
  await writeFile(scene.box.at('.curlew/fleet/state.json'), state.replace(/"removed":\[.*?\]/, '"removed":"none"'));
  await scene.fleet([addon('web')], { lyon: { env: 'test' }, nice: { env: 'test' } });
  assert.match((await apply()).stdout, /an unknown number of removals within 24h, and 1 may: approve 1/);
  assert.is(await scene.versions(), '- 1 1');
  await rm(scene.box.at('.curlew/fleet/state.json'));
  assert.is((await apply()).exitCode, 0);
  assert.is(await scene.versions(), '- - 1');
});

test('an add-on that is to stay where it is no longer selected loses only its record', async () => {
  await using scene = await installedScene(THREE);
  await scene.fleet([addon('web', { remove: { onUnselect: 'Leave' } })], {
    lyon: { env: 'test' },
    nice: { env: 'test' },
  });
  const [lyon] = (await scene.plan()).targets;
  assert.equal([lyon?.cluster, lyon?.now], ['lyon', 'forget']);
  assert.match(lyon?.message ?? '', /^will leave its objects/);
  assert.equal(doneIn(await scene.apply()), ['lyon web forget done', 'nice web forget done']);
  assert.is(await scene.versions(), '1 1 1');
  assert.equal(statesIn(await scene.apply()), ['paris Succeeded none']);
});

test('the brake also counts clusters that had the add-on when they last answered', async () => {
  await using scene = await openFleetScene(THREE);
  await scene.fleet([addon('web', { rollout: { maxRemovals: '34%' } })]);
  await scene.manifest('1');
  await scene.apply();
  for (const name of ['nice', 'paris']) await writeFile(scene.box.at(`${name}.conf`), 'kind: Config\n');
  const labels = Object.fromEntries(THREE.map((name) => [name, { env: 'test' }]));
  await scene.fleet([addon('web', { rollout: { maxRemovals: '34%' } })], labels);
  const held = await scene.apply();
  assert.equal(doneIn(held), []);
  assert.equal(statesIn(held), [
    'lyon ToApply wait Removals',
    'nice Unreachable wait Unreachable',
    'paris Unreachable wait Unreachable',
  ]);
  assert.match(held.targets[0]?.message ?? '', /^3 removals at once, and 2 may/);
});

test('what a pass has not begun when the maintenance window closes waits for the next window', async () => {
  await using scene = await openFleetScene(['lyon']);
  const hour = new Date().getUTCHours();
  const windows = [{ cron: `* ${hour},${(hour + 1) % 24} * * *`, duration: '1m' }];
  await scene.fleet([addon('base'), addon('web', { rollout: { windows } })]);
  await scene.manifest('1');
  const base = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'base', namespace: 'default' } };
  await writeFile(scene.box.at('base.yaml'), JSON.stringify(base));
  const { now } = Date;
  scene.before((_name, request) => {
    if (/PATCH .*configmaps\/base/.test(request)) Date.now = () => now() + 12 * 3_600_000;
  });
  try {
    const pass = await scene.apply();
    assert.equal(doneIn(pass), ['lyon base install done', 'lyon web install later']);
    assert.equal(statesIn(pass), ['lyon Succeeded none', 'lyon ToApply wait Window']);
  } finally {
    Date.now = now;
  }
  scene.before(undefined);
  assert.equal(doneIn(await scene.apply()), ['lyon web install done']);
});

test('Git ignores a folder of state wherever it is', async () => {
  await using scene = await openFleetScene(['lyon']);
  await scene.fleet([addon('web')]);
  await scene.manifest('1');
  await scene.apply({ state: 'other' });
  const ignored = await readFile(scene.box.at('other/.gitignore'), 'utf8');
  assert.ok(['/state.json', '/orders.json', '/files/'].every((name) => ignored.split('\n').includes(name)));
  await writeFile(scene.box.at('other/.gitignore'), 'mine\n');
  await scene.apply({ state: 'other' });
  assert.is(await readFile(scene.box.at('other/.gitignore'), 'utf8'), 'mine\n');
});

test('a template that fails for one cluster holds only that one', async () => {
  await using scene = await openFleetScene(THREE);
  const valuesTemplate = '{{ if eq .Cluster.name "nice" }}{{ fail "no address" }}{{ end }}';
  await scene.fleet([addon('web', { valuesTemplate })]);
  await scene.manifest('1');
  const pass = await scene.apply();
  assert.equal(doneIn(pass), ['lyon web install done', 'paris web install done']);
  assert.match(pass.targets.find(({ cluster }) => cluster === 'nice')?.message ?? '', 'no address');
});

test('an add-on of a channel is taken over only by name or adopt, and two of one name are refused', async () => {
  await using scene = await openFleetScene(['lyon']);
  await scene.fleet([addon('web')]);
  await scene.manifest('1');
  const annotations = { 'addons.k8s.io/web': '{"version":"1.0.0"}' };
  await scene.api('lyon').merge('/api/v1/namespaces/kube-system', { metadata: { annotations } });
  assert.equal(statesIn(await scene.apply()), ['lyon ToApply wait Owner']);
  assert.equal(doneIn(await scene.apply({ takeOver: ['web'] })), ['lyon web install done']);
  assert.equal(statesIn(await scene.apply()), ['lyon Succeeded none']);
  await assert.rejectsWith(scene.apply({ takeOver: ['wbe'] }), 'NOT_FOUND', /no add-on wbe/);
  await scene.fleet([addon('web'), addon('web')]);
  await assert.rejectsWith(scene.apply(), 'SPEC_INVALID', /1 error in its files/);
});

test('a pass that was killed in a delivery is continued, however late, and what was done is not done again', async () => {
  await using scene = await openFleetScene(['lyon', 'nice']);
  await scene.fleet([addon('web')]);
  await scene.manifest('1');
  const stop = new AbortController();
  scene.before((name, request) => {
    if (name !== 'nice' || !/PATCH .*configmaps\/page/.test(request) || request.includes('dryRun')) return;
    stop.abort(new Error('killed'));
  });
  const killed = await scene.apply({}, { signal: stop.signal }).then(
    () => 'done',
    (error: unknown) => String(error),
  );
  assert.match(killed, 'killed');
  scene.before(undefined);
  for (const name of ['lyon', 'nice'])
    await scene.api(name).remove('/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/curlew-addons');
  const rest = doneIn(await scene.apply());
  assert.ok(rest.includes('nice web continue done'), rest.join());
  assert.is(await scene.versions(), '1 1');
  assert.equal(doneIn(await scene.apply()), []);
});

test('a lost state is safe: records of the clusters say what is done', async () => {
  await using scene = await openFleetScene(THREE);
  await scene.fleet([canaryAddon()], CANARY);
  await scene.manifest('1');
  await scene.apply();
  await rm(scene.box.at('.curlew'), { recursive: true });
  assert.equal(doneIn(await scene.apply()), ['lyon web install done', 'paris web install done']);
});

test('of two operators with one state, the second is refused; with two states, the first on a cluster acts', async () => {
  await using scene = await openFleetScene(['lyon']);
  await scene.fleet([addon('web')]);
  await scene.manifest('1');
  // The first one waits in its first request to the cluster until the second one has ended.
  let second: Promise<unknown> | undefined;
  scene.before(async () => {
    second ??= scene.apply().catch((error: unknown) => error);
    await second;
  });
  assert.equal(doneIn(await scene.apply()), ['lyon web install done']);
  scene.before(undefined);
  assert.match(String(await second), 'is being written by process');
  await scene.manifest('2');
  const two = await Promise.all([scene.apply(), scene.apply({ state: 'other' })]);
  assert.equal(two.flatMap(doneIn).filter((line) => line.endsWith(' done')).length, 1);
  assert.is(await scene.versions(), '2');
});

test('a state file that is not whole, or of a newer version, is named and refused, and others may not read it', async () => {
  await using scene = await installedScene(['lyon']);
  const path = scene.box.at('.curlew/fleet/state.json');
  assert.is((await stat(path)).mode & 0o777, 0o600);
  for (const [text, what] of [
    ['{"format":1', /cannot read the state of the fleet in \S+state\.json: it is not JSON/],
    ['{"format":2}', /it has format 2, and this version reads 1/],
    ['{"format":1,"clusters":[]}', /clusters: not an object/],
  ] as const) {
    await writeFile(path, text);
    await assert.rejectsWith(scene.apply(), 'FILE_UNUSABLE', what);
    await assert.rejectsWith(scene.plan(), 'FILE_UNUSABLE', what);
  }
});

test('an operator with an older curlew changes nothing where a newer one has written a record that it cannot read', async () => {
  await using scene = await installedScene(['lyon', 'nice']);
  const records = '/api/v1/namespaces/kube-system/configmaps/curlew-addons';
  const read = async (): Promise<Readonly<Record<string, string>>> =>
    at((await scene.api('lyon').get(records)).body, 'data') as Readonly<Record<string, string>>;
  const newer = ((await read())['kube-system.web'] ?? '').replace('"Succeeded"', '"Verified"');
  assert.match(newer, 'Verified');
  await scene.api('lyon').merge(records, { data: { 'kube-system.web': newer } });
  await scene.manifest('2');
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'dns', namespace: 'default' } };
  await writeFile(scene.box.at('dns.yaml'), documents(map));
  await scene.fleet([addon('web'), addon('dns')]);
  const pass = await scene.apply();
  assert.equal(doneIn(pass).toSorted(), ['lyon dns install done', 'nice dns install done', 'nice web update done']);
  assert.is(await scene.versions(), '1 2');
  assert.equal(
    pass.targets.flatMap(({ reason, message }) => (reason === undefined ? [] : [`${reason}: ${message}`])),
    ['Owner: it belongs to another program'],
  );
  const warning = 'record kube-system.web cannot be read: a newer curlew may have written it, so use that version';
  assert.equal([pass.warnings, (await read())['kube-system.web']], [[`lyon: ${warning}`], newer]);
});

test('a cluster that gets another name keeps its add-ons, and loses none under the former name', async () => {
  await using scene = await installedScene(['lyon']);
  const renamed = cluster('lugdunum', { env: 'prod' }, { access: { kubeconfig: 'lyon.conf' } });
  await writeFile(scene.box.at('fleet.yaml'), documents(renamed, addon('web')));
  const pass = await scene.apply();
  assert.equal([doneIn(pass), statesIn(pass)], [[], ['lugdunum Succeeded none']]);
  await scene.manifest('2');
  assert.equal(doneIn(await scene.apply()), ['lugdunum web update done']);
  assert.is(await scene.versions(), '2');
});

test.run();
