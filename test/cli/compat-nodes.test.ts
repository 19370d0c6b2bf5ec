/** Install folders of an older version, and what it had saved for them: read, resumed, rolled back. */
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { toolVersion } from '../../src/own/version.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import * as assert from '../support/assert.ts';
import { done, eachOlder, FIRST, NODE, refused, whole } from '../support/compat.ts';
import { trace } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli: nodes of an older version', { timeoutMs: 120_000 });
const older = eachOlder(test);

older('status, why and logs read what it installed, and do not call its files changed', async (boxOf, made) => {
  await using box = await boxOf('finished');
  const { stdout } = await done(box, 'status --root finished');
  assert.is(stdout.match(/^(?:tools|web) +1\.0\.0 .* files not verified$/gm)?.length, made === FIRST ? 2 : undefined);
  assert.is(stdout.match(/^(?:tools|web) +1\.0\.0 /gm)?.length, 2);
  assert.match(stdout, /^Last run: \S+, install, finished$/m);
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
  const why = (await done(box, 'why web --root finished')).stdout;
  assert.match(why, /^ {2}hook web_already_applied +done/m);
  const proof = made === FIRST ? '; its files are verified, or extracted again' : '';
  assert.match(`${why.replaceAll(/\s+/g, ' ')} `, `only checked${proof} `);
  assert.is((await done(box, 'logs --root finished')).stdout.match(/, install, finished$/gm)?.length, 2);
  assert.match((await done(box, 'logs web --root finished')).stdout, /^web already_applied 1$/m);
});

older('status, why and logs read a run that failed in it, and one that died', async (boxOf) => {
  await using box = await boxOf('failed', 'killed');
  const failed = (await done(box, 'status --root failed')).stdout;
  assert.match(failed, /^web +1\.1\.0 .* not finished$/m);
  assert.match(
    failed,
    /^Last run: \S+, install, failed\n {2}web: web failed with status 7 at \/\S+\/install\.sh:3 in web: return 7$/m,
  );
  assert.match((await done(box, 'why web --root failed')).stdout, /^failed +web: web failed with status 7/m);
  assert.match((await done(box, 'logs web install --root failed')).stdout, 'the port is in use');
  const killed = (await done(box, 'status --root killed')).stdout;
  assert.match(killed, /^Last run: \S+, install, was interrupted: curlew resume continues it$/m);
  assert.match((await done(box, 'why tools --root killed')).stdout, /^ {2}hook tools +done +it was not installed$/m);
});

older('what it installed is not installed again; its files are proved once', async (boxOf, made) => {
  await using box = await boxOf('finished', 'store');
  if (made === FIRST) await refused(box, 15, /^$/, 'verify --installed --root finished');
  const same = 'install --from store --installer old.yaml --key release.pub --root finished --unconfined';
  assert.match((await done(box, same)).stdout, /^web +1\.0\.0 +already applied/m);
  const ran = await trace(box);
  assert.ok(ran.includes('web already_applied 1') && !ran.some((line) => line.startsWith('web install')), ran.join());
  assert.match((await done(box, 'verify --installed --root finished')).stdout, /^2 packages, \d+ files, [\d.]+ kB$/m);
  assert.not.match((await done(box, 'status --root finished')).stdout, 'files');
});

older('a run that was killed in it is resumed, though its lock is still there', async (boxOf) => {
  await using box = await boxOf('killed', 'bundles');
  await stat(box.at('killed', NODE, 'lock'));
  await rm(box.at('killed', NODE, 'stall-web'));
  // What was done counts while the variables of hooks are the same (decision 37): a new setting of kURL's makes this start over.
  await done(box, 'resume --root killed --unconfined');
  assert.equal(await trace(box), [
    'web install 1.0.0 hello found 2',
    'tools post_init found 1',
    'web post_init found 1',
  ]);
  assert.is((await done(box, 'resume --root killed')).stdout, 'There is no run to resume.');
});

older('an upgrade that failed in it is rolled back to its package and settings', async (boxOf) => {
  await using box = await boxOf('failed', 'bundles');
  await done(box, 'rollback web --root failed --unconfined');
  assert.equal(await trace(box), ['web pre_init 1', 'web install 1.0.0 hello found 2', 'web post_init found 1']);
  const { applied } = await readRecords(box.at('failed', NODE));
  assert.equal([applied['web']?.version, applied['web']?.finished], ['1.0.0', true]);
});

older('an older version than a run that failed in it has begun is refused', async (boxOf) => {
  await using box = await boxOf('failed', 'bundles');
  // That version went back without a word; a downgrade that nobody asked for is refused since (CHANGELOG, status 34).
  await refused(box, 34, 'would downgrade web from 1.1.0', 'install --bundle old.tar.gz --root failed --unconfined');
});

older('a rollback that failed in it is resumed', async (boxOf) => {
  await using box = await boxOf('rollback', 'bundles');
  await rm(box.at('rollback', NODE, 'fail-web-1.0.0'));
  await done(box, 'resume --root rollback --unconfined');
  assert.equal(await trace(box), ['web install 1.0.0 hello found 3', 'web post_init found 1']);
  const { applied } = await readRecords(box.at('rollback', NODE));
  assert.equal([applied['web']?.version, applied['web']?.finished], ['1.0.0', true]);
});

older('a plan of an install that it saved is carried out, and refused when it does not hold', async (boxOf) => {
  await using box = await boxOf('bundles');
  // A plan holds for one version of curlew (decision 37): what is read here is its form, and what it rests on.
  const saved = await readFile(box.at('install-plan.json'), 'utf8');
  const plan = JSON.parse(saved) as { readonly basis: object };
  await writeFile(box.at('plan.json'), JSON.stringify({ ...plan, basis: { ...plan.basis, tool: '0.0.9' } }));
  await refused(box, 32, `curlew was 0.0.9 and is ${toolVersion()}`, 'install --plan plan.json');
  await writeFile(box.at('plan.json'), JSON.stringify({ ...plan, basis: { ...plan.basis, tool: toolVersion() } }));
  await done(box, 'install --plan plan.json');
  assert.equal(await trace(box), whole('1.0.0', 'hello'));
  await refused(box, 32, 'the records of this node: run', 'install --plan plan.json');
});

test.run();
