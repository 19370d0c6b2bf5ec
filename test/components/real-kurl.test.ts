/** Add-ons in kURL's manner, unchanged, by scripts/real-kurl: what its own scripts make of them, and what curlew does. */
import { join } from 'node:path';
import { readFile } from 'node:fs/promises';
import { STAGES, type Explanation, type Judged } from '../real-kurl/report.ts';
import { runRepository } from '../real-kurl/run.ts';
import * as assert from '../support/assert.ts';
import { built } from '../support/built.ts';
import { suite } from '../support/suite.ts';
import { leftToOtherRuns } from '../support/sweep.ts';
import { tree, type Tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS } from './support/api-server.ts';
import { cannotRun, ROOT } from './support/programs.ts';
import { OWN } from './support/executables.ts';
import { executableFileName } from '../../src/core/layout.ts';

const test = suite('a repository in the manner of kURL', { timeoutMs: 900_000 });
const programs = [
  'containerd',
  'ctr',
  'unshare',
  'nsenter',
  'setpriv',
  'openssl',
  'dpkg-deb',
  'gpg',
  'dnf',
  'rpmbuild',
];
const reason = cannotRun(...API_SERVER_PROGRAMS, ...programs, built(executableFileName(OWN)));
const REPOSITORY = join(ROOT, 'test/fixtures/kurl-tree');
const OTHERS = ['keeping', 'watching'] as const;
/** The one with two versions, and one of the others, by the seed of the run; all of them with --all. */
const CHOSEN = [...OTHERS.filter((name) => leftToOtherRuns(name, OTHERS) === undefined), 'netting'].toSorted();

let box: Tree;
let judged: readonly Judged[];

/** The failures of one add-on in one stage, known or not. */
function failures(stage: string, addon: string): readonly string[] {
  const found = judged.find((one) => one.stage === stage && one.addon === addon);
  assert.ok(found, `${stage} of ${addon}`);
  return found?.failures ?? [];
}

if (reason === undefined) {
  test.before(async () => {
    box = await tree();
    const known = JSON.parse(await readFile(join(REPOSITORY, 'explained.json'), 'utf8')) as readonly Explanation[];
    judged = await runRepository({
      root: REPOSITORY,
      only: CHOSEN,
      stages: STAGES,
      newest: false,
      bin: undefined,
      box: box.path,
      specs: {},
      known,
      say: () => undefined,
    });
  });
  test.after(async () => box[Symbol.asyncDispose]());

  test('nothing fails that is not explained', () => {
    assert.equal(
      judged.flatMap(({ stage, addon, unexplained }) => unexplained.map((failure) => `${stage} ${addon}: ${failure}`)),
      [],
    );
  });

  for (const name of OTHERS) {
    const elsewhere = leftToOtherRuns(name, OTHERS);
    if (elsewhere !== undefined) test.skip(name, elsewhere);
  }

  test('every stage has looked at every add-on', () => {
    const newest = CHOSEN.map((name) => (name === 'netting' ? 'netting-1.1.0' : `${name}-1.0.0`));
    const of = (stage: string): readonly string[] =>
      judged
        .filter((one) => one.stage === stage)
        .map(({ addon }) => addon)
        .toSorted();
    assert.equal(of('lint'), CHOSEN);
    assert.equal(of('plan'), CHOSEN);
    assert.equal(of('build'), [...newest, 'netting-1.0.0'].toSorted());
    assert.equal(of('hooks'), newest);
    assert.equal(of('objects'), newest);
    assert.equal(of('upgrade'), ['netting-1.1.0']);
  });

  test("an add-on makes the same objects as with the repository's own scripts", () => {
    for (const addon of ['netting-1.1.0', ...(CHOSEN.includes('watching') ? ['watching-1.0.0'] : [])]) {
      assert.equal(failures('hooks', addon), []);
      assert.equal(failures('objects', addon), []);
      assert.equal(failures('reruns', addon), []);
      assert.ok((judged.find((one) => one.stage === 'objects' && one.addon === addon)?.count ?? 0) > 2);
    }
    assert.equal(failures('upgrade', 'netting-1.1.0'), []);
  });
} else {
  test.skip('all of it', reason);
}

test.run();
