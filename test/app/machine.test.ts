/** What is said of a drain and a removal that no control plane can be asked for. `ssh` is a script that plays the hosts. */
import { rm } from 'node:fs/promises';
import { stringify } from 'yaml';
import { removeMachine } from '../../src/app/machine-remove.ts';
import { drainMachine } from '../../src/app/machine.ts';
import { remove as command } from '../../src/cli/commands/machine.ts';
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

test('a machine that the file does not have is not waited for where no control plane answers', async () => {
  const ssh = { port: 1, hostKey: `SHA256:${'A'.repeat(43)}` };
  const machines = ['p1', 'w1'].map((name, at) => {
    return { name, role: at === 0 ? 'control-plane' : 'worker', address: '127.0.0.1', ssh };
  });
  const spec = { kubernetes: { version: 'v1.34.4' }, machines };
  await using box = await tree({ 'paris.yaml': stringify(JSON.parse(documents(cluster('paris', {}, spec)))) });
  const env = { HOME: box.path, PATH: process.env['PATH'] };
  const context = { signal: never, report: noReport, env, cwd: box.path };
  const request = { file: 'paris.yaml', name: 'p9' };
  for (const change of [removeMachine, drainMachine]) {
    const error: unknown = await change(request, context).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    assert.match(
      String(error),
      /p9: .*paris\.yaml has no such machine, and no control plane could be asked for others/,
    );
    assert.equal([Object(error).code, Object(error).hint], ['NOT_FOUND', 'did you mean p1?']);
  }
  // A known one waits, and its lines stay: nothing asks for what would not be done.
  const waiting = await removeMachine({ file: 'paris.yaml', name: 'p1' }, context);
  assert.equal([waiting.steps, waiting.change], [[], undefined]);
  const lines = command.render(waiting, { request: { yes: false }, options: {} } as never, {} as never);
  assert.match(lines, 'waits: paris: no control plane could be asked');
  assert.ok(!lines.includes('--yes'), lines);
});

test.run();
