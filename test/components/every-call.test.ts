/** A fault at any call to the system: it is told, nothing is half done under a final name, and the same command comes to the same end. */
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tryVerb } from './support/faults/trial.ts';
import { VERBS } from './support/faults/verbs.ts';
import { missing } from '../support/needs.ts';

// soak: every fault at every call
const test = suite('a fault at a call', { timeoutMs: 1_200_000 });

const reason = missing('cc');
if (reason === undefined) {
  for (const verb of VERBS) {
    test(`of ${verb.title} is told, and the same command comes to the same end`, async ({ signal }) => {
      const { problems } = await tryVerb(verb, { signal });
      assert.is(problems.length, 0, `${problems.length}:\n${problems.join('\n')}`);
    });
  }
} else {
  test.skip('all of them', reason);
}

test.run();
