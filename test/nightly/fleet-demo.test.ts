/** The demo of a fleet, as a person runs it, and as a person interrupts it. */
import { execa } from 'execa';
import { readdir, readFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { BUILT_MAIN } from '../support/built.ts';
import { HELM } from '../components/support/fleet-lab.ts';
import { until } from '../support/appears.ts';
import { API_SERVER_PROGRAMS } from '../components/support/api-server.ts';
import { MANAGER } from '../components/support/client-authority.ts';
import { cannotRun, ROOT } from '../components/support/programs.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('scripts/fleet-demo', { timeoutMs: 900_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS, MANAGER, HELM, BUILT_MAIN);

function start(box: Tree, ...words: readonly string[]) {
  return execa('scripts/fleet-demo', words, {
    cwd: ROOT,
    env: { TMPDIR: box.path },
    stdin: 'ignore',
    all: true,
    reject: false,
  });
}

/** Processes that have the folder in their command line. */
async function processesIn(box: Tree): Promise<readonly string[]> {
  const all = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(all.map(async (pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.filter((line) => line.includes(box.path));
}

async function assertNothingLeft(box: Tree): Promise<void> {
  assert.equal(
    (await readdir(box.path)).filter((name) => name.startsWith('curlew-')),
    [],
  );
  assert.equal(await processesIn(box), []);
}

if (reason === undefined) {
  test('shows a canary, a way back, a site that returns and one that leaves, and leaves nothing behind', async () => {
    await using box = await tree();
    const { exitCode, all } = await start(box);
    assert.is(exitCode, 0, all);
    for (const line of [
      /✓ the canary is back at 1\.0\.0/,
      /✓ rome has 1\.2\.0/,
      /✓ its certificate gives no rights/,
      /^ +\d\d:\d\d:\d\d {2}oslo +1\.1\.0, revision 2: Failed/m,
      /^ +\d\d:\d\d:\d\d {2}hub +RolledBack: /m,
      /^ +\d\d:\d\d:\d\d {2}rome +1\.2\.0, revision 2: Succeeded/m,
    ])
      assert.match(all, line);
    await assertNothingLeft(box);
  });

  test('Ctrl-C leaves nothing behind', async () => {
    await using box = await tree();
    const one = start(box, '--keep');
    let said = '';
    one.all.on('data', (part: Buffer) => (said += part.toString()));
    await until(() => said.includes('curlew controller --kubeconfig'));
    assert.ok((await processesIn(box)).length > 8);
    one.kill('SIGINT');
    assert.is((await one).exitCode, 130);
    await assertNothingLeft(box);
  });
} else test.skip('the demo', reason);

test.run();
