/** Deltas under the other commands of a node: what each takes from the node, and what it says when that lacks. */
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises';
import { parseInventory } from '../../src/ship/bundle/delta/inventory.ts';
import * as assert from '../support/assert.ts';
import { specOf } from '../support/bundles.ts';
import { bundleOfPackages, deltaOf } from '../support/deltas.ts';
import { install, NODE, nodeWith, runBelow } from '../support/node-deltas.ts';
import { trace, tracerPackage } from '../support/node-install.ts';
import { noise } from '../support/packages.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';

// not fast: hundreds of hooks
const test = suite('cli/delta-runs', { timeoutMs: 120_000 });

const [ONE, TWO, THREE] = [noise(300_000, 1), noise(200_000, 2), noise(100_000, 3)];
const CHECK = `apiVersion: troubleshoot.sh/v1beta2
kind: HostPreflight
metadata: {name: aaa}
spec:
  collectors: [{memory: {}}]
  analyzers: [{memory: {outcomes: [{pass: {message: looked at}}]}}]
`;
const JOINS = 'aaa_join() { echo "joined $AAA_VERSION" >>"$TRACE"; }';
const BEFORE = [tracerPackage('aaa', '1.0.0', { one: ONE, two: TWO, 'host-preflight.yaml': CHECK }, JOINS)];
const AFTER = [tracerPackage('aaa', '1.0.1', { one: ONE, three: THREE, 'host-preflight.yaml': CHECK }, JOINS)];

for (const kind of ['join', 'upgrade'] as const) {
  test(`${kind} takes a delta as it takes a bundle`, async () => {
    await using box = await nodeWith(BEFORE, AFTER, 'join');
    const { exitCode, stderr } = await runBelow(box, kind, '--bundle', 'd.tar.gz');
    assert.is(exitCode, 0, stderr);
    assert.equal(await trace(box), ['joined 1.0.1']);
    assert.ok((await readFile(box.at(NODE, 'addons/aaa/1.0.1/one'))).equals(ONE));
  });

  test(`${kind} on a node without what lacks says so, and runs nothing`, async () => {
    await using box = await nodeWith(BEFORE, AFTER, 'join');
    await rm(box.at(NODE, 'addons/aaa/1.0.0/one'));
    const { exitCode, stderr } = await runBelow(box, kind, '--bundle', 'd.tar.gz');
    assert.is(exitCode, 14, stderr);
    assert.match(stderr, /1 file \(300000 bytes\) missing: addons\/aaa\/1\.0\.1\/one \(300000 bytes\)/);
    assert.equal(await trace(box), []);
  });
}

test('preflight judges the specs of a delta that lie on the node already', async () => {
  await using box = await nodeWith(BEFORE, AFTER);
  const words = ['preflight', '--bundle', 'd.tar.gz', '--exclude-builtin'];
  const { exitCode, stdout, stderr } = await runTraced([...words, '--install-dir', NODE], box);
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, 'looked at');
  const elsewhere = await runTraced([...words, '--install-dir', 'elsewhere'], box);
  assert.is(elsewhere.exitCode, 14, elsewhere.stderr);
  assert.match(elsewhere.stderr, /which is a delta, with what \S+elsewhere has: .*host-preflight\.yaml/);
});

test('load-images needs the images of a delta, and not what hooks have changed since', async () => {
  const images = { 'images/oci-layout': '{"imageLayoutVersion":"1.0.0"}', text: TWO };
  await using box = await nodeWith([tracerPackage('aaa', '1.0.0', images)], [tracerPackage('aaa', '1.0.1', images)]);
  const words = ['load-images', '--bundle', 'd.tar.gz', '--install-dir', NODE, '--runtime', 'docker'];
  const env = { DOCKER_HOST: `unix://${box.at('none.sock')}` };
  await appendFile(box.at(NODE, 'addons/aaa/1.0.0/text'), 'changed');
  const { exitCode, stderr } = await runTraced(words, box, env);
  assert.is(exitCode, 26, stderr);
  assert.match(stderr, 'docker does not respond');
  await rm(box.at(NODE, 'addons/aaa/1.0.0/images'), { recursive: true });
  const lacking = await runTraced(words, box, env);
  assert.is(lacking.exitCode, 14, lacking.stderr);
  assert.match(lacking.stderr, /1 file \(30 bytes\) missing: addons\/aaa\/1\.0\.1\/images\/oci-layout/);
});

const FAILING = tracerPackage('aaa', '1.0.1', { one: ONE, three: THREE }, 'aaa() { [ -e "$TRACE-ok" ]; }');

test('resume goes on with a delta, from any folder, and says when it has gone', async () => {
  await using box = await nodeWith(BEFORE, [FAILING]);
  assert.is((await install(box, 'd.tar.gz')).exitCode, 20);
  const resume = ['resume', '--root', box.at('root')];
  const delta = await readFile(box.at('d.tar.gz'));
  await rm(box.at('d.tar.gz'));
  const gone = await runTraced(resume, box);
  assert.equal([gone.exitCode, /d\.tar\.gz: no such file/.test(gone.stderr)], [14, true], gone.stderr);
  await writeFile(box.at('d.tar.gz'), delta);
  await writeFile(box.at('trace-ok'), '');
  const { exitCode, stdout, stderr } = await runCommand(resume, '/', { TRACE: box.at('trace') });
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^aaa {2}1\.0\.0 → 1\.0\.1 {2}installed/);
});

test('an upgrade by a delta that failed is rolled back without it, and the delta is taken once more', async () => {
  await using box = await nodeWith(BEFORE, [FAILING]);
  assert.is((await install(box, 'd.tar.gz')).exitCode, 20);
  const back = await runBelow(box, 'rollback', 'aaa');
  assert.is(back.exitCode, 0, back.stderr);
  assert.match(back.stdout, /^aaa {2}1\.0\.0 {2}installed/);
  await writeFile(box.at('trace-ok'), '');
  const { exitCode, stdout, stderr } = await install(box, 'd.tar.gz');
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^aaa {2}1\.0\.0 → 1\.0\.1 {2}installed/);
  assert.ok((await readFile(box.at(NODE, 'addons/aaa/1.0.1/one'))).equals(ONE));
});

test('the next delta is made since a node that a delta has upgraded', async () => {
  await using box = await nodeWith(BEFORE, AFTER);
  assert.is((await install(box, 'd.tar.gz')).exitCode, 0);
  const { stdout, stderr: said } = await runTraced(['inventory', NODE], box);
  assert.match(said, /^unpacked packages: read$/m);
  const next = await bundleOfPackages([tracerPackage('bbb', '1.0.0', { one: ONE, three: THREE })]);
  const delta = await deltaOf(next, parseInventory(stdout, 'inventory'));
  assert.ok(delta.bytes.byteLength < 60_000, `${delta.bytes.byteLength} bytes`);
  await writeFile(box.at('next.tar.gz'), delta.bytes);
  const { exitCode, stderr } = await install(box, 'next.tar.gz');
  assert.is(exitCode, 0, stderr);
  assert.ok((await readFile(box.at(NODE, 'addons/bbb/1.0.0/three'))).equals(THREE));
});

test('a delta for another architecture, and one for other scripts, are refused with what they are for', async () => {
  await using box = await nodeWith(BEFORE, []);
  await writeFile(box.at('spec.yaml'), specOf({ aaa: '1.0.1' }));
  const inventory = parseInventory((await runTraced(['inventory', NODE], box)).stdout, 'inventory');
  const other = AFTER.map((one) => ({
    ...one,
    extra: { arch: process.arch === 'arm64' ? 'amd64' : 'arm64' } as const,
  }));
  for (const [bundle, code, message] of [
    [await bundleOfPackages(other), 22, /d\.tar\.gz: it has no package of aaa for a[^]*that was made with --arch a/],
    [
      await bundleOfPackages(AFTER, { kurl: true }),
      22,
      /is for kURL's own scripts.*create the whole bundle with curlew apply, unpack/s,
    ],
  ] as const) {
    await writeFile(box.at('d.tar.gz'), (await deltaOf(bundle, inventory)).bytes);
    const { exitCode, stderr } = await install(box, 'd.tar.gz', '--installer', 'spec.yaml');
    assert.is(exitCode, code, stderr);
    assert.match(stderr, message);
    assert.equal(await trace(box), []);
  }
});

test.run();
