import { openClusterApi } from '../../../src/cluster/deliver/channel-cluster.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('the cluster of a channel');

test('a kubeconfig that is not there is named with the place where it was named', async () => {
  await using box = await tree();
  const context = { signal: never, report: noReport, env: { HOME: box.path }, cwd: box.path };
  const hint = async (way?: 'spec.access'): Promise<string | undefined> => {
    const found = openClusterApi({ kubeconfig: 'paris.conf', way }, context);
    return (await assert.rejectsWith(found, 'CLUSTER_FAILED', /paris\.conf does not exist$/)).hint;
  };
  assert.is(await hint(), 'specify a kubeconfig with --kubeconfig or KUBECONFIG');
  // Fleets have no such option.
  assert.is(await hint('spec.access'), 'name a kubeconfig that exists in spec.access of the cluster');
});

test.run();
