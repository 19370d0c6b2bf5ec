/** Suites of other projects: what a run says must be what docs/proof.md says. */
import { SUITES, type ProofName } from '../../../scripts/docs/proof-page.ts';
import * as assert from '../../support/assert.ts';

/** Fails unless the suite said what its row of the table has; `output` explains. */
export function assertSays(name: ProofName, said: string, output = ''): void {
  assert.is(said, SUITES[name].says, output);
}
