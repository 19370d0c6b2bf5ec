import { readFile, writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import type { WrittenCluster } from '../../src/machine/run/cluster-file.ts';
import { changedFile, writeChanged } from '../../src/machine/run/machine-list.ts';
import * as assert from '../support/assert.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('the list of machines in a file');

test('a file that has changed since it was read is left as it is', async () => {
  await using box = await tree();
  const file = box.at('paris.yaml');
  const machines = [{ name: 'p1', role: 'control-plane' }];
  await writeFile(file, stringify(JSON.parse(documents(cluster('paris', {}, { machines })))));
  const written = { file, name: 'paris', machines } as unknown as WrittenCluster;
  const first = await changedFile(written, { add: { name: 'p2', role: 'worker' } });
  const second = await changedFile(written, { add: { name: 'p3', role: 'worker' } });
  await writeChanged(first);
  await assert.rejectsWith(writeChanged(second), 'PLAN_CHANGED', /paris\.yaml: someone else has changed it meanwhile/);
  assert.is(await readFile(file, 'utf8'), first.after);
});

test('the only machine of a file is not taken out of it, and that is said', async () => {
  await using box = await tree();
  const file = box.at('paris.yaml');
  const machines = [{ name: 'p1', role: 'control-plane' }];
  await writeFile(file, stringify(JSON.parse(documents(cluster('paris', {}, { machines })))));
  const change = changedFile({ file, name: 'paris', machines } as unknown as WrittenCluster, { remove: 'p1' });
  await assert.rejectsWith(change, 'UNSUPPORTED', /cannot remove p1 from .*paris\.yaml: it is its only machine/);
});

test.run();
