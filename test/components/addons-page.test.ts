/** docs/addons.md: every line of it works as shown, from an empty folder to an upgraded add-on. */
import { execa } from 'execa';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { shellQuote } from '../../src/runtime/hooks/settings.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { cleanEnvironment } from '../support/curlew.ts';
import { unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { cannotRun, ROOT } from './support/programs.ts';

const test = suite('components/addons-page', { timeoutMs: 180_000 });
const page = await readFile(join(ROOT, 'docs/addons.md'), 'utf8');

unless(cannotRun('unshare', 'setpriv', 'pivot_root'), test)(
  'an add-on is written, installed and upgraded',
  async () => {
    await using box = await tree();
    await mkdir(box.at('bin'));
    const program = `#!/bin/sh\nexec ${shellQuote(process.execPath)} ${shellQuote(MAIN)} "$@"\n`;
    await writeFile(box.at('bin/curlew'), program);
    await chmod(box.at('bin/curlew'), 0o755);
    const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
    assert.is(blocks.length, 2);
    await mkdir(box.at('work'));
    for (const [block, banner] of [
      [blocks[0], 'This machine is managed.\nContact: ops@example.com\n'],
      [blocks[1], 'This machine is managed. Call us before you change it.\nContact: ops@example.com\n'],
    ] as const) {
      const env = cleanEnvironment({ cwd: box.path, env: { PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}` } });
      const { all, exitCode } = await execa('bash', ['-euo', 'pipefail', '-c', block ?? ''], {
        cwd: box.at('work'),
        env,
        extendEnv: false,
        reject: false,
        all: true,
      });
      assert.is(exitCode, 0, all);
      assert.not.match(all, /warning: | warning [a-z]+\//);
      assert.is(await readFile(box.at('work/trial/host/etc/motd.d/motd'), 'utf8'), banner);
    }
  },
);

test.run();
