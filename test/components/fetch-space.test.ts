import { statfsSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { publishTestPackages } from '../support/bundles.ts';
import { curlew, type Outcome } from '../support/curlew.ts';
import { specOf } from '../support/node-bundles.ts';
import { traced, tracerPackage } from '../support/node-install.ts';
import { noise } from '../support/packages.ts';
import { notedBytes } from '../support/pulls.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { serveFolder } from '../support/web-server.ts';
import { cannotRun, run } from './support/programs.ts';

const test = suite('components/fetch-space', { timeoutMs: 120_000 });
const TITLE = 'a disk that fills up while packages are fetched: the same command goes on when there is room';
const reason = cannotRun('mount');

if (reason === undefined) {
  test(TITLE, async ({ signal }) => {
    await using box = await tree({ 'spec.yaml': specOf([{ name: 'aaa', version: 'latest' }]) });
    await publishTestPackages(box, [tracerPackage('aaa', '1.0.0', { 'assets/blob': noise(6_000_000) })], signal);
    let sent = 0;
    let fill = true;
    const filler = box.at('root/filler');
    const count = (
      { method }: { readonly method: string },
      { body }: { readonly body?: Uint8Array | string },
    ): undefined => {
      if (method !== 'GET') return;
      const { byteLength } = Buffer.from(body ?? '');
      sent += byteLength;
      if (!fill || byteLength < 1_000_000) return;
      // After the plan has found room for everything, something else takes it.
      fill = false;
      const { bavail, bsize } = statfsSync(box.at('root'));
      writeFileSync(filler, Buffer.alloc(bavail * bsize - 4_000_000));
    };
    await using server = await serveFolder(box.at('store'), { faults: [count] });
    await mkdir(box.at('root'));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=60m', 'tmpfs', box.at('root')]);
    try {
      const words = ['--root', 'root', '--unconfined', '--installer', 'spec.yaml', '--from', server.url];
      const install = async (): Promise<Outcome> => curlew(['install', ...words], traced(box));
      const full = await install();
      assert.is(full.exitCode, 18, full.stderr);
      assert.match(full.stderr, 'run the same command again');
      const fetched = box.at('root/var/lib/curlew/fetched');
      let there = 0;
      for (const name of await readdir(fetched)) {
        if (name.endsWith('.json')) there += await notedBytes(`${fetched}/${name}`);
      }
      assert.ok(there > 2_000_000, String(there));
      await rm(filler);
      sent = 0;
      const { exitCode, stderr } = await install();
      assert.is(exitCode, 0, stderr);
      assert.ok(sent < 6_300_000 - there, `${sent} bytes came again, ${there} were there`);
    } finally {
      await run('umount', [box.at('root')]);
    }
  });
} else {
  test.skip(TITLE, reason);
}

test.run();
