/** A disk that cannot hold a run: said before the first change, and the same command succeeds with room. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew, curlewOk } from '../support/curlew.ts';
import { binaryLike } from '../support/images.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { cannotRun, run } from './support/programs.ts';

const test = suite('plan of the disk', { timeoutMs: 120_000 });

const reason = cannotRun('mount', 'umount');
const TITLES = {
  bytes: 'too few bytes are told with what is lacking, and nothing is changed',
  inodes: 'too few inodes are, too',
} as const;

if (reason === undefined) {
  for (const [title, small, lack] of [
    [TITLES.bytes, 'size=500k', /\/disk: \d+ MB more needed: the run needs 2 MB; 1 MB are free/],
    [
      TITLES.inodes,
      'size=100m,nr_inodes=7',
      /\/disk: \d+ more inodes needed: the run creates \d+ files; \d inodes are free/,
    ],
  ] as const) {
    test(title, async () => {
      await using box = await tree();
      const { name, version, files } = tracer('aaa');
      const big = { name, version, files: { ...files, 'data/big': binaryLike(1_000_000, 'big', 1) } };
      await writeFile(box.at('b.tar.gz'), bundleOf([big]));
      await mkdir(box.at('disk'));
      await run('mount', ['-t', 'tmpfs', '-o', small, 'tmpfs', box.at('disk')]);
      try {
        const words = ['install', '--bundle', 'b.tar.gz', '--root', 'disk', '--unconfined'];
        const env = { TRACE: box.at('trace') };
        const told = await curlew([...words, '--dry-run'], { cwd: box.path, env });
        assert.is(told.exitCode, 18, told.stderr);
        assert.match(told.stdout, /^Problem: .*\/disk is too small: /m);
        assert.equal(await readdir(box.at('disk')), []);
        const { exitCode, stderr } = await curlew(words, { cwd: box.path, env });
        assert.is(exitCode, 18, stderr);
        assert.match(stderr, /^error NO_SPACE: the disk is too small for this run; nothing was changed$/m);
        assert.match(stderr, lack);
        assert.equal(await readdir(box.at('disk'), { recursive: true }), []);
        await run('mount', ['-o', 'remount,size=100m,nr_inodes=10k', box.at('disk')]);
        await curlewOk(words, { cwd: box.path, env });
      } finally {
        await run('umount', [box.at('disk')]);
      }
    });
  }
} else {
  for (const title of Object.values(TITLES)) test.skip(title, reason);
}

test.run();
