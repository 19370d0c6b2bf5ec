/** What a control plane says of the add-ons of its cluster. */
import { writeFile } from 'node:fs/promises';
import { applyChannels } from '../../src/app/channel-apply.ts';
import { openApi } from '../../src/cluster/kube/api.ts';
import { recordedAddons } from '../../src/machine/run/recorded-addons.ts';
import { startMemoryApiServer, type MemoryApiOptions } from '../support/api-server/server.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('recorded add-ons');

const CHANNEL = `apiVersion: fleet.curlew.dev/v1alpha1
kind: Channel
metadata: { name: stable }
spec: { addons: [{ name: dns, version: 1.0.0, manifest: dns.yaml }] }
`;
const MANIFEST = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: dns, namespace: default }\n';

async function scene(options: MemoryApiOptions = {}) {
  const box = await tree({ 'channel.yaml': CHANNEL, 'dns.yaml': MANIFEST });
  const api = await startMemoryApiServer(options);
  await writeFile(box.at('admin.conf'), api.kubeconfig);
  const env = { PATH: process.env['PATH'], KUBECONFIG: box.at('admin.conf') };
  const client = await openApi({ env });
  if (client === undefined) throw new Error('no kubeconfig');
  return {
    apply: async () =>
      applyChannels({ channels: ['channel.yaml'] }, { cwd: box.path, env, signal: never, report: noReport }),
    recorded: async () => recordedAddons(client, never),
    at: box.at,
    [Symbol.asyncDispose]: async () => {
      await api[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

test('they have their version and the location of their channel', async () => {
  await using cluster = await scene();
  assert.equal(await cluster.recorded(), []);
  await cluster.apply();
  const [dns, ...others] = await cluster.recorded();
  assert.equal([dns?.name, dns?.version, dns?.channel, others], ['dns', '1.0.0', cluster.at('channel.yaml'), []]);
});

test('where records may not be read, there are none, and nodes are listed nevertheless', async () => {
  const before = (request: string): void => {
    if (/configmaps\/curlew-addons/.test(request)) throw new StatusError(403, 'Forbidden', 'not for you');
  };
  await using cluster = await scene({ before });
  assert.equal(await cluster.recorded(), []);
});

test.run();
