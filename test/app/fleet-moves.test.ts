/** A fleet moves between a folder and a hub: its add-ons stay as they are on their cluster. */
import { readFile, writeFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import { at, textAt, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { addon, channel } from '../support/fleet-files.ts';
import { openFleetScene } from '../support/fleet-scene.ts';
import { countedHelm, helmWithRepository, startHelm } from '../support/helm-stand-in.ts';
import { hubChannel, hubCluster } from '../support/hub-objects.ts';
import { openHubScene } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { startServer } from '../support/web-server.ts';

const test = suite('app/fleet-moves', { timeoutMs: 240_000 });
const ROOT = '/apis/fleet.curlew.dev/v1alpha1';
const MAP = '/api/v1/namespaces/default/configmaps/page';
const RECORDS = '/api/v1/namespaces/kube-system/configmaps/curlew-addons';
const metadata = { name: 'page', namespace: 'default' };
const PAGE = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { version: '1' } };
const CHART = { repoURL: 'https://charts.example.com', name: 'page', version: '1.0.0', namespace: 'default' };
const HASH = digestOf(JSON.stringify(PAGE));

interface Written {
  /** Documents of the folder besides the FleetAddon, and objects of the hub. */
  readonly folder: readonly object[];
  readonly hub: (url: string) => readonly object[];
  readonly source: { readonly folder: object; readonly hub: (url: string) => object };
}

const entry = { name: 'page', version: '1.0.0' };
const fromChannel = { channel: { name: 'stable', addon: 'page' } };

/** The add-on `web`, by each kind of source that both have. */
const SOURCES: Readonly<Record<string, Written>> = {
  manifest: {
    folder: [],
    hub: () => [],
    source: { folder: { manifest: 'web.yaml' }, hub: (url) => ({ manifest: url, hash: HASH }) },
  },
  chart: { folder: [], hub: () => [], source: { folder: { chart: CHART }, hub: () => ({ chart: CHART }) } },
  'manifest of a channel': {
    folder: [channel('stable', { ...entry, manifest: 'web.yaml' })],
    hub: (url) => [hubChannel('stable', [{ ...entry, manifest: url, hash: HASH }])],
    source: { folder: fromChannel, hub: () => fromChannel },
  },
  'chart of a channel': {
    folder: [channel('stable', { ...entry, chart: { ...CHART, releaseName: 'web' } })],
    hub: () => [hubChannel('stable', [{ ...entry, chart: { ...CHART, version: undefined, releaseName: 'web' } }])],
    source: { folder: fromChannel, hub: () => fromChannel },
  },
};

async function keysOf(api: ApiClient): Promise<readonly string[]> {
  return Object.keys((at((await api.get(RECORDS)).body, 'data') ?? {}) as object);
}

/** Moves the record into the namespace of the release, where hubs of earlier versions had it. */
async function moveRecord(api: ApiClient): Promise<void> {
  const [key = ''] = await keysOf(api);
  const data = at((await api.get(RECORDS)).body, 'data') as Readonly<Record<string, string>>;
  const record = JSON.parse(data[key] ?? '') as object;
  await api.merge(RECORDS, {
    data: { [key]: null, 'default.web': JSON.stringify({ ...record, namespace: 'default' }) },
  });
}

for (const [kind, written] of Object.entries(SOURCES)) {
  for (const isOld of kind === 'chart' ? [false, true] : [false]) {
    const where = isOld ? ', with a record where earlier hubs had it' : '';
    test(`an add-on from a ${kind} moves from a folder to a hub and back, and its objects stay${where}`, async () => {
      const certificate = await makeCertificate();
      await using scene = await openFleetScene(['oslo']);
      const api = scene.api('oslo');
      await using stand = await startHelm(api, scene.box);
      const { program, runs } = await countedHelm(
        (await helmWithRepository(stand, scene.box, [PAGE])).program,
        scene.box,
      );
      await using web = await startServer(() => ({ status: 200, body: JSON.stringify(PAGE) }), { tls: certificate });
      const url = `${web.url.replace('127.0.0.1', 'localhost')}/page.yaml`;
      await scene.manifest('1', PAGE);
      await scene.fleet([...written.folder, addon('web', { source: written.source.folder })]);
      const apply = async () => (await scene.apply({ helm: program }, { env: { PATH: process.env['PATH'] } })).done;
      const results = async () => (await apply()).map(({ result, reason }) => `${result} ${reason}`.trim());
      assert.equal(await results(), ['done']);
      if (isOld) await moveRecord(api);
      const [uid, keys] = [textAt((await api.get(MAP)).body, 'metadata.uid'), await keysOf(api)];
      const isSame = async (): Promise<void> => {
        assert.equal([textAt((await api.get(MAP)).body, 'metadata.uid'), await keysOf(api)], [uid, keys]);
      };

      await using own = await startMemoryApiServer({ certificate });
      await using hub = await openHubScene(own.kubeconfig);
      await hub.client.create('/api/v1/namespaces', { metadata: { name: 'fleet-oslo' } });
      const spec = { access: { kubeconfigSecret: 'oslo-kubeconfig' } };
      await hub.client.create(`${ROOT}/namespaces/fleet-oslo/clusters`, hubCluster('oslo', { env: 'prod' }, spec));
      const kubeconfig = await readFile(scene.box.at('oslo.conf'), 'base64');
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'oslo-kubeconfig' },
        data: { value: kubeconfig },
      };
      await hub.client.create('/api/v1/namespaces/fleet-oslo/secrets', secret);
      for (const object of written.hub(url)) await hub.client.create(`${ROOT}/channels`, object);
      await hub.addon('web', { source: written.source.hub(url) });
      await writeFile(scene.box.at('ca.pem'), certificate.ca);
      const controller = hub.start({ helm: program, caFile: scene.box.at('ca.pem') });
      await hub.condition('web', 'Available', 'True AllSucceeded');
      await controller.stop();
      await isSame();

      assert.equal(await results(), ['done']);
      await isSame();
      assert.not.match((await runs()).join(' '), 'uninstall');
    });
  }
}

test.run();
