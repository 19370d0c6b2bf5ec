/** Manifests of channels as a real API server and kubectl understand them. */
import { readFile, writeFile } from 'node:fs/promises';
import { readObjects } from '../../src/cluster/channel/objects.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { channelScene, outcomes } from './support/channel-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';
import { sortedJson } from './support/sorted-json.ts';

const test = suite('components/channel-manifests', { timeoutMs: 120_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

const NUMBERS = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: numbers.example.com}
spec:
  group: example.com
  names: {kind: Number, plural: numbers, singular: number, listKind: NumberList}
  scope: Namespaced
  versions:
  - name: v1
    served: on
    storage: Yes
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`;

/** HERE is their namespace. */
const OBJECTS = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: &meta {name: reader, namespace: HERE, labels: {app: "yes"}, creationTimestamp: ~}
  spec:
    hostNetwork: off
    containers:
    - name: &image reader
      image: *image
      args: [first, ~, "~"]
      resources: ~
    volumes:
    - {name: keys, secret: {secretName: keys, defaultMode: 0400}}
    - {name: more, secret: {secretName: keys, defaultMode: 0o600}}
    - {name: same, secret: {secretName: keys, defaultMode: 416}}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {<<: *meta, name: open}
  spec:
    podSelector: {}
    ingress:
    -
- {apiVersion: example.com/v1, kind: Number, metadata: {name: one, namespace: HERE}, spec: {max: 9223372036854775807, odd: 9007199254740993, half: 0.5, kilo: 1_000, none: ~}}
---
apiVersion: v1
kind: ConfigMapList
items:
- metadata: {name: first, namespace: HERE}
  data: {text: "0777", multi: "a
    b"}
- metadata: {name: second, namespace: HERE}
  binaryData: ~
`;

if (reason === undefined) {
  let server: ApiServer;
  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(
      await startApiServer(box.at('server'), { options: ['--disable-admission-plugins', 'ServiceAccount'] }),
    );
    await server.kubectl(['apply', '-f', '-'], NUMBERS);
    await server.kubectl(['wait', '--for=condition=Established', 'crd/numbers.example.com']);
  });
  test.after(opened.close);

  test('modes, nulls, switches and integers of 64 bits reach the server as kubectl would send them', async () => {
    await using scene = await channelScene(server);
    await writeFile(scene.box.at('web.yaml'), OBJECTS.replaceAll('HERE', scene.namespace));
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'web.yaml' }]);
    // Nothing runs the pod.
    assert.equal(outcomes(await scene.apply({ timeout: 100 })), ['web install failed']);
    const read = async (title: string, path: string): Promise<string> =>
      scene.kubectl('get', title, '-o', `jsonpath={${path}}`);
    assert.is(await read('pod/reader', '.spec.volumes[*].secret.defaultMode'), '256 384 416');
    assert.is(await read('pod/reader', '.spec.containers[0].args'), '["first","","~"]');
    assert.is(await read('networkpolicy/open', '.spec.ingress'), '[{}]');
    const numbers = '{"half":0.5,"kilo":1000,"max":9223372036854775807,"none":null,"odd":9007199254740993}';
    assert.is(await read('number/one', '.spec'), numbers);
  });

  test('a value that a tool of YAML 1.2 would take for a text is refused as for kubectl', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: page, namespace: ${namespace}}, data: {debug: yes}}`;
    await writeFile(scene.box.at('web.yaml'), text);
    await scene.channel([{ name: 'web', version: '1.0.0', manifest: 'web.yaml' }]);
    const [failed] = (await scene.apply()).addons;
    assert.match(failed?.errors[0]?.message ?? '', /cannot apply ConfigMap .*debug/);
  });

  test('an object without a namespace is in that of its entry, or in that of the context, and is never moved', async () => {
    await using scene = await channelScene(server);
    const { namespace } = scene;
    const page = (name: string, home = ''): string =>
      `---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: ${namespace}-${name}${home}}}\n`;
    const homes = async (): Promise<readonly string[]> => {
      const columns = 'custom-columns=:.metadata.namespace,:.metadata.name';
      const lines = (await scene.kubectl('get', 'configmap', '-A', '--no-headers', '-o', columns)).split('\n');
      return lines.flatMap((line) =>
        / scene-[^ ]*-/.test(line) ? [line.replaceAll(namespace, 'NS').replace(/ +/, '/').trim()] : [],
      );
    };
    const entry = { name: 'web', prune: 'auto' };
    await writeFile(scene.box.at('1.yaml'), page('old', ', namespace: default'));
    await scene.channel([{ ...entry, version: '1.0.0', manifest: '1.yaml' }]);
    await scene.apply();
    assert.equal(await homes(), ['default/NS-old']);

    await writeFile(scene.box.at('2.yaml'), page('old') + page('new'));
    await scene.channel([
      { ...entry, version: '2.0.0', manifest: '2.yaml' },
      { name: 'other', namespace: undefined, version: '1.0.0', manifest: '3.yaml' },
    ]);
    await writeFile(scene.box.at('3.yaml'), page('other'));
    const config = JSON.parse(await readFile(server.kubeconfig, 'utf8')) as {
      readonly contexts: readonly [{ readonly context: object }];
    };
    const contexts = config.contexts.map((one) => ({ ...one, context: { ...one.context, namespace } }));
    await writeFile(scene.box.at('conf'), JSON.stringify({ ...config, contexts }));
    await scene.apply({ kubeconfig: scene.box.at('conf') });
    assert.equal(await homes(), ['default/NS-old', 'NS/NS-new', 'NS/NS-other']);
    await scene.apply({ kubeconfig: scene.box.at('conf') });
  });

  test('each document is what kubectl makes of it', async () => {
    const text = OBJECTS.replaceAll('HERE', 'default');
    const args = ['create', '--dry-run=client', '--validate=false', '-o', 'jsonpath={@}{"\\n"}', '-f', '-'];
    const { objects = [] } = readObjects('objects.yaml', Buffer.from(text));
    assert.is(objects.map(({ value }) => sortedJson(value)).join('\n'), await server.kubectl(args, text));
  });
} else {
  test.skip('manifests on an API server', reason);
}

test.run();
