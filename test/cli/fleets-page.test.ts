/** The commands of docs/fleets.md, with API servers of the tests as clusters. */
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/fleets-page', { timeoutMs: 60_000 });

const page = await readFile('docs/fleets.md', 'utf8');
const [, commands = ''] = /^```bash\n(curlew fleet init .*?)^```$/ms.exec(page) ?? [];

test('the commands of the page bring the example to two clusters, and exit as it says', async () => {
  await using box = await tree();
  await using canary = await startMemoryApiServer();
  await using main = await startMemoryApiServer();
  await writeFile(box.at('canary.conf'), canary.kubeconfig);
  await writeFile(box.at('main.conf'), main.kubeconfig);
  let last = '';
  for (const line of commands.trim().split('\n')) {
    const [, command = '', status = '0'] = /^(.*?)(?: +# exits with (\d+).*)?$/.exec(line) ?? [];
    const [program, ...args] = command.split(' ');
    if (program === 'cp') for (const file of args.slice(0, -1)) await copyFile(box.at(file), box.at(`fleet/${file}`));
    if (program !== 'curlew') continue;
    const { exitCode, stdout, stderr } = await runCommand(args, box.path);
    assert.is(exitCode, Number(status), `${command}: ${stdout}${stderr}`);
    last = stdout;
  }
  assert.equal(last.split('\n'), ['ADD-ON  DONE  ROLLING  WAITING  FAILED', 'hello   2     0        0        0']);
});

test('the example can be checked and planned as it is, and no file is overwritten', async () => {
  await using box = await tree();
  const made = await runCommand(['fleet', 'init', 'fleet'], box.path);
  assert.is(made.exitCode, 0, made.stderr);
  assert.equal((await readdir(box.at('fleet'))).toSorted(), [
    '.gitignore',
    'canary.conf',
    'fleet.yaml',
    'hello.yaml',
    'main.conf',
  ]);
  const checked = await runCommand(['fleet', 'check', 'fleet'], box.path);
  assert.equal([checked.exitCode, checked.stdout], [0, '2 clusters, 1 add-on, 0 errors, 0 warnings']);
  const again = await runCommand(['fleet', 'init', 'fleet'], box.path);
  assert.match(again.stderr, /cannot create fleet\/\S+: it exists/);
});

test.run();
