import { readFile } from 'node:fs/promises';
import { openFileSource } from '../../../src/formats/archive/read.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages, specOf } from '../../support/bundles.ts';
import { noise } from '../../support/packages.ts';
import { pullTo } from '../../support/pulls.ts';
import { keepSpec, serveStore } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { startServer } from '../../support/web-server.ts';

const test = suite('pull: bundles that are served', { timeoutMs: 120_000 });

test('a bundle that lies nowhere is fetched from its server, and gone on with after a restart of both', async ({
  signal,
}) => {
  await using box = await tree();
  const packages = ['alpha', 'beta'].map((name, at) => {
    return { name, version: '1.0', files: [{ path: 'images/a', data: noise(3_000_000, at + 1) }] };
  });
  const store = await publishTestPackages(box, packages, signal);
  await keepSpec(box, 'site', specOf({ alpha: 'latest', beta: 'latest' }));
  const file = box.at('bundle.tar.gz');
  const stop = new AbortController();
  {
    await using server = await serveStore(store);
    let came = 0;
    const pace = (bytes: number): number => {
      came += bytes;
      if (came > 4_000_000) stop.abort();
      return 0;
    };
    const pulling = pullTo(file, [`${server.url}/bundle/site.tar.gz`], { pace, signal: stop.signal });
    await assert.rejectsWith(pulling, 'CANCELLED');
  }
  await using server = await serveStore(store);
  const address = `${server.url}/bundle/site.tar.gz`;
  const { fetched, size } = await pullTo(file, [address], { signal });
  assert.ok(fetched <= size - 4_000_000, String(fetched));
  await using source = await openFileSource(file);
  await verifyArchive(source, { signal });
  const whole = Buffer.from(await (await fetch(address)).arrayBuffer());
  assert.ok((await readFile(file)).equals(whole));
});

test('why a server does not give a bundle is shown, with what was meant, and what is printable', async ({ signal }) => {
  await using box = await tree();
  const store = await publishTestPackages(box, [{ name: 'alpha', version: '1.0', files: [] }], signal);
  await keepSpec(box, 'typo', specOf({ alhpa: '1.0' }));
  const file = box.at('bundle.tar.gz');
  await using server = await serveStore(store);
  for (const [path, code, reason] of [
    ['typo', 'FETCH_FAILED', /returned 422 \(.*alhpa.*did you mean alpha/],
    ['site', 'NOT_FOUND', /there is no site\.tar\.gz \(.*site/],
  ] as const) {
    await assert.rejectsWith(pullTo(file, [`${server.url}/bundle/${path}.tar.gz`], { signal }), code, reason);
  }
  const body = `no\u001b[2J\u202e such thing\n\n  hint: ask\n${'x'.repeat(1 << 20)}`;
  for (const [status, code] of [
    [400, 'FETCH_FAILED'],
    [409, 'FETCH_FAILED'],
    [410, 'NOT_FOUND'],
  ] as const) {
    await using other = await startServer(() => ({ status, body }));
    const { message } = await assert.rejectsWith(pullTo(file, [`${other.url}/b.tar.gz`], { signal }), code);
    assert.match(message, ` (no\\u001b[2J\\u202e such thing; hint: ask; x`);
    assert.ok(message.length < 500, message);
  }
});

test.run();
