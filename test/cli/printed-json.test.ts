/** Names in packages and requests are whatever their makers like: none may drive the terminal that shows them as JSON. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatLock } from '../../src/manifest/lock.ts';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { LOCK, lockedPackage } from '../support/described.ts';
import { writePackage } from '../support/packages.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli, printed JSON');

/** CSI as one character begins a command to a terminal; the other turns the direction of text. */
const HOSTILE = 'a\u009b2Jb\u202ec';
const ESCAPED = String.raw`a\u009b2Jb\u202ec`;
const DRIVES = /[\u0080-\u009f\u202e]/;

test('--json of a failure and of a result writes control characters of any kind as escapes', async () => {
  await using box = await tree();
  const failed = await curlew(['inspect', HOSTILE, '--json'], { cwd: box.path });
  assert.equal([failed.exitCode, DRIVES.test(failed.stdout), failed.stdout.includes(ESCAPED)], [14, false, true]);
  const settings = { type: 'object', title: HOSTILE };
  await writePackage(box.at('web.tar.gz'), 'web', '1.0.0', [], { settings });
  const { stdout } = await curlew(['inspect', 'web.tar.gz', '--json'], { cwd: box.path });
  assert.equal([DRIVES.test(stdout), stdout.includes(ESCAPED)], [false, true], stdout);
});

test('an SBOM on standard output writes them as escapes', async () => {
  await using box = await tree();
  const asset = { name: HOSTILE, source: './beside', size: 6, digest: LOCK.assets[1]?.digest ?? 'sha256:' };
  const { name, version, files, extra } = lockedPackage('web', formatLock({ ...LOCK, assets: [asset] }));
  await writePackage(box.at('web.tar.gz'), name, version, files, extra);
  const { stdout, stderr } = await runCommand(['sbom', 'web.tar.gz'], box.path);
  assert.equal([DRIVES.test(stdout), stdout.includes(ESCAPED)], [false, true], stderr);
});

/** What is never printed as it is, by file: keys of maps, and objects that kubectl reads. Messages are made visible as a whole. */
const NOT_PRINTED: readonly string[] = [
  'kurl/ceph.ts',
  'kurl/connectivity.ts',
  'kurl/jobs.ts',
  'render/findings.ts',
  'render/migration.ts',
];

test('nothing that commands print comes from JSON.stringify, which lets such characters stand', async () => {
  const folder = join(import.meta.dirname, '../../src/cli');
  const found: string[] = [];
  for (const name of await readdir(folder, { recursive: true })) {
    if (!name.endsWith('.ts')) continue;
    const text = await readFile(join(folder, name), 'utf8');
    // Inside of a text it quotes a word of a message.
    if (/(?<!\$\{)JSON\.stringify\b/.test(text)) found.push(name);
  }
  assert.equal(found.toSorted(), NOT_PRINTED, 'use printableJson');
});

test.run();
