import { execa } from 'execa';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { claim } from '../../../src/platform/files/claim.ts';
import { sweepPartials } from '../../../src/platform/files/partial.ts';
import { lockFolder } from '../../../src/runtime/node/lock.ts';
import * as assert from '../../support/assert.ts';
import { setTimeout as pause } from 'node:timers/promises';
import { suite } from '../../support/suite.ts';
import { ownerOf, partialNameOf } from '../../support/partials.ts';
import { tree } from '../../support/tree.ts';

const test = suite('files/claim');

test('a second claim is refused while the first one is held, and possible afterwards', async () => {
  await using box = await tree();
  {
    await using _first = await claim(box.at('p.tar.gz'));
    await assert.rejectsWith(claim(box.at('p.tar.gz')), 'BUSY', new RegExp(`process ${process.pid}`));
  }
  await using _second = await claim(box.at('p.tar.gz'));
  assert.equal(await readdir(box.path), ['.p.tar.gz.claim']);
});

test('the claim of a process that has ended is taken over', async () => {
  await using box = await tree();
  const { stdout } = await execa('sh', ['-c', 'echo $$']);
  await writeFile(box.at('.p.tar.gz.claim'), `${ownerOf({ pid: Number(stdout), start: '1' })} x\n`);
  await using _held = await claim(box.at('p.tar.gz'));
  assert.match(await readFile(box.at('.p.tar.gz.claim'), 'utf8'), new RegExp(`^${ownerOf()} `));
});

test('a killed process that its parent has not reaped holds no claim, no lock and no partial file', async () => {
  await using box = await tree();
  // The child ends once its parent is a program that never waits for it.
  const child = `sh -c 'until [ "$(cat /proc/$PPID/comm)" = sleep ]; do :; done'`;
  const parent = execa('sh', ['-c', `${child} & echo $!; exec sleep 100`], { buffer: false, reject: false });
  try {
    const [line]: readonly unknown[] = await once(parent.stdout, 'data');
    const pid = Number(String(line));
    const state = async (): Promise<readonly string[]> =>
      (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /s, '').split(' ');
    while ((await state())[0] !== 'Z') await pause(5);
    const start = (await state())[19] ?? '';
    await writeFile(box.at('.p.claim'), `${ownerOf({ pid, start })} x\n`);
    await writeFile(box.at('lock'), `${ownerOf({ pid, start })} x\n`);
    await writeFile(box.at(partialNameOf({ pid, start })), '');
    await sweepPartials(box.path);
    await using _claimed = await claim(box.at('p'));
    await using _locked = await lockFolder(box.path);
    assert.equal((await readdir(box.path)).toSorted(), ['.p.claim', 'lock']);
  } finally {
    parent.kill('SIGKILL');
  }
});

test('a reused process number is no claim: it started at another time', async () => {
  await using box = await tree();
  await writeFile(box.at('.p.tar.gz.claim'), `${ownerOf({ start: '1' })} x\n`);
  await using _held = await claim(box.at('p.tar.gz'));
});

test('a claim that cannot be read is taken over, and nothing else is left in the folder', async () => {
  await using box = await tree({ '.p.tar.gz.claim': '' });
  {
    await using _held = await claim(box.at('p.tar.gz'));
  }
  assert.equal(await readdir(box.path), []);
});

test('of many claims at once exactly one is given', async () => {
  await using box = await tree();
  const claims = await Promise.allSettled(Array.from({ length: 8 }, async () => claim(box.at('p'))));
  assert.is(claims.filter(({ status }) => status === 'fulfilled').length, 1);
});

test.run();
