import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf, type TestPackage } from '../support/bundles.ts';
import { noise } from '../support/packages.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/delta', { timeoutMs: 120_000 });

const package_ = (version: string, seed: number): TestPackage => ({
  name: 'alpha',
  version,
  files: [
    { path: 'install.sh', data: 'alpha() { :; }\n' },
    { path: 'images/blobs/sha256/a', data: noise(400_000, 1) },
    { path: 'images/blobs/sha256/b', data: noise(200_000, seed) },
  ],
});

/** A store with both versions, and the bundle of the first. */
async function site(signal: AbortSignal): Promise<Tree> {
  const box = await tree({ '1.yaml': specOf({ alpha: '1.0.0' }), '2.yaml': specOf({ alpha: '1.0.1' }) });
  await publishTestPackages(box, [package_('1.0.0', 2), package_('1.0.1', 3)], signal);
  const made = await runCommand(['bundle', '1.yaml', '--from', 'store', '-o', '1.tar.gz'], box.path);
  assert.is(made.exitCode, 0, made.stderr);
  return box;
}

test('from inventory to the whole bundle, by the commands', async ({ signal }) => {
  await using box = await site(signal);
  const listed = await runCommand(['inventory', '1.tar.gz', '-o', 'i.json'], box.path);
  assert.match(listed.stdout, /i\.json: \d+ files, .* in 1 package\ninventory sha256:[0-9a-f]{64}$/);
  const printed = await runCommand(['inventory', '1.tar.gz'], box.path);
  assert.is(`${printed.stdout}\n`, await readFile(box.at('i.json'), 'utf8'));
  assert.is((await runCommand(['inventory', '1.tar.gz', '-o', '-'], box.path)).stdout, printed.stdout);
  const nowhere = await runCommand(['inventory', 'nowhere'], box.path);
  assert.is(nowhere.exitCode, 14);
  assert.match(nowhere.stderr, /no such file or folder\n {2}hint: use a bundle, a folder of bundles/);

  const delta = await runCommand(
    ['bundle', '2.yaml', '--from', 'store', '--since', 'i.json', '-o', 'd.tar.gz'],
    box.path,
  );
  assert.match(
    delta.stdout,
    /d\.tar\.gz: 2\d\d kB from release r1.*\n {2}\d[^\n]*\na delta: recreates a bundle of \S+ [kM]B\n {2}since {2}sha256/,
  );
  const direct = ['bundle', '2.yaml', '--from', 'store', '--since', '1.tar.gz', '-o', 'direct.tar.gz'];
  assert.is((await runCommand(direct, box.path)).exitCode, 0);
  assert.ok((await readFile(box.at('direct.tar.gz'))).equals(await readFile(box.at('d.tar.gz'))), 'the bundle itself');
  const planned = ['bundle', '2.yaml', '--from', 'store', '--since', 'i.json', '--dry-run', '--out', 'p.json'];
  assert.is((await runCommand(planned, box.path)).exitCode, 0);
  const later = await runCommand(
    ['bundle', '--from-plan', 'p.json', '--from', 'store', '-o', 'later.tar.gz'],
    box.path,
  );
  assert.is(later.exitCode, 0, later.stderr);
  assert.ok((await readFile(box.at('later.tar.gz'))).equals(await readFile(box.at('d.tar.gz'))));
  const twice = ['bundle', '--from-plan', 'p.json', '--from', 'store', '--since', 'i.json', '-o', 'x'];
  assert.is((await runCommand(twice, box.path)).exitCode, 64);

  const full = await runCommand(['bundle', '2.yaml', '--from', 'store', '-o', '2.tar.gz'], box.path);
  assert.is(full.exitCode, 0, full.stderr);
  assert.is((await runCommand(['apply', 'd.tar.gz', '--base', '1.tar.gz', '-o', '-'], box.path)).exitCode, 64);
  const applied = await runCommand(['apply', 'd.tar.gz', '--base', '1.tar.gz', '-o', 'made.tar.gz'], box.path);
  assert.is(applied.exitCode, 0, applied.stderr);
  assert.ok((await readFile(box.at('made.tar.gz'))).equals(await readFile(box.at('2.tar.gz'))));
  const { tocDigest } = JSON.parse(
    (await runCommand(['bundle', '2.yaml', '--from', 'store', '--dry-run', '--json'], box.path)).stdout,
  ) as { tocDigest: string };
  const word = new RegExp(
    `\\na delta: recreates a bundle of .* [kM]B\\n {2}since {2}sha256:\\w+\\n {2}bundle ${tocDigest}`,
  );
  assert.match((await runCommand(['verify', 'd.tar.gz'], box.path)).stdout, word);
  assert.match((await runCommand(['inspect', 'd.tar.gz'], box.path)).stdout, word);
  assert.not.match((await runCommand(['verify', '2.tar.gz'], box.path)).stdout, 'delta');
});

test('a delta is signed under the name of the bundle that it makes, and as making that', async ({ signal }) => {
  await using box = await site(signal);
  const spec = (name: string): string =>
    `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata:\n  name: ${name}\nspec:\n  alpha:\n    version: 1.0.1\n`;
  await writeFile(box.at('edge.yaml'), spec('edge'));
  const run = async (...words: readonly string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await runCommand(words, box.path);
    assert.is(exitCode, 0, stderr);
    return stdout;
  };
  await run('bundle', 'edge.yaml', '--from', 'store', '-o', 'full.tar.gz');
  const since = ['bundle', 'edge.yaml', '--from', 'store', '--since', 'i.json', '-o'];
  await run('inventory', '1.tar.gz', '-o', 'i.json');
  await run(...since, 'd.tar.gz');
  await run('keygen', 'our');
  const [full] = JSON.parse(await run('sign', 'full.tar.gz', '--key', 'our.key', '--json')) as [{ digest: string }];
  assert.match(await run('sign', 'd.tar.gz', '--key', 'our.key'), /: the bundle edge, version/);
  const text = await readFile(box.at('d.tar.gz.sigstore.json'), 'utf8');
  const { payload } = (JSON.parse(text) as { dsseEnvelope: { payload: string } }).dsseEnvelope;
  const { subject } = JSON.parse(Buffer.from(payload, 'base64').toString()) as {
    subject: readonly { name: string; digest: { sha256: string } }[];
  };
  assert.is(`sha256:${subject.find(({ name }) => name === 'contents.json')?.digest.sha256}`, full.digest);
  await writeFile(box.at('odd.yaml'), spec('"An edge"'));
  await run('bundle', 'odd.yaml', '--from', 'store', '--since', 'i.json', '-o', 'odd.tar.gz');
  const unnamed = await runCommand(['sign', 'odd.tar.gz', '--key', 'our.key'], box.path);
  assert.is(unnamed.exitCode, 64);
  assert.match(unnamed.stderr, /--name is required/);
  assert.match(await run('sign', 'odd.tar.gz', '--key', 'our.key', '--name', 'edge'), /: the bundle edge, version/);
});

test('a compact inventory is smaller, and its delta makes the same bundle', async ({ signal }) => {
  await using box = await site(signal);
  await runCommand(['inventory', '1.tar.gz', '-o', 'i.json'], box.path);
  await runCommand(['inventory', '1.tar.gz', '--compact', '-o', 'c.json'], box.path);
  const [all, compact] = [await readFile(box.at('i.json')), await readFile(box.at('c.json'))];
  assert.ok(compact.byteLength < all.byteLength);
  await runCommand(['bundle', '2.yaml', '--from', 'store', '--since', 'c.json', '-o', 'd.tar.gz'], box.path);
  const { exitCode, stderr } = await runCommand(
    ['apply', 'd.tar.gz', '--base', '1.tar.gz', '-o', 'made.tar.gz'],
    box.path,
  );
  assert.is(exitCode, 0, stderr);
});

test('a bundle in parts is as good a base as a whole one, named or in its folder', async ({ signal }) => {
  await using box = await site(signal);
  await mkdir(box.at('parts'));
  await runCommand(['split', '1.tar.gz', '-o', 'parts/1.tar.gz', '--size', '30M'], box.path);
  await runCommand(['inventory', '1.tar.gz', '-o', 'whole.json'], box.path);
  await runCommand(['inventory', 'parts/1.tar.gz.parts.json', '-o', 'i.json'], box.path);
  assert.is(await readFile(box.at('i.json'), 'utf8'), await readFile(box.at('whole.json'), 'utf8'));
  await runCommand(['bundle', '2.yaml', '--from', 'store', '--since', 'i.json', '-o', 'd.tar.gz'], box.path);
  await mkdir(box.at('parts/elsewhere'));
  await copyFile(box.at('parts/1.tar.gz.parts.json'), box.at('parts/elsewhere/1.tar.gz.parts.json'));
  const { exitCode, stderr } = await runCommand(
    ['apply', 'd.tar.gz', '--base', 'parts', '-o', 'made.tar.gz'],
    box.path,
  );
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, /1\.tar\.gz\.part-001 is missing.*: skipped/);
});

test('what cannot be done is told with its status, and nothing is written', async ({ signal }) => {
  await using box = await site(signal);
  await runCommand(['inventory', '1.tar.gz', '-o', 'i.json'], box.path);
  await runCommand(['bundle', '2.yaml', '--from', 'store', '--since', 'i.json', '-o', 'd.tar.gz'], box.path);
  await writeFile(box.at('other.json'), '{"format":7}');
  await writeFile(box.at('text'), 'text');
  const before = (await readdir(box.path)).toSorted();
  for (const [words, exitCode, message] of [
    [['apply', 'd.tar.gz', '--base', 'out/alpha-1.0.1.tar.gz', '-o', 'x'], 14, /missing: .*bin\/curlew/],
    [['apply', '1.tar.gz', '--base', '1.tar.gz', '-o', 'x'], 16, /it is not a delta/],
    [['apply', 'text', '--base', '1.tar.gz', '-o', 'x'], 16, /text/],
    [['apply', 'd.tar.gz', '--base', 'none', '-o', 'x'], 14, /none/],
    [['apply', 'd.tar.gz', '--base', '1.tar.gz', '-o', 'text'], 24, /--force/],
    [['apply', 'd.tar.gz', '-o', 'x'], 64, /a delta, a base and an output file/],
    [['apply', '--base', '1.tar.gz', '-o', 'x'], 64, /a delta, a base and an output file/],
    [['apply', 'd.tar.gz', '--base', '1.tar.gz', '-o', 'x', '--require-signed'], 64, /no key to verify signatures/],
    [['inventory', 'none'], 14, /none/],
    [['inventory', '1.tar.gz', '--with-tool'], 64, /requires the executable of a bundle and the folder of a node/],
    [['inventory', 'text'], 16, /text/],
    [['inventory', '1.tar.gz', '-o', 'i.json'], 24, /i\.json/],
    [['bundle', '2.yaml', '--from', 'store', '--since', 'none', '-o', 'x'], 14, /none/],
    [
      ['bundle', '2.yaml', '--from', 'store', '--since', 'text', '-o', 'x'],
      25,
      /not an inventory: not JSON\n {2}hint: .*curlew inventory BUNDLE -o FILE/,
    ],
    [['bundle', '2.yaml', '--from', 'store', '--since', 'other.json', '-o', 'x'], 22, /inventory format 7/],
  ] as const) {
    const outcome = await runCommand(words, box.path);
    assert.equal([outcome.exitCode, outcome.stdout], [exitCode, ''], outcome.stderr);
    assert.match(outcome.stderr, message);
    assert.equal((await readdir(box.path)).toSorted(), before);
  }
});

test.run();
