/** The plan of a cluster as lines for people. */
import { planLines } from '../../../src/cli/commands/cluster.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/render/plan-lines');

const NOTHING = { steps: [], held: [], refused: [], digest: 'sha256:0' } as const;

test('a machine that does not answer has the reason, and says so once', () => {
  const hosts = [
    { name: 'p1', role: 'control-plane', text: 'debian 12', answers: true, joined: false },
    { name: 'p2', role: 'worker', text: 'it does not answer: no route to host', answers: false, joined: false },
    { name: 'p3', role: 'worker', text: '', answers: false, joined: false },
  ];
  assert.equal(planLines({ ...NOTHING, cluster: 'paris', hosts }).slice(0, 3), [
    'p1  control-plane  not in the cluster  debian 12',
    'p2  worker                             it does not answer: no route to host',
    'p3  worker         does not answer',
  ]);
});

test.run();
