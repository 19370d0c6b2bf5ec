/** `curlew channel apply` against an API server that answers from data: what is held back, and what is not for the cluster. */
import { readFile, writeFile } from 'node:fs/promises';
import type { ChannelPass } from '../../src/app/channel-apply.ts';
import * as assert from '../support/assert.ts';
import { startKubeServer, statusReply } from '../support/kube-server.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/channel-cluster', { timeoutMs: 60_000 });
const CERTIFICATE = await makeCertificate();

const MAPS = { resource: 'configmaps', responseKind: { kind: 'ConfigMap' }, scope: 'Namespaced', verbs: [] };
const KINDS = { '/api': [{ metadata: { name: '' }, versions: [{ version: 'v1', resources: [MAPS] }] }], '/apis': [] };

type Annotations = Readonly<Record<string, object>>;

/** A folder with a channel of these entries, and a kubeconfig of a cluster with these annotations, by `NAMESPACE/NAME` or name, and records. */
async function boxWith(
  entries: readonly object[],
  annotations: Annotations,
  records: Annotations = annotations,
): Promise<Tree> {
  const box = await tree();
  const texts = (map: Annotations): object =>
    Object.fromEntries(Object.entries(map).map(([key, value]) => [key, JSON.stringify(value)]));
  const spaces = ['kube-system', 'default'].map((space) => {
    const own = Object.entries(annotations).filter(
      ([key]) => (key.includes('/') ? key.split('/')[0] : 'kube-system') === space,
    );
    const keys = own.map(([key, one]) => [`addons.k8s.io/${key.split('/').at(-1)}`, one] as const);
    return { metadata: { name: space, annotations: texts(Object.fromEntries(keys)) } };
  });
  const full = Object.entries(records).map(([addon, applied]) => {
    const record = {
      addon,
      namespace: 'kube-system',
      owner: 'channel:prod',
      state: 'Succeeded',
      since: '',
      reason: '',
    };
    return [`kube-system.${addon}`, { ...record, applied, history: [] }] as const;
  });
  const server = await startKubeServer(({ path }) => {
    const [place = ''] = path.split('?');
    if (place === '/version') return { json: { gitVersion: 'v1.30.0' } };
    if (place === '/api/v1/namespaces') return { json: { items: spaces } };
    if (place.endsWith('/configmaps/curlew-addons'))
      return { json: { metadata: { resourceVersion: '1' }, data: texts(Object.fromEntries(full)) } };
    if (place === '/api' || place === '/apis') return { json: { kind: 'APIGroupDiscoveryList', items: KINDS[place] } };
    return statusReply(404, 'NotFound');
  }, CERTIFICATE);
  await writeFile(box.at('kubeconfig'), server.kubeconfig());
  const file = { apiVersion: 'fleet.curlew.dev/v1alpha1', kind: 'Channel', metadata: { name: 'prod' } };
  const addons = entries.map((entry) => ({ manifest: 'm.yaml', ...entry }));
  await writeFile(box.at('c.yaml'), JSON.stringify({ ...file, spec: { addons } }));
  await writeFile(
    box.at('m.yaml'),
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page, namespace: kube-system}\n',
  );
  return {
    ...box,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

const apply = async (box: Tree, ...words: readonly string[]) =>
  runCommand(['channel', 'apply', 'c.yaml', '--kubeconfig', 'kubeconfig', ...words], box.path);

test('a downgrade is printed as refused with what applies it: status 2 in a preview, 33 with --yes', async () => {
  await using box = await boxWith([{ name: 'web', version: '1.0.0' }], { web: { version: '2.0.0', hash: 'h' } });
  const preview = await apply(box);
  assert.is(preview.exitCode, 2, preview.stderr);
  assert.match(
    preview.stdout,
    /^web: refused\n {2}cannot apply web 1\.0\.0: 2\.0\.0 is installed, which is greater\n {2}hint: --allow-downgrade applies it$/m,
  );
  assert.match(preview.stdout, /: 1 add-on, 1 refused$/m);
  const real = await apply(box, '--yes');
  assert.equal([real.exitCode, real.stdout], [33, preview.stdout]);
  const { addons, isPreview } = JSON.parse((await apply(box, '--yes', '--json')).stdout) as ChannelPass;
  assert.equal([isPreview, addons.map(({ action, state }) => [action, state])], [false, [['refused', 'refused']]]);
});

test('an add-on that only an annotation names is refused until its name is given', async () => {
  const annotations = { web: { version: '1.0.0' }, dns: { version: '1.0.0' } };
  const entries = Object.keys(annotations).map((name) => ({ name, version: '1.0.0' }));
  await using box = await boxWith(entries, annotations, {});
  const hintOf = async (...words: readonly string[]) => {
    const { addons } = JSON.parse((await apply(box, '--json', ...words)).stdout) as ChannelPass;
    return addons.map(({ addon, action, errors: [first] }) => [addon, action, first?.hint]);
  };
  const hints = ['web', 'dns'].map((name) => [
    name,
    'refused',
    `--take-over=${name} makes it an add-on of this channel`,
  ]);
  assert.equal(await hintOf(), hints);
  assert.equal(
    (await hintOf('--take-over=web')).map(([name, action]) => `${name} ${action}`),
    ['web update', 'dns refused'],
  );
  assert.equal(
    (await hintOf('--take-over')).map(([, action]) => action),
    ['update', 'update'],
  );
  const unknown = await apply(box, '--take-over=wbe');
  assert.is(unknown.exitCode, 14);
  assert.match(unknown.stderr, 'cannot apply wbe: no channel has an entry of it');
  const ambiguous = await apply(box, '--take-over', 'web', '--yes');
  assert.is(ambiguous.exitCode, 64);
  assert.match(ambiguous.stderr, 'write --take-over=web, or put --take-over after the other arguments');
});

test('add-ons that no entry fits are named, and counted beyond ten', async () => {
  const names = Array.from({ length: 12 }, (_, at) => `web-${at}`);
  const range = { version: '1.0.0', kubernetesVersion: '>=1.31.0' };
  await using box = await boxWith(
    names.map((name) => ({ name, ...range })),
    {},
  );
  const { exitCode, stdout } = await apply(box);
  assert.is(exitCode, 0);
  assert.match(stdout, 'web-0: no entry fits Kubernetes 1.30.0: web-0 1.0.0 is for >=1.31.0\n');
  assert.match(stdout, '\nand 2 more add-ons that no entry fits\n');
});

test('a requirement is met in the namespace of the required entry only', async () => {
  const entries = [
    { name: 'web', version: '1.0.0', requires: [{ name: 'dns', version: '>=1.0.0' }] },
    { name: 'dns', version: '1.0.0', kubernetesVersion: '>=1.31.0' },
  ];
  const dns = { version: '1.2.0', hash: 'h' };
  for (const [place, expected] of [
    [
      'default',
      ['skipped', 'cannot apply web 1.0.0: it requires dns >=1.0.0, which is not installed in namespace kube-system'],
    ],
    ['kube-system', ['planned', undefined]],
  ] as const) {
    await using box = await boxWith(entries, { [`${place}/dns`]: dns }, {});
    const { addons } = JSON.parse((await apply(box, '--json')).stdout) as ChannelPass;
    assert.equal(
      addons.map(({ state, errors: [first] }) => [state, first?.message]),
      [expected],
    );
    const words = ['channel', 'plan', 'c.yaml', '--to', 'v1.30.0', '--kubeconfig', 'kubeconfig'];
    assert.is(
      (await runCommand(words, box.path)).stdout.includes('dns 1.2.0 is not in the channel'),
      place === 'kube-system',
    );
  }
});

test('--context selects a cluster of the kubeconfig, and one that does not exist is named with those that do', async () => {
  await using box = await boxWith([{ name: 'web', version: '1.0.0', kubernetesVersion: '>=1.31.0' }], {});
  const conf = JSON.parse(await readFile(box.at('kubeconfig'), 'utf8')) as { 'current-context'?: string };
  await writeFile(box.at('kubeconfig'), JSON.stringify({ ...conf, 'current-context': 'gone' }));
  assert.is((await apply(box)).exitCode, 33);
  assert.is((await apply(box, '--context', 'test')).exitCode, 0);
  const wrong = await apply(box, '--context', 'tset');
  assert.is(wrong.exitCode, 33);
  assert.match(wrong.stderr, /kubeconfig: no context "tset"\n {2}hint: its contexts are "test"/);
});

test('a plan names namespaces that do not exist, and what to do', async () => {
  await using box = await boxWith([{ name: 'web', version: '1.0.0', namespace: 'sites' }], {});
  const { exitCode, stdout } = await apply(box);
  assert.is(exitCode, 33);
  assert.match(
    stdout,
    /^web: failed\n {2}cannot apply web 1\.0\.0: namespace sites does not exist\n {2}hint: create them/m,
  );
});

test.run();
