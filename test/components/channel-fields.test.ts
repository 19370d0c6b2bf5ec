/** Fields of add-ons of channels on a real API server: whose they are, what became of them, and what cannot be changed. */
import { createHash } from 'node:crypto';
import { copyFile } from 'node:fs/promises';
import { applyFleet } from '../../src/app/fleet-apply.ts';
import { planFleets } from '../../src/app/fleet-plan.ts';
import { canonicalJson } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { addon, cluster } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { channelScene, configMap, countRequests, outcomes, startGateway } from './support/channel-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/channel-fields', { timeoutMs: 120_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

if (reason === undefined) {
  let server: ApiServer;
  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
  });
  test.after(opened.close);

  test('a command that is stopped while another one takes over writes nothing more when it continues', async () => {
    await using scene = await channelScene(server);
    const { namespace, box } = scene;
    const maps = (v: string): readonly object[] =>
      Array.from({ length: 30 }, (_, at) => configMap(`page-${at}`, namespace, { v }));
    await scene.write('v1.yaml', ...maps('1'));
    await scene.write('v2.yaml', ...maps('2'));
    const entry = { name: 'web', version: '1', manifest: 'v1.yaml' };
    await scene.channel([entry]);
    const children: ReturnType<typeof startCurlew>[] = [];
    const stop = (number: number): void => {
      if (number === 10) children[0]?.kill('SIGSTOP');
    };
    await using gateway = await startGateway(server, box, { before: stop });
    const child = startCurlew(['channel', 'apply', 'channel.yaml', '--yes', '--kubeconfig', gateway.kubeconfig], {
      cwd: box.path,
    });
    children.push(child);
    await scene.kubectl('wait', '--for=create', 'configmap/page-0', '--timeout=60s');
    await scene.channel([{ ...entry, version: '2', manifest: 'v2.yaml' }]);
    assert.equal(outcomes(await scene.apply()), ['web install applied']);
    child.kill('SIGCONT');
    const { exitCode, stderr } = await child;
    assert.match(stderr, /the Lease kube-system\/curlew-addons was lost to another process/);
    assert.is(exitCode, 19);
    const values = await scene.kubectl('get', 'configmap', '-l', 'fleet.curlew.dev/addon', '-o', 'jsonpath={..data.v}');
    assert.is(
      values,
      maps('2')
        .map(() => '2')
        .join(' '),
    );
    assert.equal(outcomes(await scene.apply()), ['web none unchanged']);
  });

  const readRecord = async (key: string): Promise<string> => {
    const map = JSON.parse(
      await server.kubectl(['-n', 'kube-system', 'get', 'configmap', 'curlew-addons', '-o', 'json']),
    ) as {
      readonly data: Readonly<Record<string, string>>;
    };
    return map.data[key] ?? '';
  };

  test('a value that is changed under the manager of the add-on is drift, which Revert sets back', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const id = `${namespace}.web`;
    await scene.write('web.yaml', configMap('page', namespace, { a: '1' }), configMap('style', namespace, { a: '1' }));
    const entry = { name: 'web', version: '1', manifest: 'web.yaml' };
    await scene.channel([entry]);
    await scene.apply();
    const metadata = { name: 'page', namespace, labels: { 'fleet.curlew.dev/addon': id } };
    await server.kubectl(
      ['apply', '--server-side', `--field-manager=curlew/${id}`, '-f', '-'],
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '2' } }),
    );
    await scene.kubectl('patch', 'configmap', 'style', '-p', '{"data":{"a":"3"}}', '--field-manager', `curlew/${id}`);
    const [shown] = (await scene.plan()).addons;
    const field = { field: '.data.a', after: '"1"' };
    assert.equal(shown?.drift, [
      { object: `ConfigMap ${namespace}/page`, change: 'change', fields: [{ ...field, before: '"2"' }] },
      { object: `ConfigMap ${namespace}/style`, change: 'change', fields: [{ ...field, before: '"3"' }] },
    ]);
    await scene.channel([{ ...entry, drift: 'Revert' }]);
    assert.equal(outcomes(await scene.apply()), ['web revert applied']);
    assert.is(await scene.kubectl('get', 'configmap', 'page', 'style', '-o', 'jsonpath={.items[*].data.a}'), '1 1');
    assert.equal(outcomes(await scene.apply()), ['web none unchanged']);
  });

  test('what people add beside the fields of a fleet with Revert stays, and the plan names it with its manager', async () => {
    await using scene = await channelScene(server);
    const { namespace, box, context, kubectl } = scene;
    const container = { name: 'web', image: 'web:1', env: [{ name: 'A', value: '1' }] };
    const pod = { spec: { restartPolicy: 'Never', containers: [container] } };
    const spec = { schedule: '0 0 1 1 *', suspend: true, jobTemplate: { spec: { template: pod } } };
    const ports = [{ name: 'http', port: 80 }];
    await scene.write(
      'web.yaml',
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace }, spec: { ports } },
      { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'web', namespace }, spec },
    );
    await copyFile(server.kubeconfig, box.at('paris.conf'));
    const web = addon(namespace, { source: { manifest: 'web.yaml' }, drift: 'Revert' });
    await scene.write('fleet.yaml', cluster('paris', { env: 'prod' }), web);
    const request = { files: [box.at('fleet.yaml')] };
    await applyFleet(request, context);
    const env = `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"DEBUG","value":"1"}]}]}}}}}}`;
    await kubectl('patch', 'cronjob', 'web', '-p', env);
    await kubectl('label', 'service', 'web', 'team=a');
    const wanted = '{"spec":{"ports":[{"name":"mine","port":80},{"name":"extra","port":81}]}}';
    await kubectl('patch', 'service', 'web', '--type', 'merge', '-p', wanted);
    assert.equal(
      (await applyFleet(request, context)).done.map(({ act, result }) => `${act} ${result}`),
      ['restore done'],
    );
    assert.is(await kubectl('get', 'service', 'web', '-o', 'jsonpath={.spec.ports[*].name}'), 'http extra');
    assert.equal((await planFleets(request, context)).targets[0]?.added?.toSorted(), [
      `CronJob ${namespace}/web: jobTemplate template container web env DEBUG of kubectl-patch`,
      `Service ${namespace}/web: label team of kubectl-label, port 81 of kubectl-patch`,
    ]);
  });

  test('a record without values is compared as before, and nothing is written', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    await scene.write('web.yaml', configMap('page', namespace, { a: '1' }));
    const entry = { name: 'web', version: '1', manifest: 'web.yaml', drift: 'Revert' };
    await scene.channel([entry]);
    await scene.apply();
    const live = JSON.parse(await scene.kubectl('get', 'configmap', 'page', '-o', 'json', '--show-managed-fields')) as {
      readonly metadata: { readonly managedFields: readonly { readonly fieldsV1: object }[] };
    };
    const fields = canonicalJson(live.metadata.managedFields[0]?.fieldsV1);
    const old = createHash('sha256').update(fields).digest('hex').slice(0, 16);
    const key = `${namespace}.web`;
    const record = (await readRecord(key)).replace(/"owned":"values:[0-9a-f]{16}"/, `"owned":"${old}"`);
    const patch = JSON.stringify({ data: { [key]: record } });
    await server.kubectl(['-n', 'kube-system', 'patch', 'configmap', 'curlew-addons', '--type', 'merge', '-p', patch]);
    const requests = await countRequests(async () =>
      assert.equal(outcomes(await scene.apply()), ['web none unchanged']),
    );
    assert.ok(requests.every((one) => one.startsWith('GET ')));
    assert.is(await readRecord(key), record);
    await scene.kubectl('patch', 'configmap', 'page', '-p', '{"data":{"a":"2"}}');
    assert.equal(outcomes(await scene.apply()), ['web revert applied']);
    assert.match(await readRecord(key), '"owned":"values:');
  });

  test('the record of a Secret does not tell whoever guesses its value that the guess is right', async () => {
    await using scene = await channelScene(server);
    const secret = (name: string): object => {
      const metadata = { name, namespace: scene.namespace };
      return { apiVersion: 'v1', kind: 'Secret', metadata, data: { pin: 'NDgx' } };
    };
    await scene.write('web.yaml', secret('one'), secret('two'));
    await scene.channel([{ name: 'web', version: '1', manifest: 'web.yaml' }]);
    await scene.apply();
    const digests = (await readRecord(`${scene.namespace}.web`)).match(/values:[0-9a-f]{16}/g) ?? [];
    assert.is(new Set(digests).size, 2);
  });

  /** Without a variable, a sidecar and more that the old one has. */
  const podTemplate = (namespace: string, isOld: boolean): object => {
    const env = (name: string): object => ({ name, value: '1' });
    const port = { containerPort: 53 };
    const web = { name: 'web', image: 'web:1', env: [env('A'), ...(isOld ? [env('OLD')] : [])], ports: [port] };
    const spec = {
      containers: [web, ...(isOld ? [{ name: 'sidecar', image: 'sidecar:1' }] : [])],
      ...(isOld ? { tolerations: [{ operator: 'Exists' }], hostNetwork: true } : {}),
    };
    return { apiVersion: 'v1', kind: 'PodTemplate', metadata: { name: 'pods', namespace }, template: { spec } };
  };

  for (const [title, words] of [
    ['kops applied', ['apply', '--server-side', '--field-manager', 'kops']],
    ['kubectl applied on the server', ['apply', '--server-side']],
    ['kubectl applied', ['apply']],
    ['kubectl created', ['create']],
  ] as const) {
    test(`what ${title} and the new version does not have goes, as the plan says`, async () => {
      await using scene = await channelScene(server);
      const { namespace } = scene;
      const old = [podTemplate(namespace, true), configMap('page', namespace, { a: '1', old: '1' })];
      for (const object of old) await server.kubectl([...words, '-f', '-'], JSON.stringify(object));
      await scene.kubectl('patch', 'configmap', 'page', '-p', '{"data":{"b":"jane"}}', '--field-manager', 'jane');
      await scene.write('a.yaml', podTemplate(namespace, false), configMap('page', namespace, { a: '1' }));
      await scene.channel([{ name: 'web', version: '1', manifest: 'a.yaml' }]);
      const [planned] = (await scene.plan()).addons;
      const [done] = (await scene.apply()).addons;
      assert.is(done?.state, 'applied');
      const gone = (planned?.objects ?? []).flatMap(({ fields }) =>
        fields.flatMap(({ field, after }) => (after === undefined && !field.includes('annotations') ? [field] : [])),
      );
      const path = '.template.spec';
      assert.equal(gone.toSorted(), [
        '.data.old',
        `${path}.containers[name="sidecar"]`,
        `${path}.containers[name="web"].env[name="OLD"]`,
        `${path}.hostNetwork`,
        `${path}.tolerations`,
      ]);
      const live = JSON.parse(await scene.kubectl('get', 'podtemplate', 'pods', '-o', 'json')) as {
        readonly metadata: { readonly annotations?: object };
        readonly template: { readonly spec: { readonly containers: readonly { readonly name: string }[] } };
      };
      assert.equal(
        live.template.spec.containers.map(({ name }) => name),
        ['web'],
      );
      assert.is(live.metadata.annotations, undefined);
      assert.is(await scene.kubectl('get', 'configmap', 'page', '-o', 'jsonpath={.data}'), '{"a":"1","b":"jane"}');
      assert.equal(outcomes(await scene.apply()), ['web none unchanged']);
    });
  }

  test('a budget goes from a minimum, which kubectl applied, to a maximum', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const budget = (spec: object): object => {
      const selector = { matchLabels: { app: 'dns' } };
      return {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: 'dns', namespace },
        spec: { selector, ...spec },
      };
    };
    await server.kubectl(['apply', '-f', '-'], JSON.stringify(budget({ minAvailable: 1 })));
    await scene.write('a.yaml', budget({ maxUnavailable: '50%' }));
    await scene.channel([{ name: 'dns', version: '1', manifest: 'a.yaml' }]);
    const plan = await scene.plan();
    assert.equal(outcomes(plan), ['dns install planned']);
    assert.equal(
      plan.addons[0]?.objects[0]?.fields.filter(({ field }) => field.startsWith('.spec')),
      [
        { field: '.spec.minAvailable', before: '1', after: undefined },
        { field: '.spec.maxUnavailable', before: undefined, after: '"50%"' },
      ],
    );
    assert.equal(outcomes(await scene.apply()), ['dns install applied']);
    assert.is(
      await scene.kubectl('get', 'pdb', 'dns', '-o', 'jsonpath={.spec.minAvailable}{.spec.maxUnavailable}'),
      '50%',
    );
  });

  test('a value of another program is a conflict also the first time, and its fields later on are its own', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const applied = async (data: Readonly<Record<string, string>>): Promise<unknown> =>
      server.kubectl(['apply', '-f', '-'], JSON.stringify(configMap('page', namespace, data)));
    await applied({ a: '1', old: '1' });
    await scene.write('a.yaml', configMap('page', namespace, { a: '2' }));
    const entry = { name: 'web', version: '1', manifest: 'a.yaml' };
    await scene.channel([entry]);
    const [failed] = (await scene.apply()).addons;
    assert.match(failed?.errors[0]?.message ?? '', /page: \.data\.a belongs to kubectl-client-side-apply$/);
    assert.is(await scene.kubectl('get', 'configmap', 'page', '-o', 'jsonpath={.data}'), '{"a":"1","old":"1"}');
    assert.equal(outcomes(await scene.apply({ forceConflicts: true })), ['web install applied']);
    await applied({ c: '3' });
    await scene.channel([{ ...entry, version: '2' }]);
    assert.equal(outcomes(await scene.apply()), ['web update applied']);
    assert.is(await scene.kubectl('get', 'configmap', 'page', '-o', 'jsonpath={.data}'), '{"a":"2","c":"3"}');
  });

  test('an object that cannot be changed is named with its field, and nothing of its add-on is changed', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const fixed = (v: string): object => ({ ...configMap('fixed', namespace, { v: v.repeat(2000) }), immutable: true });
    const secret = (v: string): object => {
      const metadata = { name: 'key', namespace };
      return { apiVersion: 'v1', kind: 'Secret', metadata, immutable: true, stringData: { pin: v } };
    };
    const job = (v: string): object => {
      const container = { name: 'job', image: `job:${v}`, env: [{ name: 'LONG', value: v.repeat(2000) }] };
      const spec = { template: { spec: { restartPolicy: 'Never', containers: [container] } } };
      return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'job', namespace }, spec };
    };
    await server.kubectl(['create', '-f', '-'], JSON.stringify(job('1')));
    await scene.write(
      'v1.yaml',
      configMap('aaa', namespace, { v: '1' }),
      configMap('old', namespace),
      fixed('1'),
      secret('1'),
    );
    await scene.write('v2.yaml', configMap('aaa', namespace, { v: '2' }), fixed('2'), secret('pin-2'), job('2'));
    const entry = { name: 'web', prune: 'auto' };
    await scene.channel([{ ...entry, version: '1', manifest: 'v1.yaml' }]);
    await scene.apply();
    await scene.channel([{ ...entry, version: '2', manifest: 'v2.yaml' }]);
    const force = { forceConflicts: true };
    for (const pass of [await scene.plan(force), await scene.apply(force)]) {
      assert.equal(outcomes(pass), ['web update failed']);
      const errors = pass.addons[0]?.errors ?? [];
      assert.match(
        errors.map(({ message }) => message).join('\n'),
        new RegExp(
          [
            `^cannot apply Secret ${namespace}/key: \\S+ returned 422 \\(Invalid: data: field is immutable.*\\)`,
            `cannot apply ConfigMap ${namespace}/fixed: \\S+ returned 422 \\(Invalid: data: Forbidden: field is immutable when \`immutable\` is set\\)`,
            `cannot apply Job ${namespace}/job: \\S+ returned 422 \\(Invalid: spec\\.template: Invalid value: .*…: field is immutable\\)$`,
          ].join('\n'),
        ),
      );
      for (const { hint } of errors)
        assert.match(hint ?? '', /^these fields cannot be changed: delete the object, .* or rename it/);
      assert.not.match(JSON.stringify(pass), /pin-2|cGluLTI/);
    }
    assert.is(await scene.kubectl('get', 'configmap', 'aaa', '-o', 'jsonpath={.data.v}'), '1');
    assert.match(await scene.kubectl('get', 'configmap', 'old', '-o', 'name'), 'old');
  });

  test('a port is free if the Service that has it is pruned, and not if it is the one of another Service', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const service = (name: string, nodePort: number): object => {
      const spec = { type: 'NodePort', ports: [{ port: 80, nodePort }] };
      return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec };
    };
    await server.kubectl(['create', '-f', '-'], JSON.stringify(service('other', 30_118)));
    await scene.write('v1.yaml', service('old', 30_117), configMap('aaa', namespace, { v: '1' }));
    await scene.write('v2.yaml', service('new', 30_118), configMap('aaa', namespace, { v: '2' }));
    await scene.write('v3.yaml', service('new', 30_117), configMap('aaa', namespace, { v: '3' }));
    const entry = { name: 'web', prune: 'auto' };
    await scene.channel([{ ...entry, version: '1', manifest: 'v1.yaml' }]);
    await scene.apply();
    await scene.channel([{ ...entry, version: '2', manifest: 'v2.yaml' }]);
    assert.equal(outcomes(await scene.apply()), ['web update failed']);
    assert.is(await scene.kubectl('get', 'configmap', 'aaa', '-o', 'jsonpath={.data.v}'), '1');
    assert.match(await scene.kubectl('get', 'service', 'old', '-o', 'name'), 'old');
    await scene.channel([{ ...entry, version: '3', manifest: 'v3.yaml' }]);
    assert.equal(outcomes(await scene.plan()), ['web update planned']);
    assert.equal(outcomes(await scene.apply()), ['web update applied']);
  });
} else test.skip('fields of add-ons on an API server', reason);

test.run();
