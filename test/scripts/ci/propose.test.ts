import { execa } from 'execa';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, writeTree, type Tree } from '../../support/tree.ts';

const test = suite('scripts/ci/propose');

const PROPOSE = join(import.meta.dirname, '../../../scripts/ci/propose');
const GH = '#!/bin/sh\nprintf "%s\\n" "$*" >>"$HOME/gh"\n';

async function git(box: Tree, ...words: readonly string[]): Promise<string> {
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@b.example', '-c', 'init.defaultBranch=main'];
  const { stdout } = await execa('git', ['-C', box.at('work'), ...identity, ...words], { env: { HOME: box.path } });
  return stdout;
}

/** A checkout with one committed add-on, whose origin is a folder, and a `gh` that only writes down its words. */
async function checkout(): Promise<Tree> {
  const box = await tree({ 'bin/gh': GH, gh: '', 'work/addons/web/1.0/Manifest': '' });
  await execa('git', ['init', '--quiet', '--bare', box.at('origin')]);
  await git(box, 'init', '--quiet');
  await git(box, 'add', '.');
  await git(box, 'commit', '--quiet', '-m', 'first');
  await git(box, 'remote', 'add', 'origin', box.at('origin'));
  return box;
}

async function propose(box: Tree): Promise<string> {
  const env = { PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}`, HOME: box.path };
  const { stdout } = await execa(PROPOSE, ['web'], { cwd: box.at('work'), env, extendEnv: false });
  return stdout;
}

test('a version that was made becomes a branch and a pull request, with nothing else', async () => {
  await using box = await checkout();
  await writeTree(box.path, { 'work/addons/web/1.1/Manifest': 'x\n', 'work/node_modules/x': '' });
  await propose(box);
  const [setup, create = ''] = (await readFile(box.at('gh'), 'utf8')).trim().split('\n');
  assert.is(setup, 'auth setup-git');
  assert.match(
    create,
    /^pr create --head generate\/web-1\.1 --base main --title addons: add web 1\.1 .* No cluster has tried it\.$/,
  );
  const files = await execa('git', ['-C', box.at('origin'), 'show', '--name-only', '--format=%s', 'generate/web-1.1']);
  assert.is(files.stdout, 'addons: add web 1.1\n\naddons/web/1.1/Manifest');
});

test('what is proposed already is not proposed again', async () => {
  await using box = await checkout();
  await git(box, 'push', '--quiet', 'origin', 'HEAD:refs/heads/generate/web-1.1');
  await writeTree(box.path, { 'work/addons/web/1.1/Manifest': 'x\n' });
  assert.match(await propose(box), 'already exists');
  assert.not.match(await readFile(box.at('gh'), 'utf8'), 'pr create');
});

test('nothing new is nothing to propose', async () => {
  await using box = await checkout();
  assert.match(await propose(box), 'nothing new');
  assert.is(await readFile(box.at('gh'), 'utf8'), '');
});

test.run();
