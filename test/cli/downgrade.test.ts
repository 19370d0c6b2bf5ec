/** Older bundles on a node that has a newer version. */
import { writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { boxWith, bundleOf } from '../support/node-bundles.ts';
import { trace, tracer } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';

// not fast: hundreds of hooks
const test = suite('cli, downgrades', { timeoutMs: 120_000 });

/** b.tar.gz has web 1.9.0, newer.tar.gz has 1.10.0, with `more` in its install.sh. */
async function boxOfTwo(more = ''): Promise<Tree> {
  const box = await boxWith([tracer('web', '', '1.9.0'), tracer('db')]);
  await writeFile(box.at('newer.tar.gz'), bundleOf([tracer('web', more, '1.10.0'), tracer('db')]));
  return box;
}

async function on(box: Tree, command: string, bundle: string, ...more: readonly string[]): Promise<Outcome> {
  const words = ['--bundle', box.at(bundle), '--root', 'root', '--unconfined', ...more];
  return runTraced([command, ...words], box);
}

for (const [kind, first] of [
  ['install', 'install'],
  ['join', 'join'],
  ['upgrade', 'join'],
] as const) {
  test(`${kind} after ${first} refuses an older version and names both, also where it only plans`, async () => {
    await using box = await boxOfTwo();
    await on(box, first, 'newer.tar.gz');
    await trace(box);
    for (const more of [[], ['--dry-run']]) {
      const { exitCode, stderr } = await on(box, kind, 'b.tar.gz', ...more);
      assert.is(exitCode, 34);
      assert.match(stderr, 'error DOWNGRADE: this would downgrade web from 1.10.0 to 1.9.0\n');
      assert.match(stderr, '--allow-downgrade installs this one');
    }
    assert.equal(await trace(box), []);
    const allowed = await on(box, kind, 'b.tar.gz', '--allow-downgrade');
    assert.match(allowed.stdout, /^web {2}1\.10\.0 → 1\.9\.0 {2}(installed,|joined|upgraded)/m);
  });
}

test('a saved plan of a downgrade is carried out as it was allowed', async () => {
  await using box = await boxOfTwo();
  await on(box, 'install', 'newer.tar.gz');
  await on(box, 'install', 'b.tar.gz', '--dry-run', '--out', 'plan.json', '--allow-downgrade');
  const { exitCode, stdout, stderr } = await runTraced(['install', '--plan', 'plan.json'], box);
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^web {2}1\.10\.0 → 1\.9\.0 {2}installed/m);
});

test('after an upgrade that finished, the hint names rollback and --allow-downgrade, and no failure', async () => {
  await using box = await boxOfTwo();
  await on(box, 'install', 'b.tar.gz');
  await on(box, 'install', 'newer.tar.gz');
  const { exitCode, stderr } = await on(box, 'install', 'b.tar.gz');
  assert.is(exitCode, 34);
  assert.match(stderr, 'hint: curlew rollback --root root --unconfined web restores 1.9.0; --allow-downgrade installs');
});

test('after an upgrade that failed, the way back is rollback', async () => {
  await using box = await boxOfTwo('web() { false; }');
  await on(box, 'install', 'b.tar.gz');
  assert.is((await on(box, 'install', 'newer.tar.gz')).exitCode, 20);
  const { exitCode, stderr } = await on(box, 'install', 'b.tar.gz');
  assert.is(exitCode, 34);
  assert.match(stderr, 'curlew rollback --root root --unconfined web restores the version before the failed upgrade');
  const back = await runTraced(['rollback', 'web', '--root', 'root', '--unconfined'], box);
  assert.is(back.exitCode, 0, back.stderr);
});

test('a version that is installed stays protected after it failed to be applied again', async () => {
  const onlyOnce = 'web() { [ ! -e ran ] && touch ran; }';
  await using box = await boxOfTwo(onlyOnce.replaceAll('ran', '"$DIR/../ran"'));
  await on(box, 'install', 'newer.tar.gz');
  assert.is((await on(box, 'install', 'newer.tar.gz', '--reapply')).exitCode, 20);
  const { exitCode, stderr } = await on(box, 'install', 'b.tar.gz');
  assert.is(exitCode, 34, stderr);
  assert.match(stderr, 'error DOWNGRADE: this would downgrade web from 1.10.0 to 1.9.0\n');
  await writeFile(box.at('fails.tar.gz'), bundleOf([tracer('web', 'web() { false; }', '1.11.0'), tracer('db')]));
  const upgrade = await on(box, 'install', 'fails.tar.gz');
  assert.is(upgrade.exitCode, 20);
  assert.match((await on(box, 'install', 'fails.tar.gz', '--dry-run')).stdout, '1.10.0 → 1.11.0');
  assert.is((await on(box, 'install', 'b.tar.gz')).exitCode, 34);
});

test('a version whose first install failed is not protected, as it was never installed', async () => {
  await using box = await boxOfTwo('web() { false; }');
  assert.is((await on(box, 'install', 'newer.tar.gz')).exitCode, 20);
  const { exitCode, stderr } = await on(box, 'install', 'b.tar.gz');
  assert.is(exitCode, 0, stderr);
});

test.run();
