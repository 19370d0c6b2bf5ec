/** What was collected, used as a node uses it: installed by the real dnf with the network cut, and updated later. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { run } from './support/programs.ts';
import { UPDATED_MODULES, UPDATES } from './support/rpm-packages.ts';
import { cannotRunRpm, copyRepository, startRpmLab, take, type RpmLab } from './support/rpm-lab.ts';
import { makeMetadata, makeRpms } from './support/rpm-repository.ts';

const test = suite('rpm packages, installed', { timeoutMs: 180_000 });

interface Node {
  /** dnf on the node, with one repository. `cut` takes the network away. */
  readonly dnf: (repository: string, words: readonly string[], options?: { readonly cut: boolean }) => Promise<string>;
  /** `name-epoch:version` of all that is installed. */
  readonly installed: () => Promise<readonly string[]>;
  readonly module: (name: string) => Promise<string>;
}

/** An empty root of an el8 system, below the lab's folder. */
async function makeNode(lab: RpmLab, name: string): Promise<Node> {
  const root = lab.box.at(name);
  const list = lab.box.at(`${name}.repos`);
  await mkdir(root);
  await mkdir(list);
  await mkdir(lab.box.at(`${name}.logdir`));
  const folders = ['cachedir', 'logdir', 'persistdir'].map((kind) => `${kind}=${lab.box.at(`${name}.${kind}`)}`);
  const choices = [`reposdir=${list}`, 'module_platform_id=platform:el8', 'plugins=0', 'best=1', 'metadata_expire=0'];
  const settings = [...folders, ...choices].map((setting) => `--setopt=${setting}`);
  const env = { HOME: lab.box.path, LC_ALL: 'C' };
  return {
    dnf: async (repository, words, { cut } = { cut: false }) => {
      await writeFile(`${list}/${name}.repo`, `[only]\nname=only\nbaseurl=${repository}\ngpgcheck=0\nenabled=1\n`);
      const common = ['--noplugins', '-y', `--installroot=${root}`, '--releasever=8', ...settings];
      const [command = '', ...rest] = [...(cut ? ['unshare', '-n'] : []), 'dnf', ...common, ...words];
      return run(command, rest, { env });
    },
    installed: async () => {
      const text = await run('rpm', ['--root', root, '-qa', '--qf', '%{name}-%{epochnum}:%{version}\n'], { env });
      return text.split('\n').toSorted();
    },
    module: async (module) => readFile(`${root}/etc/dnf/modules.d/${module}.module`, 'utf8'),
  };
}

const reason = cannotRunRpm();
if (reason === undefined) {
  let lab: RpmLab;
  test.before(async () => {
    lab = await startRpmLab();
  });
  test.after(async () => lab.close());

  const FIRST = [
    'bash-0:4.4',
    'filesystem-0:3.8',
    'glibc-0:2.28',
    'glibc-common-0:2.28',
    'library-1:2.0',
    'tool-0:1.0',
    'tool-base-0:1.0',
    'tool-extra-0:1.0',
    'tool-user-0:1.0',
  ];

  test('dnf installs from the folder with the network cut, modular packages too', async () => {
    const { folder } = await take(lab, ['tool-user', 'tool-extra', 'bash']);
    const node = await makeNode(lab, 'offline');
    await node.dnf(`file://${folder}`, ['install', 'tool-user', 'tool-extra', 'bash'], { cut: true });
    assert.equal(await node.installed(), FIRST);
  });

  test('an update against the real repository goes on afterwards, inside and outside of modules', async () => {
    const later = lab.box.at('later');
    await copyRepository(lab, later);
    await makeRpms(later, UPDATES);
    await makeMetadata(later, UPDATED_MODULES);
    const { folder } = await take(lab, ['tool-user', 'tool-extra', 'bash']);
    const node = await makeNode(lab, 'updated');
    await node.dnf(`file://${folder}`, ['install', 'tool-user', 'tool-extra', 'bash'], { cut: true });
    const enabled = await node.dnf(`file://${later}`, ['module', 'list', '--enabled']);
    assert.match(enabled, /^tool +1 \[d\]\[e\]/m);
    assert.not.match(enabled, /curlew|kurl|stable/);
    assert.match(await node.module('tool'), /^stream=1$/m);
    await node.dnf(`file://${later}`, ['update']);
    assert.equal(
      await node.installed(),
      FIRST.map((label) =>
        label.replace('library-1:2.0', 'library-1:2.1').replace(/^(tool|tool-user)-0:1\.0$/, '$1-0:1.1'),
      ),
    );
    // What the folder never had, from a module and from outside.
    await node.dnf(`file://${later}`, ['install', 'helper', 'service']);
    assert.ok((await node.installed()).includes('service-0:4.1'));
  });

  test('without the documents of its module dnf would refuse a modular package', async () => {
    const { folder } = await take(lab, ['tool']);
    await run('modifyrepo_c', ['--remove', 'modules', `${folder}/repodata`]);
    const node = await makeNode(lab, 'bare');
    let said = '';
    await node.dnf(`file://${folder}`, ['install', 'tool'], { cut: true }).catch((error: unknown) => {
      said = String(error);
    });
    assert.match(said, /[Nn]o available modular metadata for modular package/);
  });

  test('what a bare system lacks is enough on one', async () => {
    const { folder } = await take(lab, ['app'], { os: 'rhel-7-force' });
    const node = await makeNode(lab, 'base');
    await node.dnf(lab.server.url, ['install', 'bash']);
    await run('createrepo_c', ['--quiet', folder]);
    await node.dnf(`file://${folder}`, ['install', 'app'], { cut: true });
    assert.ok((await node.installed()).includes('app-0:2.0'));
  });
} else {
  test.skip('all of it', reason);
}

test.run();
