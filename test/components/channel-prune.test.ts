/** What happens on a real API server to objects that an add-on no longer has, or that another add-on has. */
import { writeFile } from 'node:fs/promises';
import { planRemoval, removeFromCluster, type ChannelRemoval } from '../../src/app/channel-remove.ts';
import * as assert from '../support/assert.ts';
import { kubeconfigText } from '../support/kube-server.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { changes, channelScene, configMap, outcomes, type ChannelScene } from './support/channel-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/channel-prune', { timeoutMs: 120_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

if (reason === undefined) {
  let server: ApiServer;
  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
  });
  test.after(opened.close);

  /** Names of the scene's ConfigMaps. */
  const maps = async ({ kubectl }: ChannelScene): Promise<string> => {
    const names = await kubectl('get', 'configmap', '-o', 'jsonpath={.items[*].metadata.name}');
    return names
      .split(' ')
      .filter((name) => name !== 'kube-root-ca.crt')
      .join(' ');
  };
  const orphansOf = async (scene: ChannelScene): Promise<readonly string[]> => {
    const { addons } = await scene.apply();
    return addons.flatMap(({ orphans }) => orphans.map(({ object, why }) => `${object.split('/').at(-1)}: ${why}`));
  };
  const remove = async (scene: ChannelScene, addon: string, request = {}): Promise<ChannelRemoval> =>
    removeFromCluster({ addon, kubeconfig: server.kubeconfig, ...request }, scene.context);
  const failures = async (work: Promise<ChannelRemoval>): Promise<readonly string[]> =>
    (await work).errors.map(({ message }) => message);

  test('what versions without prune have left behind is deleted by the first version with prune', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const page = configMap('page', namespace);
    await scene.write('v1.yaml', page, configMap('one', namespace));
    await scene.write('v2.yaml', page, configMap('two', namespace));
    await scene.write('v3.yaml', page);
    const entry = { name: 'web', version: '1.0.0', manifest: 'v1.yaml' };
    await scene.channel([entry]);
    await scene.apply();
    await scene.channel([{ ...entry, version: '2.0.0', manifest: 'v2.yaml' }]);
    assert.equal(await orphansOf(scene), ['one: nothing prunes this add-on (prune)']);
    await scene.channel([{ ...entry, version: '3.0.0', manifest: 'v3.yaml', prune: 'auto' }]);
    const [plan] = (await scene.plan()).addons;
    assert.equal(changes(plan ?? { objects: [] }, namespace).toSorted(), ['- ConfigMap one', '- ConfigMap two']);
    await scene.apply();
    assert.is(await maps(scene), 'page');
  });

  test('only recorded objects are deleted: one that has the label, that lost it or that somebody made again is reported', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    await scene.write('v1.yaml', ...['page', 'old', 'bare', 'again'].map((name) => configMap(name, namespace)));
    await scene.write('v2.yaml', configMap('page', namespace));
    const entry = { name: 'web', version: '1.0.0', manifest: 'v1.yaml', prune: 'auto' };
    await scene.channel([entry]);
    await scene.apply();
    const label = `fleet.curlew.dev/addon=${namespace}.web`;
    await scene.kubectl('label', 'configmap', 'bare', 'fleet.curlew.dev/addon-');
    await scene.kubectl('delete', 'configmap', 'again');
    for (const name of ['again', 'labelled']) await scene.kubectl('create', 'configmap', name);
    for (const name of ['again', 'labelled']) await scene.kubectl('label', 'configmap', name, label);
    await scene.channel([{ ...entry, version: '2.0.0', manifest: 'v2.yaml' }]);
    assert.equal((await orphansOf(scene)).toSorted(), [
      'again: another program created it again with the label of this add-on',
      'bare: its label of this add-on was removed',
      'labelled: it has the label of this add-on, and the record does not name it',
    ]);
    assert.is(await maps(scene), 'again bare labelled page');
  });

  test('a list of kinds deletes what it selects, and reports the rest', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const labelled = (name: string, tier: string): object => ({
      ...configMap(name, namespace),
      metadata: { name, namespace, labels: { tier } },
    });
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace } };
    const old = [labelled('one', 'a'), labelled('two', 'b'), labelled('three', 'a')];
    await scene.write('v1.yaml', configMap('page', namespace), secret, ...old);
    await scene.write('v2.yaml', configMap('page', namespace));
    const prune = [{ kind: 'ConfigMap', labelSelector: 'tier in (a)', fieldSelector: 'metadata.name!=three' }];
    const entry = { name: 'web', version: '1.0.0', manifest: 'v1.yaml', prune };
    await scene.channel([entry]);
    await scene.apply();
    await scene.channel([{ ...entry, version: '2.0.0', manifest: 'v2.yaml' }]);
    const why = 'prune in the channel does not select it';
    assert.equal((await orphansOf(scene)).toSorted(), [`key: ${why}`, `three: ${why}`, `two: ${why}`]);
    assert.is(await maps(scene), 'page three two');
  });

  test('by the rules of kops a bare kind deletes nothing at first, then what it selects, counted, and never records', async () => {
    await using own = await tree();
    await using alone = await startApiServer(own.at('server'));
    await using scene = await channelScene(alone);
    const { namespace, box, kubectl } = scene;
    const index = async (id: string): Promise<void> => {
      await scene.write(`${id}.yaml`, configMap(id, namespace));
      const kinds = [
        { kind: 'ConfigMap' },
        { kind: 'Secret' },
        { group: 'rbac.authorization.k8s.io', kind: 'ClusterRole' },
      ];
      const entry = { name: 'web', namespace, id, manifest: `${id}.yaml`, prune: { kinds } };
      await writeFile(
        box.at('channel.yaml'),
        JSON.stringify({ kind: 'Addons', metadata: { name: 'x' }, spec: { addons: [entry] } }),
      );
    };
    await kubectl('create', 'configmap', 'foreign');
    await kubectl('create', 'secret', 'generic', 'sh.helm.release.v1.db.v1');
    await kubectl('create', 'configmap', 'kube-root-ca.crt');
    await kubectl('create', 'configmap', 'held');
    await kubectl('label', 'configmap', 'held', 'fleet.curlew.dev/addon=sites.other');
    await index('v1');
    assert.equal(outcomes(await scene.apply({ compat: 'kops' })), ['web install applied']);
    assert.is(await maps(scene), 'foreign held v1');
    await index('v2');
    const plan = await scene.plan({ compat: 'kops' });
    assert.match(
      plan.warnings.join('\n'),
      /prune of web has no labelSelector and no namespaces for ConfigMap: it selects [0-9]+ objects of the whole cluster/,
    );
    const done = await scene.apply({ compat: 'kops' });
    assert.equal(outcomes(done), ['web update applied']);
    assert.is(await maps(scene), 'held v2');
    assert.match(await kubectl('get', 'secret', '-o', 'name'), 'sh.helm.release.v1.db.v1');
    assert.match(
      await kubectl('get', 'clusterrole', '-o', 'name'),
      'clusterrole.rbac.authorization.k8s.io/cluster-admin\n',
    );
    assert.equal(outcomes(await scene.apply({ compat: 'kops' })), ['web none unchanged']);
  });

  test('a pruned object that a finalizer holds is reported until it is gone, and its record stays as long', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const held = {
      ...configMap('held', namespace),
      metadata: { name: 'held', namespace, finalizers: ['example.com/wait'] },
    };
    await scene.write('v1.yaml', configMap('page', namespace), held);
    await scene.write('v2.yaml', configMap('page', namespace));
    const entry = { name: 'web', version: '1.0.0', manifest: 'v1.yaml', prune: 'auto' };
    await scene.channel([entry]);
    await scene.apply();
    await scene.channel([{ ...entry, version: '2.0.0', manifest: 'v2.yaml' }]);
    const [done] = (await scene.apply({ timeout: 300 })).addons;
    const why = 'still being deleted (finalizers example.com/wait)';
    assert.equal(
      [done?.state, done?.objects, done?.orphans],
      ['applied', [], [{ object: `ConfigMap ${namespace}/held`, why }]],
    );
    assert.equal(await failures(remove(scene, 'web', { namespace })), [`ConfigMap ${namespace}/held is ${why}`]);
    assert.is((await scene.annotation('web'))?.['version'], '2.0.0');
    await scene.kubectl('patch', 'configmap', 'held', '--type', 'merge', '-p', '{"metadata":{"finalizers":[]}}');
    assert.ok((await remove(scene, 'web', { namespace })).isDone);
    assert.is(await scene.annotation('web'), undefined);
  });

  test('a removal reports what is not the add-on any more, and keeps the record of what it may not look at', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace } };
    await scene.write('v1.yaml', configMap('page', namespace), configMap('bare', namespace), secret);
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'v1.yaml' }]);
    await scene.apply();
    await scene.kubectl('label', 'configmap', 'bare', 'fleet.curlew.dev/addon-');
    const user = `jane-${namespace}`;
    await writeFile(box.at('conf'), await kubeconfigAs(server, user));
    const resources = '--resource=configmaps,namespaces,leases.coordination.k8s.io';
    await server.kubectl(['create', 'clusterrole', user, '--verb=*', resources]);
    await server.kubectl(['create', 'clusterrolebinding', user, `--clusterrole=${user}`, `--user=${user}`]);
    const [failure] = await failures(remove(scene, 'web', { namespace, kubeconfig: box.at('conf') }));
    assert.match(failure ?? '', /^cannot read Secret \S+\/key: .*forbidden/);
    assert.is((await scene.annotation('web'))?.['version'], '1.0.0');
    const bare = { object: `ConfigMap ${namespace}/bare`, why: 'its label of this add-on was removed' };
    const request = { addon: 'web', namespace, kubeconfig: server.kubeconfig };
    const { objects, orphans } = await planRemoval(request, scene.context);
    assert.equal([objects, orphans], [[`Secret ${namespace}/key`], [bare]]);
    const done = await remove(scene, 'web', { namespace });
    assert.equal([done.isDone, done.objects, done.orphans], [true, [`Secret ${namespace}/key`], [bare]]);
    assert.is(await scene.annotation('web'), undefined);
  });

  test('an object that moves to another add-on of the channel is handed over with its fields, whichever comes first', async () => {
    for (const isLoserFirst of [true, false]) {
      await using scene = await channelScene(server);
      const { namespace, kubectl } = scene;
      const [one, other] = [configMap('one', namespace), configMap('other', namespace)];
      await scene.write('one-v1.yaml', one, configMap('data', namespace, { a: '1', b: '1' }));
      await scene.write('other-v1.yaml', other);
      await scene.write('one-v2.yaml', one);
      await scene.write('other-v2.yaml', other, configMap('data', namespace, { a: '2' }));
      const channel = async (version: string): Promise<string> => {
        const entries = ['one', 'other'].map((name) => {
          return { name, version: `${version}.0.0`, manifest: `${name}-v${version}.yaml`, prune: 'auto' };
        });
        return scene.channel(isLoserFirst ? entries : entries.toReversed());
      };
      await channel('1');
      await scene.apply();
      const uid = await kubectl('get', 'configmap', 'data', '-o', 'jsonpath={.metadata.uid}');
      await channel('2');
      const moves = { object: `ConfigMap ${namespace}/data`, why: `it moves to ${namespace}.other` };
      const orphans = ({ addons }: Awaited<ReturnType<ChannelScene['plan']>>) =>
        addons.flatMap((addon) => addon.orphans);
      assert.equal(orphans(await scene.plan()), [moves]);
      const alone = await scene.apply({ addons: ['one'] });
      assert.equal([outcomes(alone), orphans(alone)], [['one update applied'], [moves]]);
      await channel('1');
      await scene.apply({ allowDowngrade: true });
      await channel('2');
      const pass = await scene.apply();
      assert.equal(outcomes(pass).toSorted(), ['one update applied', 'other update applied']);
      const template = 'jsonpath={.metadata.uid} {.data} {.metadata.labels} {.metadata.managedFields[*].manager}';
      assert.is(
        await kubectl('get', 'configmap', 'data', '--show-managed-fields', '-o', template),
        `${uid} {"a":"2"} {"fleet.curlew.dev/addon":"${namespace}.other"} curlew/${namespace}.other`,
      );
      assert.equal(outcomes(await scene.apply()).toSorted(), ['one none unchanged', 'other none unchanged']);

      // A command that is killed in between leaves both managers.
      const labels = { 'fleet.curlew.dev/addon': `${namespace}.other` };
      const data = { ...configMap('data', namespace, { a: '2' }), metadata: { name: 'data', namespace, labels } };
      await scene.write('killed.yaml', data);
      const as = `--field-manager=curlew/${namespace}.one`;
      await kubectl('apply', '--server-side', as, '-f', scene.box.at('killed.yaml'));
      await scene.write('one-v3.yaml', one);
      await scene.write('other-v3.yaml', other, configMap('data', namespace, { a: '3' }));
      await channel('3');
      assert.equal(outcomes(await scene.apply()).toSorted(), ['one update applied', 'other update applied']);
      const managers = 'jsonpath={.data.a} {.metadata.managedFields[*].manager}';
      assert.is(
        await kubectl('get', 'configmap', 'data', '--show-managed-fields', '-o', managers),
        `3 curlew/${namespace}.other`,
      );
    }
  });

  test('what another add-on keeps is refused with both names, by all rules, until it is taken over', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    await scene.write('one.yaml', configMap('data', namespace, { v: 'one' }));
    await scene.write('two.yaml', configMap('data', namespace, { v: 'two' }), configMap('more', namespace));
    const two = { name: 'two', version: '1.0.0', manifest: 'two.yaml', drift: 'Revert' };
    await scene.channel([{ name: 'one', version: '1.0.0', manifest: 'one.yaml' }, two]);
    const value = async (): Promise<string> => scene.kubectl('get', 'configmap', 'data', '-o', 'jsonpath={.data.v}');
    const refusal = `cannot apply ConfigMap ${namespace}/data of ${namespace}.two: it belongs to the add-on ${namespace}.one`;
    const errors = ({ addons }: Awaited<ReturnType<ChannelScene['apply']>>): readonly string[] =>
      addons.flatMap((addon) => addon.errors.map(({ message }) => message));
    const first = await scene.apply({ forceConflicts: true });
    assert.equal([outcomes(first), errors(first)], [['one install applied', 'two install failed'], [refusal]]);
    assert.equal(errors(await scene.plan()), [refusal]);
    const entry = { name: 'three', namespace, id: 'x', manifest: 'two.yaml' };
    const index = { kind: 'Addons', metadata: { name: 'x' }, spec: { addons: [entry] } };
    await writeFile(box.at('index.yaml'), JSON.stringify(index));
    const kops = await scene.apply({ channels: ['index.yaml'], compat: 'kops' });
    assert.equal(errors(kops), [refusal.replace('.two', '.three')]);
    assert.equal([await value(), await maps(scene)], ['one', 'data']);
    await scene.kubectl('label', 'configmap', 'data', '--overwrite', 'fleet.curlew.dev/addon=nobody');
    await scene.channel([{ name: 'one', version: '1.0.0', manifest: 'one.yaml', drift: 'Revert' }]);
    assert.equal(outcomes(await scene.apply()), ['one restore applied']);
    await scene.channel([two]);
    assert.equal(errors(await scene.apply()), [refusal]);
    assert.equal(outcomes(await scene.apply({ takeOver: ['two'] })), ['two install applied']);
    assert.is(await value(), 'two');
  });

  test('what has an owner of another program is not taken over, and stays, named, when its add-on is removed', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    await scene.write('boss.yaml', configMap('boss', namespace), configMap('data', namespace, { v: '0' }));
    await scene.kubectl('apply', '-f', scene.box.at('boss.yaml'));
    const uid = await scene.kubectl('get', 'configmap', 'boss', '-o', 'jsonpath={.metadata.uid}');
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'boss', uid };
    const own = async (owners: readonly object[]): Promise<string> =>
      scene.kubectl(
        'patch',
        'configmap',
        'data',
        '-p',
        JSON.stringify({ metadata: { ownerReferences: owners } }),
        '--type=merge',
      );
    await own([owner]);
    await scene.write('web.yaml', configMap('data', namespace, { v: '1' }), configMap('more', namespace));
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'web.yaml', drift: 'Revert' }]);
    const { addons } = await scene.apply();
    assert.match(addons[0]?.errors[0]?.message ?? '', 'Kubernetes deletes it with its owner, ConfigMap boss: remove');
    assert.is(await maps(scene), 'boss data');
    await own([]);
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
    await own([owner]);
    const { objects, orphans } = await remove(scene, 'web', { namespace });
    const stays = { object: `ConfigMap ${namespace}/data`, why: 'it is deleted with its owner, ConfigMap boss' };
    assert.equal([objects, orphans], [[`ConfigMap ${namespace}/more`], [stays]]);
  });
} else test.skip('objects that add-ons leave behind on an API server', reason);

/** A kubeconfig of the server's administrator who acts as another user. */
async function kubeconfigAs({ kubectl, url }: Pick<ApiServer, 'kubectl' | 'url'>, as: string): Promise<string> {
  const conf = JSON.parse(await kubectl(['config', 'view', '--raw', '-o', 'json'])) as {
    readonly clusters: readonly [{ readonly cluster: object }];
    readonly users: readonly [{ readonly user: object }];
  };
  return kubeconfigText(url, { ...conf.users[0].user, as }, conf.clusters[0].cluster);
}

test.run();
