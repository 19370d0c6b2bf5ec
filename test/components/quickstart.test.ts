/** The quickstart, from a copy of the checkout that holds only what git would. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as assert from '../support/assert.ts';
import { NODES } from '../support/built.ts';
import { cleanEnvironment, curlewOk } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { isNightly } from '../support/sweep.ts';
import { tree } from '../support/tree.ts';
import { asOtherUser, OTHER_USER, USER_PROGRAMS } from './support/other-user.ts';
import { cannotRun, ROOT, shell } from './support/programs.ts';

const test = suite('scripts/quickstart', { timeoutMs: 600_000 });
const WIDTH = 80;

test('the add-ons of this repository pass lint without a warning, and its samples without a remark', async () => {
  const diagnosed = async (...addons: string[]): Promise<readonly { readonly severity: string }[]> => {
    const { diagnostics } = JSON.parse(await curlewOk(['lint', ...addons, '--json'], { cwd: ROOT })) as {
      diagnostics: readonly { readonly severity: string }[];
    };
    return diagnostics;
  };
  assert.equal(await diagnosed('host-limits', 'node-reserve'), []);
  // Files of other projects are pinned by a lock, which is made where the network is.
  assert.equal(
    (await diagnosed()).filter(({ severity }) => severity !== 'info'),
    [],
  );
});

test('--help says what it does, and any other word is refused before anything is built', async () => {
  const elsewhere = join(ROOT, 'docs');
  const help = await execa('../scripts/quickstart', ['--help'], { cwd: elsewhere });
  assert.match(help.stdout, /^All steps of an add-on, on this machine[^]*\nusage: scripts\/quickstart$/);
  assert.match((await execa('../scripts/test', ['--help'], { cwd: elsewhere })).stdout, 'usage: scripts/test ');
  const wrong = await execa('scripts/quickstart', ['--hlep'], { cwd: ROOT, reject: false });
  assert.equal([wrong.exitCode, wrong.stdout], [1, '']);
  assert.match(wrong.stderr, 'quickstart takes no --hlep; see scripts/quickstart --help');
});

const reason = cannotRun('git', ...USER_PROGRAMS);
if (reason === undefined) {
  test('works in a fresh copy, twice, cuts the network, fits a terminal, and needs no root', async () => {
    await using box = await tree();
    // What npm has fetched is linked instead of fetched again, and must not look older than what asks for it. What is built
    // is copied, but for nights, when the quickstart builds it.
    await shell(
      `cd "$1"; git ls-files -z -co --exclude-standard | xargs -0 cp --parents --preserve=timestamps -t "$2" --
       mkdir "$2/.curlew"; ln -s "$1/node_modules" "$2/"; ln -s "$3" "$2/.curlew/node"
       [ "$4" = build ] || { cp -a "$1/dist" "$2/"; touch "$2/dist/cli/main.js"; }`,
      ROOT,
      box.path,
      NODES,
      isNightly ? 'build' : '',
    );
    let said = '';
    for (const _run of ['first', 'second']) {
      const { stdout } = await execa('scripts/quickstart', {
        cwd: box.path,
        env: cleanEnvironment({ cwd: box.path }),
        extendEnv: false,
        stdin: 'ignore',
      });
      said = stdout;
      assert.match(stdout, /network (?:cut \(unshare --net\)|NOT cut: this machine does not let root)/);
      assert.match(stdout, /second install: already applied/);
      assert.equal(
        stdout.split('\n').filter((line) => line.length > WIDTH),
        [],
      );
    }
    const results = box.at('.curlew/quickstart');
    await curlewOk(['verify', `${results}/bundle.tar.gz`], { cwd: box.path });
    const written = said.includes('NOT confined') ? 'root' : 'root/host';
    const pod = await readFile(`${results}/${written}/etc/kubernetes/manifests/node-reserve.yaml`, 'utf8');
    assert.match(pod, /cpu: '250m'/);
    assert.match(pod, /memory: '256Mi'/);
    assert.not.ok(existsSync('/etc/kubernetes/manifests/node-reserve.yaml'));
    assert.not.ok(existsSync(box.at('out')));
    // An ordinary user, whose PATH has no folders of administrators.
    await shell('rm -r "$1/.curlew/quickstart"; chown -R "$2:$2" "$1"', box.path, String(OTHER_USER));
    const env = { HOME: box.path, PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin` };
    const [program, ...words] = asOtherUser('scripts/quickstart');
    const { stdout } = await execa(program, words, { cwd: box.path, env, extendEnv: false, stdin: 'ignore' });
    assert.match(stdout, /network NOT cut: only root can do that[^]*second install: already applied/);
  });
} else {
  test.skip('works in a fresh copy', reason);
}

test.run();
