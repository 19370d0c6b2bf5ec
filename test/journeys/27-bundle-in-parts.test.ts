/** A bundle that is made in parts, and read from them. */
import { execa } from 'execa';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf } from '../support/bundles.ts';
import { MAIN } from '../support/compiled.ts';
import { curlewOk, startCurlew } from '../support/curlew.ts';
import { noise } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('journeys/bundle-in-parts', { timeoutMs: 180_000 });

const WORDS = ['bundle', 'installer.yaml', '--from', 'store', '--split', '4M'];
const HEAD = 'parts/b.tar.gz.parts.json';

/** A store with a release of one package of some ten parts, and a spec. */
async function made(signal: AbortSignal): Promise<Tree> {
  const box = await tree({ 'installer.yaml': specOf({ alpha: '1.0.0' }) });
  const files = [{ path: 'assets/a.gz', data: noise(40_000_000) }];
  await publishTestPackages(box, [{ name: 'alpha', version: '1.0.0', files }], signal);
  await mkdir(box.at('parts'));
  return box;
}

async function partsOf(box: Tree): Promise<readonly string[]> {
  return (await readdir(box.at('parts'))).filter((name) => name.includes('.part-')).toSorted();
}

test('killed in the middle, the same command goes on, and the parts are the bundle', async ({ signal }) => {
  await using box = await made(signal);
  const words = [...WORDS, '-o', 'parts/b.tar.gz'];
  const killed = startCurlew(words, { cwd: box.path });
  while ((await partsOf(box)).length < 2) await wait(2, undefined, { signal });
  killed.kill('SIGKILL');
  await killed;
  const kept = await partsOf(box);
  const first = await stat(box.at('parts', kept[0] ?? ''));
  // Where it had finished before it was killed, nothing is left to be written.
  assert.match(await curlewOk([...words, '--force'], { cwd: box.path }), /parts\/b\.tar\.gz\.parts\.json: /);
  assert.is((await stat(box.at('parts', kept[0] ?? ''))).ino, first.ino);
  assert.equal(
    (await readdir(box.at('parts'))).filter((name) => name.startsWith('.') || name.endsWith('.begun')),
    [],
  );
  await curlewOk(['verify', HEAD], { cwd: box.path });
  await curlewOk(['bundle', 'installer.yaml', '--from', 'store', '-o', 'whole.tar.gz'], { cwd: box.path });
  const joined =
    'cat parts/b.tar.gz.part-* | cmp - whole.tar.gz && "$1" "$2" join-parts "$3" -o - | cmp - whole.tar.gz';
  await execa('bash', ['-euo', 'pipefail', '-c', joined, 'bash', process.execPath, MAIN, HEAD], { cwd: box.path });
  assert.ok((await partsOf(box)).length > 3);
  assert.match(await readFile(box.at(HEAD), 'utf8'), '"name":"b.tar.gz"');
});

test.run();
