import { execa } from 'execa';
import { mkdir, readdir, readFile, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { unpackScripts } from '../../src/cli/unpack-scripts.ts';
import * as assert from '../support/assert.ts';
import { compiledModule } from '../support/compiled.ts';
import { withVariables } from '../support/environment.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/unpack-scripts');

const MODULE = compiledModule('src/cli/unpack-scripts.ts');
const TEXTS = { 'hook-runner.sh': 'runner\n', 'lib/a.sh': 'library\n' };

/** A process of its own unpacks into `box` and runs a line with `folder`. */
async function unpacking(box: Tree, line: string): Promise<string> {
  // Not in the environment: whatever runs TypeScript here leaves files of its own there.
  const code = `process.env.TMPDIR = ${JSON.stringify(box.path)};
    const { unpackScripts } = await import(${JSON.stringify(MODULE)});
    const { readdirSync, statSync } = await import('node:fs');
    const folder = unpackScripts(${JSON.stringify(TEXTS)});
    ${line}`;
  const { stdout } = await execa(process.execPath, ['--input-type', 'module', '--eval', code], {
    cwd: join(import.meta.dirname, '../..'),
    reject: false,
  });
  return stdout;
}

test('scripts lie in a private folder while the process runs, and nowhere afterwards', async () => {
  await using box = await tree();
  const said = await unpacking(
    box,
    'console.log(JSON.stringify([readdirSync(folder, { recursive: true }).toSorted(), statSync(folder).mode & 0o777]))',
  );
  assert.equal(JSON.parse(said), [['hook-runner.sh', 'lib', 'lib/a.sh'], 0o700]);
  assert.equal(await readdir(box.path), []);
});

test('the next run removes what a killed process has left, unless a hook still runs from it', async () => {
  await using box = await tree();
  await unpacking(box, `process.kill(process.pid, 'SIGKILL')`);
  const [left = ''] = await readdir(box.path);
  assert.is(await readFile(box.at(left, 'lib/a.sh'), 'utf8'), TEXTS['lib/a.sh']);
  const user = execa('bash', ['-c', 'read -r line', box.at(left, 'hook-runner.sh')]);
  await unpacking(box, '');
  assert.equal(await readdir(box.path), [left]);
  user.stdin.end('go\n');
  await user;
  await unpacking(box, '');
  assert.equal(await readdir(box.path), []);
});

test('folders whose process is not known stay for a day, and other folders stay', async () => {
  const kept = ['curlew-scripts-Fresh1', 'curlew-scripts-of-mine', 'curlew-scripts-000000000000-1-1-Fresh1'];
  await using box = await tree();
  for (const name of kept) await mkdir(box.at(name));
  await mkdir(box.at('curlew-scripts-Older1'));
  const old = new Date(Date.now() - 2 * 86_400_000);
  for (const name of ['curlew-scripts-Older1', 'curlew-scripts-of-mine']) await utimes(box.at(name), old, old);
  await unpacking(box, '');
  assert.equal((await readdir(box.path)).toSorted(), kept.toSorted());
});

test('a place that is not there is an error that names it', async () => {
  await using box = await tree();
  using _folder = withVariables({ TMPDIR: box.at('missing') });
  assert.throwsWith(() => unpackScripts(TEXTS), 'FILE_UNUSABLE', /unpack scripts to .*missing/);
});

test.run();
