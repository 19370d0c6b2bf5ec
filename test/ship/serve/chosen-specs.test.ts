/** Where a server makes the specs of choices: not on its main thread, which answers all other requests. */
import type { PlanOrder } from '../../../src/ship/serve/plan-protocol.ts';
import { startPlanWorker } from '../../../src/ship/serve/start-plan-worker.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages } from '../../support/bundles.ts';
import { serveStore } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/serve/chosen-specs');
const CHOICE = 'flannel=0.26.1&flannel:mode:text=direct&flannel:mtu=1400';

test('what visitors choose and post becomes a spec in the planning thread, once for each choice', async ({
  signal,
}) => {
  await using box = await tree();
  const store = await publishTestPackages(
    box,
    ['0.26.1', '0.25.0'].map((version) => ({ name: 'flannel', version, files: [{ path: 'x', data: version }] })),
    signal,
  );
  const orders: string[] = [];
  const startPlanning: typeof startPlanWorker = (options) => {
    const thread = startPlanWorker(options);
    const post = thread.postMessage.bind(thread);
    thread.postMessage = (order: PlanOrder, moved) => {
      orders.push(order.job.kind);
      post(order, moved);
    };
    return thread;
  };
  await using server = await serveStore(store, { site: { startPlanning }, listen: { token: 'secret' } });
  const read = (): readonly string[] => orders.splice(0).filter((kind) => kind === 'choice' || kind === 'spec');
  for (const [path, kinds] of [
    [`/?${CHOICE}`, ['choice']],
    [`/installer.yaml?${CHOICE}`, []],
    [`/install.sh?${CHOICE}`, []],
    [`/bundle.tar.gz?${CHOICE}&_arch=amd64`, []],
    ['/installer.yaml?flannel=0.25.0', ['choice']],
  ] as const) {
    const answer = await fetch(server.url + path, { headers: { accept: 'text/html' } });
    await answer.arrayBuffer();
    assert.equal([answer.status, read()], [200, kinds], path);
  }
  const headers = { authorization: 'Bearer secret' };
  const body = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec: { flannel: { version: 0.25.0 } }\n';
  const posted = await fetch(`${server.url}/installer/validate`, { method: 'POST', headers, body });
  assert.equal([posted.status, read()], [200, ['spec']]);
});

test.run();
