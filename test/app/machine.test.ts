/** What is said of a drain that nobody can be asked for. `ssh` is a script that plays the hosts. */
import { rm } from 'node:fs/promises';
import { drainMachine } from '../../src/app/machine.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/machine');

test('a control plane without curlew is named with what brings it there, and one that is away is not', async () => {
  const machines = ['c1', 'w1'].map((name) => {
    const role = name === 'c1' ? 'control-plane' : 'worker';
    return { name, role, address: name, ssh: { hostKey: `SHA256:${'A'.repeat(43)}` } };
  });
  const spec = { kubernetes: { version: 'v1.34.4' }, machines };
  const facts = `hostname=c1\nmachineId=1\narch=x86_64\npart=kubelet.conf\nauthority=${'a'.repeat(64)}\ncluster=paris\npart=admin.conf\n`;
  await using box = await tree({
    'paris.yaml': documents(cluster('paris', {}, spec)),
    facts,
    ssh: `#!/bin/sh\ncase "$*" in *'c1 '*machineId*) cat "$HOME/facts";; *) echo 'No route to host' >&2; exit 255;; esac\n`,
  });
  const env = { HOME: box.path, PATH: `${box.path}:${process.env['PATH']}` };
  const context = { signal: never, report: noReport, env, cwd: box.path };
  const hint = async (): Promise<unknown> => {
    const error = await drainMachine({ file: 'paris.yaml', name: 'w1' }, context).catch((thrown: unknown) => thrown);
    assert.match(String(error), 'cannot drain w1: no control plane could be asked for its nodes');
    return Object(error).hint;
  };
  assert.is(await hint(), 'c1 has no curlew: curlew cluster apply with --bundle brings it there');
  await rm(box.at('facts'));
  assert.is(await hint(), 'curlew cluster plan says why');
});

test.run();
