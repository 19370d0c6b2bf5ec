import { chmod, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { ENFORCED, install, isUntouched, TRIAL } from '../support/install-command.ts';
import { boxWith, type TestAddon } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';

const test = suite('cli/host-packages', { timeoutMs: 60_000 });

/** Programs of a machine whose packages and repositories are in files. */
async function machine(
  box: Tree,
  system: string,
  installed: readonly string[],
  offered: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  const programs = {
    'dpkg-query': `grep -qx "\${*: -1}" ${box.at('installed')} && echo installed 1`,
    'apt-cache': `grep -qx "$2" ${box.at('offered')}`,
    rpm: `grep -qx "\${*: -1}" ${box.at('installed')}`,
    dnf: `grep -qx "\${*: -1}" ${box.at('offered')}`,
  };
  await writeFile(box.at('installed'), installed.join('\n'));
  await writeFile(box.at('offered'), offered.join('\n'));
  await writeFile(box.at('os-release'), system);
  for (const [name, text] of Object.entries(programs)) {
    await writeFile(box.at(name), `#!/bin/bash\n${text}\n`);
    await chmod(box.at(name), 0o755);
  }
  return { PATH: `${box.path}:${process.env['PATH'] ?? ''}`, CURLEW_OS_RELEASE: box.at('os-release') };
}

const UBUNTU = 'ID=ubuntu\nVERSION_ID="24.04"\n';
const ROCKY = 'ID="rocky"\nVERSION_ID="9.4"\n';

function needing(name: string, deps: Readonly<Record<string, readonly string[]>>): TestAddon {
  return { ...tracer(name), extra: { deps } };
}

test('all host packages that lack are told at once, with who needs them and the command', async () => {
  const addons = [
    needing('aaa', { 'rhel-9': ['nfs-utils', 'git'], 'ubuntu-24.04': ['nfs-common'] }),
    needing('bbb', { 'rhel-9': ['nfs-utils', 'nosuch'], 'ubuntu-22.04': ['other'] }),
  ];
  await using box = await boxWith(addons);
  const env = await machine(box, ROCKY, ['git'], ['nfs-utils']);
  const { exitCode, stdout, stderr } = await install(box, ENFORCED, env);
  assert.equal([exitCode, stdout], [21, '']);
  assert.match(
    stderr,
    /\n {2}host package nfs-utils is missing: aaa 1\.0\.0, bbb 1\.0\.0 need it\n {2}host package nosuch is missing: bbb 1\.0\.0 needs it; no repository of this machine has it\n {2}hint: install the packages: dnf install -y nfs-utils nosuch; /,
  );
  await isUntouched(box);
  const dry = await install(box, [...ENFORCED, '--dry-run'], env);
  assert.is(dry.exitCode, 21);
  assert.match(dry.stdout, /^Problem: host package nosuch is missing/m);
  const looked = await runCommand(['preflight', '--bundle', 'b.tar.gz'], box.path, env);
  assert.is(looked.exitCode, 1);
  assert.match(looked.stdout, '[FAIL] Host package nfs-utils: is missing: aaa 1.0.0, bbb 1.0.0 need it\n');
  assert.match(looked.stderr, 'install the missing host packages: dnf install -y nfs-utils nosuch');
  const ignored = await install(box, TRIAL, env);
  assert.is(ignored.exitCode, 0, ignored.stderr);
  assert.match(ignored.stderr, 'warning: host package nosuch is missing');
});

test('host packages that are there, or are for another system, stop nothing', async () => {
  await using box = await boxWith([needing('aaa', { 'ubuntu-24.04': ['nfs-common'], 'rhel-9': ['nfs-utils'] })]);
  for (const [system, installed] of [
    [UBUNTU, ['nfs-common']],
    ['ID=ubuntu\nVERSION_ID="22.04"\n', []],
    ['ID=plan9\n', []],
  ] as const) {
    const { exitCode, stderr } = await install(box, ENFORCED, await machine(box, system, installed, []));
    assert.is(exitCode, 0, stderr);
  }
});

test('a list of host packages that holds something else than names is refused by add-on, file and line', async () => {
  await using box = await boxWith([needing('aaa', { 'rhel-9': ['git', '$(reboot)'] })]);
  const { exitCode, stderr } = await install(box, TRIAL, await machine(box, ROCKY, [], []));
  assert.is(exitCode, 16);
  assert.match(stderr, 'aaa-1.0.0: rhel-9/Deps:2: "$(reboot)" is not a package name');
  await isUntouched(box);
});

test.run();
