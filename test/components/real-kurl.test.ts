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
/** Newest first; each run takes one of them, by its seed. */
const VERSIONS = { keeping: ['1.0.0'], netting: ['1.1.0', '1.0.0'], watching: ['1.0.0'] } as const;
const ADDONS = ['keeping', 'netting', 'watching'] as const;
const CHOSEN = ADDONS.filter((name) => leftToOtherRuns(name, ADDONS) === undefined);

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

  for (const name of ADDONS) {
    const elsewhere = leftToOtherRuns(name, ADDONS);
    if (elsewhere !== undefined) test.skip(name, elsewhere);
  }

  test('every stage has looked at every add-on', () => {
    const newest = CHOSEN.map((name) => `${name}-${VERSIONS[name][0]}`);
    const every = CHOSEN.flatMap((name) => VERSIONS[name].map((version) => `${name}-${version}`));
    const of = (stage: string): readonly string[] =>
      judged
        .filter((one) => one.stage === stage)
        .map(({ addon }) => addon)
        .toSorted();
    assert.equal(of('lint'), CHOSEN);
    assert.equal(of('plan'), CHOSEN);
    assert.equal(of('build'), every.toSorted());
    assert.equal(of('hooks'), newest);
    assert.equal(of('objects'), newest);
    assert.equal(of('upgrade'), CHOSEN.includes('netting') ? ['netting-1.1.0'] : []);
  });

  test("an add-on makes the same objects as with the repository's own scripts", () => {
    for (const name of CHOSEN) {
      const addon = `${name}-${VERSIONS[name][0]}`;
      assert.equal(failures('hooks', addon), []);
      assert.equal(failures('objects', addon), []);
      assert.equal(failures('reruns', addon), []);
      assert.ok((judged.find((one) => one.stage === 'objects' && one.addon === addon)?.count ?? 0) > 2);
    }
    if (CHOSEN.includes('netting')) assert.equal(failures('upgrade', 'netting-1.1.0'), []);
  });
} else {
  test.skip('all of it', reason);
}

test.run();
