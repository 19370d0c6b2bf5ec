import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { sampleImage, waitProgram } from '../../scripts/sample-image.ts';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('the sample image');

test('each blob has the digest that it goes by, and the manifest names them all', () => {
  const { manifest, blobs } = sampleImage();
  for (const { digest, data } of [manifest, ...blobs]) assert.is(digest, digestOf(data));
  const text = manifest.data.toString();
  for (const { digest } of blobs) assert.ok(text.includes(digest));
});

test('is the same every time: its manifest has this digest', () => {
  const expected = 'sha256:bb965b256f76b40521903e16d7df417c2890fb6a238504767e9a98482cdf88d6';
  assert.is(sampleImage().manifest.digest, expected, 'packages of the sample add-ons change with it');
});

if (process.platform === 'linux' && process.arch === 'x64') {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`its program waits, and ends with 0 on ${signal}`, async (context) => {
      await using box = await tree();
      const path = box.at('wait');
      await writeFile(path, waitProgram());
      await chmod(path, 0o755);
      const child = spawn(path, { stdio: 'ignore' });
      const ended = once(child, 'exit');
      context.signal.addEventListener('abort', () => child.kill('SIGKILL'));
      // It is ready once it sleeps under its own name.
      while (!/^Name:\s+wait\n[^]*^State:\s+S/m.test(await readFile(`/proc/${child.pid}/status`, 'utf8'))) {
        context.signal.throwIfAborted();
        await pause(5);
      }
      child.kill(signal);
      assert.equal(await ended, [0, null]);
    });
  }
} else {
  test.skip('its program waits', 'it is for linux/amd64');
}

test.run();
