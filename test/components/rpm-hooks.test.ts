/** install_host_archives and its kin with the real dnf and rpm, on a root of their own with the network cut. */
import { execa } from 'execa';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { cannotRun, ROOT, run, shell } from './support/programs.ts';
import { makeRpms, type RpmSpec } from './support/rpm-repository.ts';

const test = suite('rpm packages by hooks', { timeoutMs: 180_000 });

const ADDON: readonly RpmSpec[] = [
  { name: 'app', version: '2.0-1', requires: ['library >= 1.0'] },
  { name: 'library', version: '2.0-1' },
  { name: 'left', conflicts: ['right'] },
  { name: 'needy', requires: ['nothing-has-this >= 3'] },
];
const OF_NODE: readonly RpmSpec[] = [
  { name: 'right', version: '3.0-1' },
  { name: 'library', version: '3.0-1' },
];

/** What the hook's shell has on top of the library: dnf and rpm that know only the root of this node. */
const NODE = `
dnf() {
  command dnf --installroot="$ROOT" --releasever=8 --setopt=module_platform_id=platform:el8 \\
    --setopt=cachedir="$ROOT.cache" --setopt=persistdir="$ROOT.persist" --setopt=logdir="$ROOT.log" "$@"
}
rpm() { command rpm --root "$ROOT" "$@"; }
LSB_DIST=rocky DIST_VERSION=8.9 DIST_VERSION_MAJOR=8
set -eE
`;

interface Said {
  readonly status: number | undefined;
  readonly text: string;
}

interface RpmNode {
  readonly hook: (line: string) => Promise<Said>;
  readonly installed: () => Promise<readonly string[]>;
}

async function makeNode(box: Tree, name: string): Promise<RpmNode> {
  const root = box.at(name);
  await mkdir(root);
  await mkdir(`${root}.log`);
  const env = { PATH: process.env['PATH'], HOME: box.path, LC_ALL: 'C', ROOT: root, TMPDIR: box.path };
  const load = `for file in "${join(ROOT, 'scripts/lib')}"/*.sh; do source "$file"; done`;
  return {
    hook: async (line) => {
      const words = ['-n', 'bash', '-c', `${load}\n${NODE}\n${line}`];
      const options = { all: true, reject: false, stdin: 'ignore', cwd: box.path, extendEnv: false, env } as const;
      const { exitCode, all } = await execa('unshare', words, options);
      return { status: exitCode, text: all };
    },
    installed: async () => {
      const words = ['--root', root, '-qa', '--qf', '%{name}-%{version}\n'];
      // Debian's rpm keeps what it knows below the home folder.
      const text = await run('rpm', words, { env: { HOME: box.path } });
      return text.split('\n').toSorted();
    },
  };
}

const reason = cannotRun('rpmbuild', 'dnf', 'createrepo_c', 'rpm', 'unshare');
if (reason === undefined) {
  let box: Tree;
  test.before(async () => {
    box = await tree();
    for (const [folder, packages] of [
      ['addon/rhel-8/archives', ADDON],
      ['of-node', OF_NODE],
    ] as const) {
      const made = box.at(`made-${folder.replaceAll('/', '-')}`);
      await makeRpms(made, packages);
      await mkdir(box.at(folder), { recursive: true });
      await shell('find "$1" -name "*.rpm" -exec cp {} "$2" \\;', made, box.at(folder));
      await run('createrepo_c', ['--quiet', box.at(folder)]);
    }
  });
  test.after(async () => box[Symbol.asyncDispose]());

  test('a package and what it needs are installed from the folder, and no repository is left behind', async () => {
    const node = await makeNode(box, 'empty');
    const before = await readdir(box.path);
    const said = await node.hook('install_host_archives addon app');
    assert.is(said.status, 0, said.text);
    assert.equal(await node.installed(), ['app-2.0', 'library-2.0']);
    const left = (await readdir(box.path)).filter((name) => !before.includes(name) && !name.startsWith('empty'));
    assert.equal(left, []);
    const again = await node.hook('yum_install_host_archives addon app && yum_is_host_package_installed app');
    assert.is(again.status, 0, again.text);
    assert.is((await node.hook('yum_is_host_package_installed left')).status, 1);
  });

  test('flat packages, and a folder without an index', async () => {
    const node = await makeNode(box, 'flat');
    await mkdir(box.at('flat-addon/rhel-8'), { recursive: true });
    await shell('cp "$1"/{app,library}-*.rpm "$2"', box.at('addon/rhel-8/archives'), box.at('flat-addon/rhel-8'));
    const said = await node.hook('install_host_packages flat-addon app');
    assert.is(said.status, 0, said.text);
    assert.equal(await node.installed(), ['app-2.0', 'library-2.0']);
  });

  test('a package that the node has in a newer version stays, and that is said', async () => {
    const node = await makeNode(box, 'newer');
    await node.hook('rpm -i --nodeps of-node/library-*.rpm');
    const said = await node.hook('install_host_archives addon app library');
    assert.is(said.status, 0, said.text);
    assert.match(said.text, /library 3\.0-1 of this machine is newer than 2\.0-1 in the package, and stays/);
    assert.equal(await node.installed(), ['app-2.0', 'library-3.0']);
  });

  test('a conflict is said in one line, and nothing is installed', async () => {
    const node = await makeNode(box, 'conflict');
    await node.hook('rpm -i --nodeps of-node/right-*.rpm');
    const said = await node.hook('install_host_archives addon left');
    assert.is(said.status, 1, said.text);
    assert.match(said.text, /conflict: .*left.* conflicts with right/);
    assert.equal(await node.installed(), ['right-3.0']);
  });

  test('a dependency that lacks, and a name that no package has, are said in one line', async () => {
    const node = await makeNode(box, 'lacking');
    const needy = await node.hook('install_host_archives addon needy');
    assert.is(needy.status, 1, needy.text);
    assert.match(
      needy.text,
      /needy-1\.0-1\.noarch needs nothing-has-this >= 3, which neither this machine nor the add-on has/,
    );
    const unknown = await node.hook('install_host_archives addon surely-not');
    assert.is(unknown.status, 1, unknown.text);
    assert.match(unknown.text, /the add-on has no package surely-not/);
    assert.equal(await node.installed(), ['']);
  });

  test('a damaged package is refused', async () => {
    const node = await makeNode(box, 'damaged');
    await mkdir(box.at('damaged-addon/rhel-8'), { recursive: true });
    await writeFile(box.at('damaged-addon/rhel-8/app.rpm'), 'no package');
    const said = await node.hook('install_host_packages damaged-addon app');
    assert.is(said.status, 1, said.text);
    assert.match(said.text, /could not be installed from .*damaged-addon/);
  });
} else {
  test.skip('all of it', reason);
}

test.run();
