/** What becomes of hooks in a sandbox when curlew ends, and of what they leave behind. Needs root and namespaces. */
import { execa } from 'execa';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ERROR_CODES } from '../../src/core/errors.ts';
import { confinedPlace, requireOwnLinks } from '../../src/runtime/hooks/confine.ts';
import { appears, until } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { never } from '../support/context.ts';
import { curlew, startCurlew } from '../support/curlew.ts';
import { unless } from '../support/needs.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';
import { asOtherUser, OTHER_USER } from './support/other-user.ts';
import { INSTALL, noSandbox, SCRIPTS, uid } from './support/sandbox.ts';

const test = suite('the sandbox of a trial', { timeoutMs: 180_000 });

const when = unless(await noSandbox(), test);

/** A bundle of one add-on with this body. */
async function withHook(box: Tree, body: string): Promise<void> {
  const script = `aaa() {\n${body}\n}\n`;
  await writeFile(box.at('b.tar.gz'), bundleOf([{ name: 'aaa', version: '1.0.0', files: { 'install.sh': script } }]));
}

/** Processes with this word on their command line. */
async function processesWith(word: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (pid !== String(process.pid) && line.includes(word)) found.push(line);
  }
  return found;
}

/** Comes back when there are so many of them; the deadline of the test is for those that stay. */
async function untilThereAre(count: number, word: string): Promise<void> {
  await until(async () => (await processesWith(word)).length === count);
}

async function gone(word: string): Promise<void> {
  await untilThereAre(0, word);
}

when('whoever kills curlew ends all that its hooks have started, and the same command goes on', async () => {
  await using box = await tree();
  const word = `86${process.pid}`;
  await withHook(
    box,
    `if [ "$CURLEW_ATTEMPT" -gt 1 ]; then return 0; fi
setsid sleep ${word} & ( trap '' TERM HUP INT; exec sleep ${word} ) &
touch "$DIR/ready"; sleep ${word}`,
  );
  const child = startCurlew(INSTALL, { cwd: box.path });
  await appears(box.at('root/var/lib/curlew/ready'), child);
  await untilThereAre(3, `sleep\0${word}`);
  child.kill('SIGKILL');
  await child;
  await gone(word);
  await gone(box.path);
  assert.not.match(await readFile('/proc/self/mountinfo', 'utf8'), box.path);
  const again = await curlew(INSTALL, { cwd: box.path });
  assert.is(again.exitCode, 0, again.stderr);
});

when('a hook that is stopped has time to end, and what it has left running ends with it', async () => {
  await using box = await tree();
  const word = `87${process.pid}`;
  await withHook(
    box,
    `setsid sleep ${word} &
trap 'echo cleaned >"$DIR/cleaned"; exit 1' TERM
touch "$DIR/ready"; sleep ${word} & wait`,
  );
  const child = startCurlew(INSTALL, { cwd: box.path });
  await appears(box.at('root/var/lib/curlew/ready'), child);
  child.kill('SIGINT');
  assert.is((await child).exitCode, 130);
  assert.is(await readFile(box.at('root/var/lib/curlew/cleaned'), 'utf8'), 'cleaned\n');
  await gone(word);
  await withHook(box, `setsid sleep ${word} &`);
  assert.is((await curlew([...INSTALL, '--reapply'], { cwd: box.path })).exitCode, 0);
  await gone(word);
});

when('programs that a hook has replaced are not run outside of the sandbox', async () => {
  await using box = await tree();
  await using proof = await tree();
  const evil = `#!/bin/sh
[ "$(awk '/^CapEff/ { print $2 }' /proc/self/status)" = 00000000800404fb ] || touch ${proof.at('out')} /dev/.old${proof.at('out')}
exit 1`;
  await withHook(
    box,
    `for name in mount umount unshare setpriv pivot_root chroot ip mkdir mknod ln stat find xargs chmod; do
  path="$(type -P "$name")" || continue
  printf '%s\\n' '${evil.replaceAll("'", `'\\''`)}' >"$path.new"; chmod 755 "$path.new"; mv "$path.new" "$path"
done
echo ${proof.at('no')}.so >/etc/ld.so.preload`,
  );
  assert.is((await curlew(INSTALL, { cwd: box.path })).exitCode, 0);
  await curlew([...INSTALL, '--reapply'], { cwd: box.path });
  assert.equal(await readdir(proof.path), []);
});

when('links that a hook leaves lead nothing out of the sandbox', async () => {
  await using box = await tree();
  await using outside = await tree();
  // Where the next run mounts something.
  await withHook(box, `rm -rf /opt/x; ln -s ${outside.path} /opt/x`);
  const words = [...INSTALL, '--install-dir', '/opt/x/node'];
  await curlew(words, { cwd: box.path });
  await curlew(words, { cwd: box.path });
  assert.equal(await readdir(outside.path), []);
  for (const name of ['assets', 'addons/aaa']) {
    await using node = await tree();
    await withHook(node, `rm -rf "$DIR/${name}"; ln -s ${outside.path} "$DIR/${name}"`);
    const first = await curlew(INSTALL, { cwd: node.path });
    assert.is(first.exitCode, 20, name);
    assert.match(first.stderr, 'a symbolic link that leads out of the sandbox');
    const second = await curlew(INSTALL, { cwd: node.path });
    assert.is(second.exitCode, 20, name);
    assert.equal(await readdir(outside.path), []);
  }
});

when('a removal that continues after a hook that failed removes nothing behind a link that it left', async () => {
  for (const end of ['return 1', 'return 0']) {
    await using box = await tree({ 'victim/aaa/kept': '' });
    const script = `aaa() { :; }
aaa_uninstall() { rm -rf "$DIR/kustomize"; ln -s ${box.at('victim')} "$DIR/kustomize"; ${end}; }
`;
    const files = { 'install.sh': script };
    await writeFile(
      box.at('b.tar.gz'),
      bundleOf([{ name: 'aaa', version: '1.0.0', files, extra: { hooks: ['aaa_uninstall'] } }]),
    );
    const installed = await curlew(INSTALL, { cwd: box.path });
    assert.is(installed.exitCode, 0, installed.stderr);
    const words = ['uninstall', 'aaa', '--root', 'root', '--yes', '--keep-going'];
    const { exitCode, stderr } = await curlew(words, { cwd: box.path });
    assert.equal(await readdir(box.at('victim/aaa')), ['kept']);
    assert.is(exitCode, 20, stderr);
    assert.match(stderr, 'a symbolic link that leads out of the sandbox');
  }
});

/** Status and output of a command in the sandbox, where `mount` is first changed by these words of sed on its table. */
async function withMounts(box: Tree, change: string, command: readonly [string, ...string[]]): Promise<string> {
  const { wrap } = await confinedPlace({ root: box.at('root'), seen: '/opt/x', scripts: SCRIPTS, uid, signal: never });
  const [program, ...args] = wrap(command);
  const mount = `#!/bin/bash\nPATH="\${PATH#*:}"\n[[ "$1" != --all ]] || sed -i '${change}' "$3"\nexec mount "$@"\n`;
  await writeTree(box.at('bin'), { mount });
  const env = { PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}` };
  const { all, exitCode } = await execa(program, args, { env, reject: false, all: true });
  return `${exitCode}: ${all}`;
}

when('mounts that are passed over or fail keep the command from being run', async () => {
  await using box = await tree();
  const passedOver = await withMounts(box, '/ view.root /d', ['echo', 'run']);
  assert.is(passedOver, '1: not mounted with its options: view/root');
  const failed = await withMounts(box, 's/ view.proc proc / view\\/proc none-such /', ['echo', 'run']);
  assert.match(failed, /^1: not mounted with its options: view\/proc\n.*none-such/);
  assert.not.match(failed, 'run');
});

when('options of a bind that the mount of an old util-linux leaves out are added', async () => {
  await using box = await tree();
  const left = 's/ bind,nosuid,nodev/ bind/';
  const said = await withMounts(box, left, ['findmnt', '--noheadings', '--output', 'OPTIONS', '/opt/x']);
  assert.match(said, /^0: rw,nosuid,nodev/);
});

when('an ordinary user sees a folder that is shown with what is mounted below it, and writes to neither', async () => {
  await using box = await tree({ 'shown/below/file': 'x' });
  await Promise.all(['root', 'install'].map(async (name) => mkdir(box.at(name))));
  await execa('chown', ['-R', `${OTHER_USER}:${OTHER_USER}`, box.path]);
  const [shown, install] = [box.at('shown'), box.at('install')];
  const write = 'cat "$1/below/file"; touch "$1/new" || touch "$1/below/new" || touch "$1/below/file"';
  const confine = [join(SCRIPTS, 'confine.sh'), '--show', shown, box.at('root'), install, install];
  const mounts = 'mount --bind "$0" "$0"; mount --bind "$0/below" "$0/below"; exec "$@"';
  const user = asOtherUser('bash', ...confine, 'bash', '-c', write, 'bash', shown);
  const words = ['--mount', '--propagation', 'private', 'bash', '-euc', mounts, shown, ...user];
  const { all, exitCode } = await execa('unshare', words, { reject: false, all: true, stdin: 'ignore' });
  assert.match(all, /^x(?:touch: cannot touch '[^']*': Read-only file system\n?){3}$/);
  assert.is(exitCode, 1);
});

when('places that are hidden are empty and have the modes of those of the machine', async () => {
  await using box = await tree();
  const { wrap } = await confinedPlace({ root: box.at('root'), seen: '/opt/x', scripts: SCRIPTS, uid, signal: never });
  const places = ['/root', '/home', '/tmp', '/var/tmp'];
  const modes = ['stat', '-c', '%n %a', ...places] as const;
  const [program, ...args] = wrap(['bash', '-c', `"$@"; find ${places.join(' ')} -mindepth 1`, 'bash', ...modes]);
  const [inside, outside] = [await execa(program, args), await execa('stat', modes.slice(1))];
  assert.is(inside.stdout, outside.stdout);
});

when('a root that others can open is refused, since hooks can leave set-user-ID programs there', async () => {
  const root = await mkdtemp('/opt/curlew-sandbox-');
  try {
    await execa('chmod', ['755', root]);
    const options = { root, seen: '/var/lib/curlew', scripts: SCRIPTS, uid, signal: never };
    const error = await assert.rejectsWith(confinedPlace(options), 'UNSUPPORTED', /other users can open that folder/);
    assert.match(error.hint ?? '', /use a folder that does not exist/);
    assert.not.match(error.hint ?? '', /chmod/);
    const fresh = await confinedPlace({ ...options, root: join(root, 'new') });
    assert.is((await stat(join(fresh.directory, '../../..'))).mode & 0o777, 0o700);
  } finally {
    await rm(root, { recursive: true });
  }
});

for (const [title, before, code] of [
  ['a full disk', 'mount -t tmpfs -o size=16k,mode=700 tmpfs root; head -c 16k /dev/zero >root/full', 'NO_SPACE'],
  ['a limit of file sizes', 'ulimit -f 1', 'FILE_UNUSABLE'],
] as const) {
  when(`${title} is said as such, and not that there can be no sandbox`, async () => {
    await using box = await tree({ 'root/.keep': '' });
    await withHook(box, 'true');
    await execa('chmod', ['700', box.at('root')]);
    const words = ['-m', 'bash', '-c', `${before}; exec "$0" "$@"`, process.execPath, MAIN, ...INSTALL];
    const { stderr, exitCode } = await execa('unshare', words, { cwd: box.path, reject: false, stdin: 'ignore' });
    assert.is(exitCode, ERROR_CODES[code], stderr);
    assert.match(stderr, `error ${code}: cannot `);
    assert.not.match(stderr, /line \d+:|--unconfined/);
  });
}

test('links within the install folder are left alone', async () => {
  await using box = await tree({ 'addons/aaa/1.0.0/x': '', 'packages/bbb/1.0.0/x': '', 'assets/y': '' });
  const links =
    'ln -s y assets/z; ln -s addons here; for at in addons/aaa packages/bbb; do ln -s /etc $at/1.0.0/etc; done';
  await execa('bash', ['-ec', links], { cwd: box.path });
  await requireOwnLinks(box.path);
  await execa('ln', ['-s', 'nowhere', 'assets/dangling'], { cwd: box.path });
  await assert.rejectsWith(requireOwnLinks(box.path), 'HOOK_FAILED', /assets\/dangling/);
});

test.run();
