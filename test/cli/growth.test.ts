/** A brake on growth: another command, option or field of a request needs a job that nothing else does, which its row names. */
import { REQUESTS } from '../../src/cli/commands.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('growth of the command line');

/** On 2026-11-28. */
const THEN = { commands: 91, fields: 963 };

const GROWN: readonly (readonly [commands: number, fields: number, job: string])[] = [
  [0, 4, 'drain a machine with pods that have no controller, or a budget that never allows an eviction'],
  [0, 3, 'renew certificates and save etcd by a timer, only when it is time'],
  [0, 10, 'keep snapshots of etcd, encrypted, in a store off the machine, and restore from there'],
  [0, 16, 'refuse an upgrade of a cluster whose add-ons, by their channel in a store, do not fit the next Kubernetes'],
  [0, 1, 'watch a node by the metrics that node_exporter reads'],
  [1, 1, 'repair a control plane on itself, where no other machine can'],
  [1, 5, 'collect what a person who helps needs from a machine that fails'],
];

test('there are as many commands and fields as their jobs need', () => {
  const fields = REQUESTS.reduce((sum, { fields: own, options }) => {
    return sum + Object.keys(own).length + Object.keys(options).length;
  }, 0);
  const total = (at: 0 | 1): number => GROWN.reduce((sum, row) => sum + row[at], 0);
  assert.equal(
    { commands: REQUESTS.length, fields },
    { commands: THEN.commands + total(0), fields: THEN.fields + total(1) },
    'a row here says which job needs it',
  );
});

test.run();
