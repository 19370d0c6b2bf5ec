/** The same inputs give the same bytes, whatever machine, user, clock, locale or Node made them. */
import { execa } from 'execa';
import { readFile, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { cleanEnvironment, curlewOk } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Files, type Tree } from '../support/tree.ts';
import { cannotRun, ROOT } from './support/programs.ts';
import { NAME, PACKAGE, pushSample, sampleFiles, VERSION } from './support/sample.ts';
import { startRegistry, type RegistryDaemon } from './support/services.ts';

const test = suite('two builds', { timeoutMs: 180_000 });

const NODES = ['22.23.3', '24.21.0'];

let registry: RegistryDaemon;
let shared: Tree;

/** Builds in a folder of its own and hands back the digest of the package. */
async function built(files: Files, line: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  await using box = await tree();
  const folder = box.at('addons', NAME, VERSION);
  await writeTree(folder, files);
  for (const path of Object.keys(files)) await utimes(join(folder, path), 1, Math.random() * 1e9);
  await execa(
    'bash',
    ['-euc', line, 'bash', MAIN, 'build', NAME, '--registry-mirror', `registry.example=${registry.host}`],
    {
      cwd: box.path,
      env: cleanEnvironment({ cwd: box.path, env }),
      extendEnv: false,
      stdin: 'ignore',
    },
  );
  return digestOf(await readFile(box.at('out', PACKAGE)));
}

function reversed(files: Files): Files {
  return Object.fromEntries(Object.entries(files).toReversed());
}

const PLAIN = 'node "$@"';
const reason = cannotRun('docker-registry');

if (reason === undefined) {
  test.before(async () => {
    shared = await tree();
    registry = await startRegistry(shared.at('registry'));
    await pushSample(registry.host);
  });
  test.after(async () => {
    await registry[Symbol.asyncDispose]();
    await shared[Symbol.asyncDispose]();
  });

  test('in other folders, with files made in another order at another time, give the same bytes', async () => {
    assert.is(await built(reversed(sampleFiles()), PLAIN), await built(sampleFiles(), PLAIN));
  });

  test('under another umask, time zone and locale give the same bytes', async () => {
    const env = { TZ: 'Pacific/Kiritimati', LC_ALL: 'tr_TR.UTF-8', LANG: 'tr_TR.UTF-8' };
    assert.is(await built(sampleFiles(), `umask 077; ${PLAIN}`, env), await built(sampleFiles(), PLAIN));
  });

  test('one job at a time and many at once give the same bytes', async () => {
    assert.is(await built(sampleFiles(), `${PLAIN} --jobs 1`), await built(sampleFiles(), `${PLAIN} --jobs 8`));
  });

  for (const version of NODES) {
    test(`Node ${version} gives the same bytes`, async () => {
      await execa('scripts/tools', ['node', version], { cwd: ROOT });
      const other = join(ROOT, `.curlew/tools/node-${version}/bin/node`);
      const line = `"${other}" "$@"`;
      assert.is(await built(sampleFiles(), line), await built(sampleFiles(), PLAIN));
    });
  }

  test('the second one in the same place makes nothing', async () => {
    await using box = await tree();
    await writeTree(box.at('addons', NAME, VERSION), sampleFiles());
    const args = ['build', NAME, '--json', '--registry-mirror', `registry.example=${registry.host}`];
    await curlewOk(args, { cwd: box.path });
    const before = await readFile(box.at('out', PACKAGE));
    const again = JSON.parse(await curlewOk(args, { cwd: box.path })) as { packages: readonly { outcome: string }[] };
    assert.equal(
      again.packages.map(({ outcome }) => outcome),
      ['unchanged'],
    );
    assert.is(digestOf(await readFile(box.at('out', PACKAGE))), digestOf(before));
  });
} else {
  test.skip('all of them', reason);
}

test.run();
