/** docs/addons.md: every line of it works as shown, from an empty folder to an upgraded add-on, and to a setting in a cluster. */
import { execa } from 'execa';
import { chmod, copyFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { shellQuote } from '../../src/core/shell-word.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { cleanEnvironment } from '../support/curlew.ts';
import { unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer } from './support/api-server.ts';
import { cannotRun, oracle, ROOT } from './support/programs.ts';
import { noSandbox } from './support/sandbox.ts';

const test = suite('components/addons-page', { timeoutMs: 180_000 });
const page = await readFile(join(ROOT, 'docs/addons.md'), 'utf8');

/** Runs a block of the page as its reader does, with this curlew and the kubectl of the tests in PATH; returns what it prints. */
async function runBlock(box: Tree, block: string): Promise<string> {
  const env = {
    HOME: box.at('home'),
    PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}:${dirname(oracle('../api-server/kubectl'))}`,
  };
  const { all, exitCode } = await execa('bash', ['-euo', 'pipefail', '-c', block], {
    cwd: box.at('work'),
    env: cleanEnvironment({ cwd: box.path, env }),
    extendEnv: false,
    reject: false,
    all: true,
  });
  assert.is(exitCode, 0, all);
  return all;
}

async function reader(): Promise<Tree> {
  const program = `#!/bin/sh\nexec ${shellQuote(process.execPath)} ${shellQuote(MAIN)} "$@"\n`;
  const box = await tree({ 'bin/curlew': program });
  await chmod(box.at('bin/curlew'), 0o755);
  await mkdir(box.at('work'));
  return box;
}

const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
const [first = '', next = '', setting = ''] = blocks;
/** Lines of the last block that make the setting visible in a cluster: with it, and without it. */
const shown = setting.trimEnd().split('\n').slice(-2);

unless(cannotRun('unshare', 'setpriv', 'pivot_root'), test)(
  'an add-on is written, installed and upgraded',
  async () => {
    assert.is(blocks.length, 3);
    await using box = await reader();
    for (const [block, banner] of [
      [first, 'This machine is managed.\nContact: ops@example.com\n'],
      [next, 'This machine is managed. Call us before you change it.\nContact: ops@example.com\n'],
    ] as const) {
      assert.not.match(await runBlock(box, block), /warning: | warning [a-z]+\//);
      assert.is(await readFile(box.at('work/trial/host/etc/motd.d/motd'), 'utf8'), banner);
    }
  },
);

unless((await noSandbox()) ?? cannotRun(...API_SERVER_PROGRAMS), test)(
  'a setting goes from the schema and the spec into an object of the cluster',
  async () => {
    await using folder = await tree();
    await using server = await startApiServer(folder.at('server'));
    await using box = await reader();
    await mkdir(box.at('home/.kube'), { recursive: true });
    await copyFile(server.kubeconfig, box.at('home/.kube/config'));
    const written = await runBlock(box, setting.split('\n').slice(0, -3).join('\n'));
    assert.match(written, 'settings: none; curlew help addons shows how to add one');
    assert.match(written, '1 add-on, 0 errors, 0 warnings');
    for (const [line, data] of [
      [shown[0], 'Good morning $5'],
      [shown[1], 'Hello $5'],
    ] as const) {
      assert.match(line ?? '', /^curlew dev greeter /);
      await runBlock(box, line ?? '');
      const path = '-o=jsonpath={.data.text} {.data.price}';
      assert.is(await server.kubectl(['get', 'configmap', 'greeting', '-n', 'greeter', path]), data);
    }
  },
);

test.run();
