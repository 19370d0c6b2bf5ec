/** Runs over install folders of an older version, and of its bundles. */
import { execa } from 'execa';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { readRecords } from '../../src/runtime/node/records.ts';
import * as assert from '../support/assert.ts';
import { begunIn, done, eachOlder, NODE, whole } from '../support/compat.ts';
import { trace } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';

// not fast: hundreds of hooks
const test = suite('cli: runs of an older version', { timeoutMs: 240_000 });
const older = eachOlder(test);

for (const words of ['resume', 'install --bundle new.tar.gz'] as const) {
  older(`a run that failed in it is resumed by ${words} at the first hook that is not done`, async (boxOf) => {
    await using box = await boxOf('failed', 'bundles');
    await rm(box.at('failed', NODE, 'fail-web-1.1.0'));
    await done(box, `${words} --root failed --unconfined`);
    assert.equal(await trace(box), [
      'web install 1.1.0 welcome found 2',
      'tools post_init found 1',
      'web post_init found 1',
    ]);
    const { applied } = await readRecords(box.at('failed', NODE));
    assert.equal([applied['web']?.version, applied['web']?.finished], ['1.1.0', true]);
  });
}

older('a run that was killed in it starts over when the machine was restarted since', async (boxOf) => {
  await using box = await boxOf('killed', 'bundles');
  await rm(box.at('killed', NODE, 'stall-web'));
  const [run = ''] = await readdir(box.at('killed', NODE, 'runs'));
  const journal = box.at('killed', NODE, 'runs', run, 'journal.jsonl');
  await writeFile(journal, begunIn(await readFile(journal, 'utf8'), 'another'));
  await done(box, 'resume --root killed --unconfined');
  assert.equal((await trace(box)).slice(0, 3), [
    'tools pre_init 1',
    'web pre_init 1',
    'tools install 1.0.0 hello found 1',
  ]);
});

for (const words of ['resume', 'reset --yes'] as const) {
  older(`a reset that failed in it is continued by ${words}`, async (boxOf) => {
    await using box = await boxOf('reset');
    await rm(box.at('reset', NODE, 'stay-tools'));
    await done(box, `${words} --root reset --unconfined`);
    assert.equal(await trace(box), ['tools uninstall hello 2']);
    assert.is(await stat(box.at('reset', NODE, 'records.json')).catch(() => 'absent'), 'absent');
  });
}

older('what was changed in its packages is extracted again', async (boxOf) => {
  await using box = await boxOf('finished', 'bundles');
  await writeFile(box.at('finished', NODE, 'addons/web/1.0.0/install.sh'), 'web() { echo evil >>"$TRACE"; }\n');
  await done(box, 'install --bundle old.tar.gz --root finished --unconfined --reapply');
  assert.ok(!(await trace(box)).includes('evil'));
});

for (const [bundle, title] of [
  ['new.tar.gz', 'a bundle'],
  ['delta.tar.gz', 'a delta, which takes the rest from what it installed,'],
] as const) {
  older(`its node is upgraded by ${title}, and rolled back to its package`, async (boxOf) => {
    await using box = await boxOf('finished', 'bundles');
    await done(box, `install --bundle ${bundle} --root finished --unconfined`);
    assert.equal(await trace(box), whole('1.1.0', 'welcome'));
    assert.match((await done(box, 'status --root finished')).stdout, /^web can be rolled back to 1\.0\.0$/m);
    await done(box, 'rollback web --root finished --unconfined');
    assert.ok((await trace(box)).includes('web install 1.0.0 hello found 1'));
    assert.equal(await readdir(box.at('finished', NODE, 'addons/web')), ['1.0.0']);
  });
}

older('its add-ons are uninstalled with the settings that it noted', async (boxOf) => {
  await using box = await boxOf('finished');
  await done(box, 'uninstall web --root finished --unconfined --yes');
  assert.equal(await trace(box), ['web uninstall hello 1']);
  await done(box, 'reset --root finished --unconfined --yes');
  assert.equal(await trace(box), ['tools uninstall hello 1']);
  assert.is(await stat(box.at('finished', NODE)).catch(() => 'absent'), 'absent');
});

older('its bundles are installed: whole, in parts, unpacked, without the packages of other systems', async (boxOf) => {
  await using box = await boxOf('bundles');
  await mkdir(box.at('unpacked'));
  await execa('tar', ['-xzf', box.at('old.tar.gz'), '-C', box.at('unpacked')]);
  for (const source of [
    '--bundle old.tar.gz --key release.pub',
    '--bundle parts/old.tar.gz.parts.json',
    '--dir unpacked',
    '--bundle ubuntu.tar.gz',
  ]) {
    await done(box, `install ${source} --root fresh --unconfined`);
    assert.equal(await trace(box), whole('1.0.0', 'hello'), source);
    await done(box, 'verify --installed --root fresh');
    await rm(box.at('fresh'), { recursive: true });
  }
});

older('a delta is made for what it installed', async (boxOf) => {
  await using box = await boxOf('finished', 'store');
  await done(box, `inventory ${box.at('finished', NODE)} -o node.json`);
  await done(box, 'bundle new.yaml --from store --since node.json -o for-node.tar.gz');
  await done(box, 'install --bundle for-node.tar.gz --root finished --unconfined');
  assert.equal(await trace(box), whole('1.1.0', 'welcome'));
});

test.run();
