/** What people have to learn grows by jobs that nothing there does, and each has its row here. */
import { REQUESTS } from '../../src/cli/requests.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/growth');

/** Commands, and their fields and options in all, when the list of rows began. */
const FIRST = { commands: 91, fields: 963 };

/** What came later: which command, how many new fields and options it has, and the job that needs them. */
const ADDED: readonly (readonly [command: string, fields: number, job: string])[] = [
  ['support-bundle (new)', 5, 'send what is known of a broken machine to who can help, without credentials'],
  ['node repair (new)', 1, 'bring back missing files of a node without a reset'],
  ['etcd snapshot', 10, 'encrypted snapshots on a schedule, copied to where a lost machine does not take them along'],
  ['etcd restore', 1, 'the key of an encrypted snapshot'],
  ['certificates renew', 2, 'a timer renews certificates before they expire'],
  ['status', 1, 'metrics of a node for node_exporter'],
  ['cluster plan', 8, 'add-ons of channels move around an upgrade of Kubernetes'],
  ['cluster apply', 8, 'add-ons of channels move around an upgrade of Kubernetes'],
  ['fleet plan', 1, 'where helm is, which finds the newest version of a chart that follows it'],
  ['fleet plan', 1, 'what changes in which object, before a canary gets it'],
  ['fleet check', 2, 'which hosts of charts may use plain http, of options or of a configuration, as in apply'],
  ['fleet plan', 3, 'charts are found and read as apply does: plain http, authorities, configuration'],
  ['fleet status', 3, 'charts are found as apply does: plain http, authorities, configuration'],
  ['fleet status', 1, 'where helm is, which finds the newest version of a chart that follows it'],
  ['fleet approve', 1, 'a content that would delete most objects of an add-on waits for a word'],
  ['fleet approve, pause, resume, retry, rollback', 10, 'order at a hub without JSON that is written by hand'],
  ['hub manifests', 1, 'let a controller sign certificates of add-ons, for one signer, with one authority'],
  ['controller', 1, 'an alert when a hub no longer decides, or a rollout has stopped'],
  ['agent run', 1, 'an alert when a site no longer hears its hub'],
  ['hub manifests', 1, 'the right to values of charts in ConfigMaps, which no other command has to grant'],
  ['machine drain', 2, 'a word for pods that would be lost, and a way past a stuck budget'],
  ['node drain', 2, 'a word for pods that would be lost, and a way past a stuck budget'],
];

test('a new command, field or option has a row that says which job needs it', () => {
  const fields = REQUESTS.reduce((sum, one) => sum + Object.keys({ ...one.fields, ...one.options }).length, 0);
  const news = ADDED.filter(([command]) => command.endsWith(' (new)')).length;
  const more = ADDED.reduce((sum, [, count]) => sum + count, 0);
  assert.equal(
    { commands: REQUESTS.length, fields },
    { commands: FIRST.commands + news, fields: FIRST.fields + more },
    'test/app/growth.test.ts has a row for each: can one that is there do the job?',
  );
});

test.run();
