/** Why requests fail. */
import { thrownProblem } from '../../../src/cluster/kube/problem.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/kube/problem');

test('a host that does not exist is not waited for, and a resolver that does not answer is', () => {
  const of = (code: string) => thrownProblem(Object.assign(new Error(code), { code }));
  assert.equal([of('ENOTFOUND').problem, of('ENOTFOUND').message], ['failed', 'host not found']);
  assert.is(of('EAI_AGAIN').problem, 'unreachable');
});

test.run();
