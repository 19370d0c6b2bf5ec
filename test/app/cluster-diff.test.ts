import { writeFile } from 'node:fs/promises';
import { diffClusters, type ClusterDiff } from '../../src/app/cluster-diff.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/cluster-diff');

async function diff(a: readonly object[], b: readonly object[]): Promise<ClusterDiff> {
  await using box = await tree();
  await writeFile(box.at('a.yaml'), documents(...a));
  await writeFile(box.at('b.yaml'), documents(...b));
  const context = { signal: new AbortController().signal, report: noReport, env: {}, cwd: box.path };
  return await diffClusters({ files: ['a.yaml', 'b.yaml'] }, context);
}

const machine = (name: string, more: object = {}) => ({
  name,
  role: 'worker',
  address: `10.0.0.${name.slice(1)}`,
  ...more,
});

test('clusters without machines of the same name are compared by role and place, and addresses do not count', async () => {
  const paris = cluster(
    'paris',
    { env: 'prod' },
    { machines: [machine('p1', { labels: { disk: 'ssd' } }), machine('p2')] },
  );
  const berlin = cluster('berlin', { env: 'test' }, { machines: [machine('b3', { labels: { disk: 'hdd' } })] });
  const { a, b, differences } = await diff([paris], [berlin]);
  assert.equal([a, b], ['paris', 'berlin']);
  assert.equal(differences, [
    { path: 'labels.env', a: 'prod', b: 'test' },
    { path: 'machines.worker[0].labels.disk', a: 'ssd', b: 'hdd' },
    { path: 'machines.worker[1]', a: { address: '10.0.0.2' } },
  ]);
});

test('machines of the same name are compared with each other, in whatever order they are', async () => {
  const machines = [machine('n1'), machine('n2')];
  const old = cluster('paris', {}, { machines });
  const next = cluster('paris', {}, { machines: [machine('n2', { kubeletVersion: 'v1.30.2' }), machine('n1')] });
  assert.equal((await diff([old], [next])).differences, [{ path: 'machines[name="n2"].kubeletVersion', b: 'v1.30.2' }]);
  assert.equal((await diff([old], [old])).differences, []);
});

test('a file without a cluster, with two, or with mistakes is refused', async () => {
  const paris = cluster('paris');
  await assert.rejectsWith(diff([paris], []), 'USAGE', /b\.yaml: it has no cluster/);
  await assert.rejectsWith(diff([paris], [paris, cluster('berlin')]), 'USAGE', /b\.yaml: it has 2 clusters/);
  const wrong = cluster('berlin', {}, { machines: [{ name: 'n1' }] });
  await assert.rejectsWith(diff([paris], [wrong]), 'SPEC_INVALID', /b\.yaml: it has errors/);
});

test.run();
