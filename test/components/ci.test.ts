/** The steps for pull requests that need root: add-ons into sandboxes, and this checkout's own samples all the way. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import * as assert from '../support/assert.ts';
import { addonFiles, ci, commit, git, repository } from '../support/ci.ts';
import { suite } from '../support/suite.ts';
import { writeTree, type Files } from '../support/tree.ts';
import { cannotRun, ROOT } from './support/programs.ts';

const test = suite('pull requests of add-ons', { timeoutMs: 180_000 });

const reason = cannotRun('unshare', 'git');

const TRIAL = `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata: { name: trial }
spec:
  web: { version: latest, port: 8080 }
`;

const NEVER: Files = {
  ...addonFiles('never'),
  'addons/never/1.0.0/install.sh': '# shellcheck shell=bash\nnever() { no-cluster-here; }\n',
};

if (reason === undefined) {
  test('what changed is linted, built twice and installed; settings come from its trial spec', async () => {
    await using box = await repository({
      ...addonFiles('web'),
      ...addonFiles('still'),
      'addons/web/trial.yaml': TRIAL,
    });
    await git(box, 'branch', 'base');
    await writeTree(box.path, { ...addonFiles('web', '1.1.0'), ...NEVER });
    await commit(box, 'second');
    const { exitCode, stdout, stderr } = await ci(box, ['pull-request', 'base'], { NO_TRIAL: 'never' });
    assert.is(exitCode, 0, stdout + stderr);
    assert.match(stdout, /^web +1\.1\.0 +installed/m);
    assert.match(stdout, /^web +1\.1\.0 +already applied/m);
    assert.match(stdout, 'never 1.0.0: skipped');
    assert.not.match(stdout, /^(still|web +1\.0\.0)/m);
    assert.not.ok(existsSync(box.at('.curlew/ci/roots/web-1.1.0')));
  });

  test('an add-on that cannot be installed fails, with the line of its hook', async () => {
    await using box = await repository(NEVER);
    assert.is((await ci(box, ['build-twice'])).exitCode, 0);
    const { exitCode, stderr } = await ci(box, ['try-install']);
    assert.is(exitCode, 20, stderr);
    assert.match(stderr, /install\.sh:2/);
  });

  test('an add-on that is not found already applied fails', async () => {
    const install = '# shellcheck shell=bash\nweb() { :; }\nweb_already_applied() { false; }\n';
    await using box = await repository({ ...addonFiles('web'), 'addons/web/1.0.0/install.sh': install });
    const { exitCode, stderr } = await ci(box, ['try-install']);
    assert.is(exitCode, 1, stderr);
    assert.match(stderr, 'web 1.0.0: the second install did not find it already applied');
  });

  test('the sample add-ons of this checkout pass, with their registry', async () => {
    // The others are of a cluster, and come from the internet.
    const samples = ['addons/host-limits', 'addons/node-reserve'];
    const { stdout } = await execa('git', ['-C', ROOT, 'ls-files', '-z', ...samples], { stdin: 'ignore' });
    await using box = await repository({});
    const copy = 'tar -C "$1" --null -T - -cf - | tar -xf -';
    await execa('bash', ['-euo', 'pipefail', '-c', copy, 'bash', ROOT], { cwd: box.path, input: stdout });
    await commit(box, 'samples');
    for (const step of ['build-twice', 'try-install']) {
      const steps = `${ROOT}/scripts/ci/${step}`;
      const { exitCode, stdout: said, stderr } = await ci(box, ['with-samples', steps]);
      assert.is(exitCode, 0, said + stderr);
    }
  });
} else {
  test.skip('what changed is built twice and installed', reason);
}

test.run();
