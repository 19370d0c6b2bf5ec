import { mkdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { status } from '../../src/app/status.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/status: metrics');

test('the file of metrics is for all to read, and has the time of the last snapshot of etcd', async () => {
  await using box = await tree();
  const etcd = box.at('node/etcd');
  await mkdir(etcd, { recursive: true });
  for (const [name, time] of [
    ['etcd-2026-01-01T00-00-00Z.tar', 1000],
    ['etcd-2026-01-02T00-00-00Z.tar.age', 2000],
    ['notes', 3000],
  ] as const) {
    await writeFile(`${etcd}/${name}`, '');
    await utimes(`${etcd}/${name}`, time, time);
  }
  const context = { signal: never, report: noReport, env: {}, cwd: box.path };
  await writeFile(box.at('curlew.prom'), 'old');
  await status({ installDir: box.at('node'), prometheus: 'curlew.prom' }, context);
  assert.match(await readFile(box.at('curlew.prom'), 'utf8'), /^curlew_etcd_snapshot_timestamp_seconds 2000$/m);
  assert.is((await stat(box.at('curlew.prom'))).mode & 0o777, 0o644);
  const lost = status({ installDir: box.at('node'), prometheus: 'none/curlew.prom' }, context);
  await assert.rejectsWith(lost, 'FILE_UNUSABLE', /none\/curlew\.prom/);
});

test.run();
