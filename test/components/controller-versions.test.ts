/** Add-ons of Open Cluster Management that an API server has in two versions, by a webhook that converts them. */
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { isObject } from '../../src/core/json.ts';
import { at, textAt } from '../support/api-client.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import * as assert from '../support/assert.ts';
import { eventually, openHubScene, type HubScene } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import { definitionsOf, OCM_KINDS } from '../support/upstream-kinds.ts';
import { startServer, type WebServer } from '../support/web-server.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/controller-versions', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();
const GROUP = 'addon.open-cluster-management.io';
const CONVERTED = ['clustermanagementaddons', 'managedclusteraddons'];
const TEMPLATES = { group: GROUP, resource: 'addontemplates' };

type Fields = Readonly<Record<string, unknown>>;
const listIn = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** The types of configurations: `v1beta1` has the default in them, `v1alpha1` below a field of its own. */
function spec({ supportedConfigs, defaultConfigs, ...others }: Fields, isLater: boolean): Fields {
  if (isLater) {
    const all = listIn(supportedConfigs).map(({ group, resource, defaultConfig }) => {
      return { group, resource, ...(isObject(defaultConfig) ? defaultConfig : { name: '__reserved_no_default__' }) };
    });
    return { ...others, ...(supportedConfigs !== undefined && { defaultConfigs: all }) };
  }
  const all = listIn(defaultConfigs).map(({ group, resource, ...defaultConfig }) => ({
    group,
    resource,
    defaultConfig,
  }));
  return { ...others, ...(defaultConfigs !== undefined && { supportedConfigs: all }) };
}

function status(
  { defaultconfigReferences, defaultConfigReferences, configReferences, ...others }: Fields,
  isLater: boolean,
) {
  const known = defaultconfigReferences ?? defaultConfigReferences;
  const references = listIn(configReferences).map(({ name: _name, namespace: _namespace, ...one }) => {
    const { name } = isObject(one['desiredConfig']) ? one['desiredConfig'] : {};
    return isLater ? one : { ...one, name };
  });
  return {
    ...others,
    ...(known !== undefined && { [isLater ? 'defaultConfigReferences' : 'defaultconfigReferences']: known }),
    ...(configReferences !== undefined && { configReferences: references }),
  };
}

/** A webhook that converts what an API server sends, as that of Open Cluster Management does. */
async function startWebhook(): Promise<{ readonly server: WebServer; readonly caBundle: string }> {
  const { key, cert, ca } = await makeCertificate();
  const server = await startServer(
    ({ body }) => {
      const { request, ...review } = JSON.parse(body) as { readonly request: Fields };
      const { uid, desiredAPIVersion: apiVersion } = request;
      const isLater = apiVersion === `${GROUP}/v1beta1`;
      const convertedObjects = listIn(request['objects']).map((one) => ({
        ...one,
        apiVersion,
        ...(isObject(one['spec']) && { spec: spec(one['spec'], isLater) }),
        ...(isObject(one['status']) && { status: status(one['status'], isLater) }),
      }));
      const response = { uid, result: { status: 'Success' }, convertedObjects };
      const headers = { 'content-type': 'application/json' };
      return { status: 200, headers, body: JSON.stringify({ ...review, response }) };
    },
    { tls: { key, cert } },
  );
  return { server, caBundle: Buffer.from(ca).toString('base64') };
}

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly versions: readonly object[] };
}

if (reason === undefined) {
  let server: ApiServer;
  let hub: HubScene;
  const apply = async (...objects: readonly object[]): Promise<string> =>
    server.kubectl(['apply', '-f', '-'], objects.map((one) => JSON.stringify(one)).join('\n---\n'));
  const get = async (version: string, path: string): Promise<JsonObject> =>
    (await hub.client.get(`/apis/${GROUP}/${version}/${path}`)).body;
  const versions = async (): Promise<string> =>
    server.kubectl([
      'get',
      `clusteraddons,fleetaddons,${CONVERTED.map((plural) => `${plural}.${GROUP}`).join()}`,
      '--all-namespaces',
      '-o',
      'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}',
    ]);

  test.before(async () => {
    const box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
    const { server: webhook, caBundle } = await startWebhook();
    opened.keep(webhook);
    const clientConfig = { url: `${webhook.url}/convert`, caBundle };
    const conversion = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig } };
    const definitions = (definitionsOf(OCM_KINDS) as readonly Definition[]).map((one) => {
      const [stored] = one.spec.versions;
      const isConverted = CONVERTED.some((plural) => one.metadata.name === `${plural}.${GROUP}`);
      const both = [stored, { ...stored, name: 'v1beta1', storage: false }];
      return isConverted ? { ...one, spec: { ...one.spec, versions: both, conversion } } : one;
    });
    await apply(...definitions);
    hub = opened.keep(await openHubScene(await readFile(server.kubeconfig, 'utf8')));
    for (const { metadata } of definitions)
      await server.kubectl(['wait', '--for=condition=Established', `crd/${metadata.name}`, '--timeout=60s']);
  });
  test.after(opened.close);

  test('users of both versions are served, and an idle controller writes nothing', async () => {
    await hub.cluster('paris');
    const installStrategy = { type: 'Manual' };
    const cluster = { apiVersion: 'cluster.open-cluster-management.io/v1', kind: 'ManagedCluster' };
    const template = (name: string): object => {
      const manifests = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } }];
      const fields = { addonName: name.replace(/-\d$/, ''), agentSpec: { workload: { manifests } } };
      return { apiVersion: `${GROUP}/v1alpha1`, kind: 'AddOnTemplate', metadata: { name }, spec: fields };
    };
    const addon = (version: string, name: string, fields: object): object[] => [
      {
        apiVersion: `${GROUP}/${version}`,
        kind: 'ClusterManagementAddOn',
        metadata: { name },
        spec: { ...fields, installStrategy },
      },
    ];
    const onParis = (version: string, name: string): object => {
      const metadata = { name, namespace: 'paris' };
      return { apiVersion: `${GROUP}/${version}`, kind: 'ManagedClusterAddOn', metadata, spec: {} };
    };
    await apply(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'paris' } },
      { ...cluster, metadata: { name: 'paris' }, spec: { hubAcceptsClient: true } },
      ...['page-1', 'site-1', 'site-2'].map(template),
      ...addon('v1beta1', 'page', { defaultConfigs: [{ ...TEMPLATES, name: 'page-1' }] }),
      ...addon('v1alpha1', 'site', { supportedConfigs: [{ ...TEMPLATES, defaultConfig: { name: 'site-1' } }] }),
      onParis('v1alpha1', 'page'),
      onParis('v1beta1', 'site'),
    );
    hub.start({ reconcile: [['clustermanagementaddons']] });
    const isComplete = async (version: string, name: string): Promise<boolean> => {
      const all = at(await get(version, `namespaces/paris/managedclusteraddons/${name}`), 'status.conditions');
      return listIn(all).some(({ type, reason: why }) => type === 'Progressing' && why === 'Completed');
    };
    for (const name of ['page', 'site']) {
      await eventually(async () => (await hub.contents(name)) === 'paris:@1');
      await hub.report(name, 'Succeeded', 'paris');
      for (const version of ['v1alpha1', 'v1beta1']) await eventually(async () => isComplete(version, name));
      const later = await get('v1beta1', `clustermanagementaddons/${name}`);
      assert.is(textAt(later, 'status.defaultConfigReferences.0.desiredConfig.name'), `${name}-1`);
      const earlier = await get('v1alpha1', `clustermanagementaddons/${name}`);
      assert.is(textAt(earlier, 'status.defaultconfigReferences.0.desiredConfig.name'), `${name}-1`);
    }

    await eventually(async () => (await versions()) === (await wait(1000).then(versions)));
    const before = await versions();
    // It leads to a pass over all of them.
    await apply({
      ...cluster,
      metadata: { name: 'paris', labels: { tier: 'gold' } },
      spec: { hubAcceptsClient: true },
    });
    await wait(3000);
    assert.is(await versions(), before);

    await apply(...addon('v1beta1', 'site', { defaultConfigs: [{ ...TEMPLATES, name: 'site-2' }] }));
    await eventually(async () => (await hub.contents('site')) === 'paris:@2');
    assert.is(await hub.contents('page'), 'paris:@1');
  });
} else {
  test.skip('two versions of add-ons of Open Cluster Management on an API server', reason);
}

test.run();
