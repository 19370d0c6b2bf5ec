/** The development loop: build, install in a trial, again after a change; and installs from a folder of builds. */
import { once } from 'node:events';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { noSandbox } from '../components/support/sandbox.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { curlew, startCurlew } from '../support/curlew.ts';
import { unless } from '../support/needs.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/dev', { timeoutMs: 120_000 });
const inSandbox = unless(await noSandbox(), test);

const FOLDER = 'addons/web/1.0.0';

function script(words: string): string {
  return `web() {\n  ${words}\n}\nweb_outro() { echo "look at web"; }\n`;
}

async function boxWith(words: string): Promise<Tree> {
  return tree({ [`${FOLDER}/Manifest`]: '', [`${FOLDER}/install.sh`]: script(words) });
}

const MARK = 'mkdir -p /opt/web && echo "$WEB_COLOR" >>/opt/web/mark';

/** What the hooks of the trial wrote. */
async function marks(box: Tree, root = 'out/trial'): Promise<string> {
  return readFile(box.at(root, 'host/opt/web/mark'), 'utf8').catch(() => '');
}

inSandbox('dev builds the newest version and installs it in a trial, each time', async () => {
  await using box = await boxWith(MARK);
  await writeFile(box.at('addons/web/banner'), 'next to the versions');
  const first = await runCommand(['dev', 'web', '--set', 'web.color=red'], box.path);
  assert.is(first.exitCode, 0, first.stderr);
  assert.match(
    first.stdout,
    /web 1\.0\.0: built[^]*web {2}1\.0\.0 {2}installed[^]*look at web[^]*the trial is in \S+\/out\/trial/,
  );
  assert.is(await marks(box), 'red\n');
  const again = await runCommand(['dev', 'web'], box.path);
  assert.is(again.exitCode, 0, again.stderr);
  assert.match(again.stdout, /web 1\.0\.0: unchanged[^]*installed/);
  assert.is(await marks(box), 'red\n\n');
  assert.equal(await readdir(box.at('out/trial/var/lib/curlew/previous')).catch(() => []), []);
});

inSandbox('dev names the line of a failed hook in a file that can be opened', async () => {
  await using box = await boxWith('false');
  const { exitCode, stderr } = await runCommand(['dev', 'web'], box.path);
  assert.is(exitCode, 20, stderr);
  const [, file = '', line] = / failed with status 1 at (\S+):(\d+) in web: false$/m.exec(stderr) ?? [];
  assert.match((await readFile(file, 'utf8')).split('\n')[Number(line) - 1] ?? '', 'false', stderr);
});

inSandbox('dev that was stopped names the command that resumes its trial, which does', async () => {
  await using box = await boxWith('touch /opt/ready; [ -e "$DIR/go" ] || sleep 300');
  for (const [given, root] of [
    [[], 'out/trial'],
    [['--root', 'mine'], 'mine'],
    [['--root', 'watched', '--watch'], 'watched'],
  ] as const) {
    const child = startCurlew(['dev', 'web', ...given], { cwd: box.path });
    await appears(box.at(root, 'host/opt/ready'), child);
    child.kill('SIGINT');
    const { exitCode, stderr } = await child;
    assert.is(exitCode, 130, stderr);
    assert.match(stderr, new RegExp(`hint: [^\n]*curlew resume --root ${root}(?! --root)`));
    await writeFile(box.at(root, 'var/lib/curlew/go'), '');
    const resumed = await runCommand(['resume', '--root', root], box.path);
    assert.is(resumed.exitCode, 0, resumed.stderr);
    assert.match(resumed.stdout, /look at web/);
  }
});

inSandbox('dev takes a spec, and a folder for the trial', async () => {
  await using box = await boxWith(MARK);
  const spec =
    'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: s}\nspec:\n  web: {version: 1.0.x, color: blue}\n';
  await writeFile(box.at('spec.yaml'), spec);
  const { exitCode, stderr } = await runCommand(['dev', 'web', '--installer', 'spec.yaml', '--root', 'mine'], box.path);
  assert.is(exitCode, 0, stderr);
  assert.is(await marks(box, 'mine'), 'blue\n');
});

inSandbox('dev of a version that fails names no rollback, which it would undo at the next change', async () => {
  await using box = await boxWith(MARK);
  assert.is((await runCommand(['dev', 'web'], box.path)).exitCode, 0);
  await writeFile(box.at(FOLDER, 'install.sh'), script('false'));
  const { stderr } = await runCommand(['dev', 'web'], box.path);
  assert.match(stderr, /web: web failed with status 1[^]*fix the cause/);
  assert.not.match(stderr, /rollback/);
});

test('dev of what does not exist, of no add-on, and with a mistake', async () => {
  await using box = await boxWith('true');
  assert.is((await runCommand(['dev', 'wbe'], box.path)).exitCode, 14);
  assert.is((await runCommand(['dev'], box.path)).exitCode, 64);
  await writeFile(box.at(FOLDER, 'Manifest'), 'imgae a b\n');
  const { exitCode, stderr } = await runCommand(['dev', 'web'], box.path);
  assert.is(exitCode, 10, stderr);
  assert.match(stderr, /imgae/);
  assert.is(await stat(box.at('out/trial')).catch(() => 'absent'), 'absent');
});

inSandbox('dev --watch goes on after a mistake and a hook that fails, and ends clean', async () => {
  await using box = await boxWith('echo first');
  const child = startCurlew(['dev', 'web', '--watch'], { cwd: box.path });
  let said = '';
  child.stderr.on('data', (text: Buffer) => (said += text.toString()));
  const says = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(said)) await Promise.race([once(child.stderr, 'data'), once(child, 'exit')]);
    assert.match(said, pattern);
    said = '';
  };
  await says(/web-1\.0\.0 installed in \S+ s\nweb: look at web\nwaiting for changes in addons\/web; Ctrl-C ends\n/);
  await writeFile(box.at(FOLDER, 'Manifest'), 'imgae a b\n');
  await says(/warning: addons\/web\/1\.0\.0\/Manifest:1:1: [^]*imgae[^]*waiting for changes/);
  await writeFile(box.at(FOLDER, 'Manifest'), '');
  await writeFile(box.at(FOLDER, 'install.sh'), 'web() {\n  echo broken; return 3\n}\n');
  await says(/warning: web: web failed with status 3[^]*broken[^]*waiting for changes/);
  await writeFile(box.at(FOLDER, 'install.sh'), `web() {\n  ${MARK}\n}\n`);
  await says(/web-1\.0\.0 installed[^]*waiting for changes/);
  assert.is(await marks(box), '\n');
  child.kill('SIGINT');
  const { exitCode, stdout } = await child;
  assert.equal([exitCode, stdout], [0, '']);
});

inSandbox('install takes a folder of builds, with a spec and without one', async () => {
  await using box = await boxWith(MARK);
  await curlew(['build', '--arch', process.arch === 'arm64' ? 'arm64' : 'amd64'], { cwd: box.path });
  const words = ['install', '--from', 'out', '--root', 'root'];
  const plan = await runCommand([...words, '--dry-run'], box.path);
  assert.match(plan.stdout, /web 1\.0\.0\n/, plan.stderr);
  const { exitCode, stderr } = await runCommand([...words, '--set', 'web.color=red'], box.path);
  assert.is(exitCode, 0, stderr);
  assert.is(await marks(box, 'root'), 'red\n');
  const other =
    'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: s}\nspec:\n  db: {version: latest}\n';
  await writeFile(box.at('spec.yaml'), other);
  const none = await runCommand([...words, '--installer', 'spec.yaml'], box.path);
  assert.match(none.stderr, /out: it has no package of db/);
  await rm(box.at('out'), { recursive: true });
  const gone = await runCommand(words, box.path);
  assert.is(gone.exitCode, 14, gone.stderr);
});

test('a file of the folder that is not a package is named', async () => {
  await using box = await tree({ 'out/web-1.0.0.tar.gz': 'not an archive' });
  const { exitCode, stderr } = await runCommand(['install', '--from', 'out', '--root', 'root', '--dry-run'], box.path);
  assert.is(exitCode, 16, stderr);
  assert.match(stderr, /out\/web-1\.0\.0\.tar\.gz/);
});

test.run();
