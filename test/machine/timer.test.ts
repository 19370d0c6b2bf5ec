/** What a timer repeats, and copies of snapshots. */
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { copySnapshot, etcdSnapshot, removeCopies } from '../../src/app/etcd-snapshot.ts';
import { startTimer, timerUnits } from '../../src/machine/run/timer.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('machine/timer');

/** The systemctl of these tests writes down its calls. */
const SYSTEMCTL = '#!/bin/sh\necho "$@" >>"$CALLS"\n';

const TIMER = { name: 'curlew-etcd-snapshot', description: 'Snapshot of etcd' };

test('a timer repeats the command with the same words, whatever they contain', async () => {
  const units = timerUnits(['/opt/a b/curlew', '--copy-to=/media/100%"$x'], {
    ...TIMER,
    everyMs: 6 * 3_600_000,
    spreadMs: 3_600_000,
    variables: '/etc/snapshot.env',
  });
  const service = units['curlew-etcd-snapshot.service'] ?? '';
  assert.ok(service.includes('\nExecStart="/opt/a b/curlew" "--copy-to=/media/100%%\\"$$x"\n'), service);
  assert.ok(service.includes('\nEnvironmentFile=-/etc/snapshot.env\n'), service);
  assert.match(
    units['curlew-etcd-snapshot.timer'] ?? '',
    /\nOnBootSec=300s\nOnUnitActiveSec=21600s\nRandomizedDelaySec=3600s\n/,
  );
  const often = timerUnits(['/opt/curlew'], { ...TIMER, everyMs: 30_000 });
  assert.match(often['curlew-etcd-snapshot.timer'] ?? '', /\nOnBootSec=30s\nOnUnitActiveSec=30s\n/);
});

test('the executable of a bundle stays when the folder of the bundle goes, and a timer from before is replaced', async () => {
  await using box = await tree({ 'bundle/curlew': 'program', 'bin/systemctl': SYSTEMCTL });
  await chmod(box.at('bin/systemctl'), 0o755);
  await chmod(box.at('bundle/curlew'), 0o755);
  await mkdir(box.at('units'));
  const executable = box.at('bundle/curlew');
  const context = {
    signal: never,
    report: () => undefined,
    env: { PATH: `${box.at('bin')}:${process.env['PATH']}`, CALLS: box.at('calls') },
    cwd: box.path,
    user: 0,
    program: () => ({ command: [executable], files: [executable], executable }),
  };
  const place = { directory: box.at('curlew'), units: box.at('units') };
  const start = async (everyMs: number) =>
    startTimer(['etcd', 'snapshot'], { ...TIMER, everyMs }, { ...place, context });
  assert.is(await start(3_600_000), 'curlew-etcd-snapshot.timer');
  await start(7_200_000);
  const copy = box.at('curlew/bin/curlew');
  assert.equal([await readFile(copy, 'utf8'), (await stat(copy)).mode & 0o777], ['program', 0o755]);
  const service = await readFile(box.at('units/curlew-etcd-snapshot.service'), 'utf8');
  assert.ok(service.includes(`ExecStart="${copy}" "etcd" "snapshot"\n`), service);
  assert.match(await readFile(box.at('units/curlew-etcd-snapshot.timer'), 'utf8'), /OnUnitActiveSec=7200s/);
  const other = startTimer([], { ...TIMER, everyMs: 1000 }, { ...place, context: { ...context, user: 1000 } });
  await assert.rejectsWith(other, 'UNSUPPORTED', /cannot start curlew-etcd-snapshot.timer: .* requires root/);
  const calls = 'daemon-reload\nenable curlew-etcd-snapshot.timer\nrestart curlew-etcd-snapshot.timer\n';
  assert.is(await readFile(box.at('calls'), 'utf8'), calls.repeat(2));
});

test('a copy is below the name of its machine, and a timer is not for one file', async () => {
  await using box = await tree({ 'etcd-1.tar': 'snapshot' });
  const context = { signal: never, report: () => undefined, env: {}, cwd: box.path };
  const own = hostname().toLowerCase();
  assert.match(
    await copySnapshot(box.at('etcd-1.tar'), 'copies', {}, context),
    new RegExp(`copies/${own}/etcd-1.tar$`),
  );
  assert.is(await readFile(box.at(`copies/${own}/etcd-1.tar`), 'utf8'), 'snapshot');
  // It has the keys of the cluster.
  assert.is((await stat(box.at(`copies/${own}/etcd-1.tar`))).mode & 0o777, 0o600);
  await writeFile(box.at('etcd-2.tar'), 'another');
  await copySnapshot(box.at('etcd-2.tar'), 'copies', {}, context);
  assert.equal(await readdir(box.at(`copies/${own}`)), ['etcd-1.tar', 'etcd-2.tar']);
  // Copies of snapshots before upgrades stay, and so does the new one, whatever the clock says.
  const [newest, last] = ['etcd-2025-12-31T00-00-00Z.tar', 'etcd-2026-01-02T00-00-00Z.tar.age'];
  const upgrade = 'etcd-2026-01-03T00-00-00Z-before-v1.35.4.tar';
  for (const name of ['etcd-2026-01-01T00-00-00Z.tar', last, upgrade]) {
    await writeFile(box.at(`copies/${own}/${name}`), '');
  }
  await writeFile(box.at(newest), 'new');
  await copySnapshot(box.at(newest), 'copies', { keep: 2 }, context);
  assert.equal((await readdir(box.at(`copies/${own}`))).toSorted(), [newest, last, upgrade]);
  await copySnapshot(box.at(newest), 'copies', { keep: 1 }, context);
  assert.equal((await readdir(box.at(`copies/${own}`))).toSorted(), [newest, upgrade]);
  // A store does the same.
  await writeFile(box.at(`copies/${own}/etcd-2026-01-04T00-00-00Z.tar`), '');
  await writeFile(box.at(`copies/${own}/notes.txt`), '');
  await removeCopies(createFolderStore(box.at('copies')), `${own}/${newest}`, { keep: 1, signal: never });
  assert.equal((await readdir(box.at(`copies/${own}`))).toSorted(), [newest, upgrade, 'notes.txt']);
  await assert.rejectsWith(
    copySnapshot(box.at(newest), box.at('etcd-1.tar'), {}, context),
    'FILE_UNUSABLE',
    /^cannot copy the snapshot to .*etcd-1\.tar: /,
  );
  const both = etcdSnapshot({ file: 'a.tar', every: 3_600_000 }, context);
  await assert.rejectsWith(both, 'USAGE', /--every is for snapshots below the install folder/);
});

test.run();
