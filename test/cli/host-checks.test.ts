import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { checksOf } from '../../src/app/install-request.ts';
import { parseInstaller } from '../../src/spec/parse.ts';
import type { DryRun } from '../../src/runtime/run/dry-run.ts';
import type { HostChecks } from '../../src/runtime/host/host-checks.ts';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { NODE_PLATFORM } from '../support/image-packages.ts';
import { ENFORCED, install, isUntouched, TRIAL } from '../support/install-command.ts';
import { boxWith, bundleOf, specOf, type TestAddon } from '../support/node-bundles.ts';
import { trace, tracer } from '../support/node-install.ts';
import { specText } from '../support/preflight.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import type { InstallRequest } from '../../src/requests/node.ts';

const test = suite('cli/host-checks', { timeoutMs: 60_000 });

/** A spec that always comes out so. */
function judging(verdict: string, name: string = verdict): string {
  const outcome = `{${verdict}: {message: 'it is so'}}`;
  const rows = ['- memory:', `    checkName: ${name}`, `    outcomes: [${outcome}]`];
  return specText(`  collectors:\n    - memory: {}\n  analyzers:\n${rows.map((row) => `    ${row}\n`).join('')}`);
}

function addon(name: string, preflight: string, more: Partial<TestAddon> = {}): TestAddon {
  const made = tracer(name, more.files?.['install.sh'] as string | undefined);
  return { ...made, ...more, files: { ...made.files, 'host-preflight.yaml': preflight } };
}

test('what fails stops a run before its first change, all of it at once', async () => {
  const warned = judging('warn', 'B');
  await using box = await boxWith([
    addon('aaa', judging('fail', 'A')),
    addon('bbb', warned),
    addon('ccc', judging('fail', 'C')),
  ]);
  const { exitCode, stdout, stderr } = await install(box, ENFORCED);
  assert.equal([exitCode, stdout], [21, '']);
  assert.match(stderr, 'host preflights: 0 passed, 1 with a warning, 2 failed');
  assert.match(stderr, 'warning: [WARN] B: it is so');
  assert.match(
    stderr,
    /error PREFLIGHT_FAILED: .*:\n {2}\[FAIL\] A: it is so\n {2}\[FAIL\] C: it is so\n {2}hint: .*--preflights ignore/,
  );
  await isUntouched(box);
});

test('a check is ignored by its title, in a run and in preflight; the others count', async () => {
  await using box = await boxWith([addon('aaa', judging('fail', 'NTP Status')), addon('bbb', judging('warn', 'B'))]);
  const refused = await install(box, [...ENFORCED, '--ignore', 'NTP']);
  assert.is(refused.exitCode, 21);
  assert.match(refused.stderr, /warning: --ignore: no check has the title "NTP"; in results/);
  assert.match(refused.stderr, /hint: .*--ignore TITLE ignores one check/);
  await isUntouched(box);
  const { exitCode, stdout, stderr } = await install(box, [...ENFORCED, '--ignore', 'ntp status', '--ignore', 'B']);
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, 'warning: [FAIL] NTP Status: it is so (ignored)');
  assert.match(stdout, '\nhost preflights: 0 passed, 0 with a warning, 0 failed, 2 ignored\n');
});

test('warnings are told and the run goes on; its results are kept with it', async () => {
  await using box = await boxWith([addon('aaa', judging('warn')), addon('bbb', judging('pass'))]);
  const { exitCode, stdout, stderr } = await install(box, ENFORCED);
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, 'warning: [WARN] warn: it is so');
  assert.match(stdout, '\nhost preflights: 1 passed, 1 with a warning, 0 failed\n');
  const runs = box.at('root/var/lib/curlew/runs');
  const [run = ''] = await readdir(runs);
  const saved = JSON.parse(await readFile(join(runs, run, 'preflight.json'), 'utf8')) as HostChecks;
  assert.equal([saved.mode, saved.counts], ['enforce', { pass: 1, warn: 1, fail: 0 }]);
  assert.equal(
    saved.results.map(({ title }) => title),
    ['warn', 'pass'],
  );
});

test('images that nothing can load stop a run before its first hook; dry run and preflight say so, too', async () => {
  const images = [{ id: 'web', reference: 'example.com/web:1', digest: digestOf('web'), platform: NODE_PLATFORM }];
  await using box = await boxWith([{ ...tracer('web'), extra: { images } }]);
  const env = { CONTAINERD_ADDRESS: box.at('no.sock'), DOCKER_HOST: `unix://${box.at('no.sock')}` };
  const words = ['--bundle', box.at('b.tar.gz'), '--install-dir', box.at('node')];
  for (const more of [[], ['--dry-run']]) {
    const { exitCode, stdout, stderr } = await runTraced(['install', ...words, ...more], box, env);
    assert.is(exitCode, 26, stderr);
    assert.match(stdout + stderr, /images(?: cannot be loaded)?: no container runtime responds/);
    assert.equal(await trace(box), []);
  }
  const looked = await runTraced(['preflight', ...words], box, env);
  assert.is(looked.exitCode, 1);
  assert.match(
    looked.stdout.replaceAll(/\s+/g, ' '),
    '[FAIL] Container runtime: images cannot be loaded: no container runtime responds',
  );
  const skipped = await runTraced(['preflight', ...words, '--ignore', 'Container runtime'], box, env);
  assert.is(skipped.exitCode, 0, skipped.stderr);
  const { exitCode, stderr } = await runTraced(['install', ...words, '--skip-images'], box, env);
  assert.is(exitCode, 0, stderr);
});

test('warnings stop a run that is told so', async () => {
  await using box = await boxWith([addon('aaa', judging('warn'))]);
  const { exitCode, stderr } = await install(box, [...TRIAL, '--preflights', 'enforce-warnings']);
  assert.is(exitCode, 21);
  assert.match(stderr, '[WARN] warn: it is so');
  await isUntouched(box);
});

test('kURL’s settings say the same, and the option has the last word', async () => {
  const mode = (field: string, request: Pick<InstallRequest, 'root' | 'preflights'> = {}): string => {
    const text = `${specOf([{ name: 'aaa', version: '1.0.0' }])}  kurl:\n    ${field}: true\n`;
    const { installer } = parseInstaller('installer.yaml', text);
    if (installer === undefined) throw new Error(text);
    return checksOf(request, installer).mode;
  };
  assert.is(mode('airgap'), 'enforce');
  assert.is(mode('airgap', { root: 'x' }), 'ignore');
  assert.is(mode('hostPreflightIgnore'), 'ignore');
  assert.is(mode('hostPreflightIgnore', { preflights: 'enforce' }), 'enforce');
  assert.is(mode('hostPreflightEnforceWarnings'), 'enforce-warnings');
  assert.is(mode('hostPreflightEnforceWarnings', { root: 'x' }), 'ignore');
  const { exitCode, stderr } = await runCommand(['install', '--preflights', 'perhaps'], '/');
  assert.is(exitCode, 64);
  assert.match(
    stderr,
    /--preflights perhaps: must be one of enforce, .*\n {2}hint: curlew install --help lists its options/,
  );
});

test('checks of add-ons are left out with the built-in ones where the spec says so', async () => {
  const spec = `${specOf([{ name: 'aaa', version: '1.0.0' }])}  kurl:\n    excludeBuiltinHostPreflights: true\n`;
  await using box = await boxWith([addon('aaa', judging('fail'))], spec);
  assert.is((await install(box, [...ENFORCED, '--dry-run'])).exitCode, 0);
});

test('a trial is told what fails, and goes on', async () => {
  await using box = await boxWith([addon('aaa', judging('fail'))]);
  const { exitCode, stderr } = await install(box, TRIAL);
  assert.is(exitCode, 0);
  assert.match(stderr, 'warning: [FAIL] fail: it is so');
});

test('a dry run tells the results, by its status, too, but only looks', async () => {
  const touching = `  collectors:
    - run: {collectorName: x, command: touch, args: [MARK]}
    - memory: {}
  analyzers:
    - textAnalyze: {checkName: T, fileName: host-collectors/run-host/x.txt, regex: a, outcomes: [{fail: {message: no}}]}
    - memory: {checkName: M, outcomes: [{fail: {message: too small}}]}
`;
  await using box = await tree();
  const spec = specText(touching.replace('MARK', box.at('mark')));
  await writeFile(box.at('b.tar.gz'), bundleOf([addon('aaa', spec)]));
  const { exitCode, stdout } = await install(box, [...ENFORCED, '--dry-run']);
  assert.is(exitCode, 21, stdout);
  assert.match(stdout, /^Host preflights: 0 passed, 0 with a warning, 1 failed\n {2}\[FAIL\] M: too small$/m);
  assert.match(stdout, 'not checked in a dry run: T');
  assert.match(stdout, /^Problem: \[FAIL\] M: too small$/m);
  assert.is(await stat(box.at('mark')).catch(() => 'absent'), 'absent');
  await isUntouched(box);
});

test('the checks of a node of Kubernetes come with kubernetes; a trial leaves them out', async () => {
  const titles = async (addons: readonly TestAddon[], ...more: string[]): Promise<readonly string[]> => {
    await using box = await boxWith(addons);
    const { stdout, stderr } = await install(box, [...more, '--dry-run', '--json']);
    const { checks } = JSON.parse(stdout) as DryRun;
    assert.is(stderr.includes('bug'), false, stderr);
    return checks?.results.map(({ title }) => title) ?? [];
  };
  const kubernetes = addon('kubernetes', judging('pass', 'own'));
  const all = await titles([kubernetes], '--install-dir', '/tmp/curlew-never');
  assert.equal([all[0], all.at(-1)], ['Number of CPUs', 'own']);
  assert.not(all.includes('Filesystem Latency Two Minute Benchmark'));
  assert.equal(await titles([kubernetes], ...TRIAL), ['own']);
  assert.equal(await titles([addon('aaa', judging('pass', 'own'))], '--install-dir', '/tmp/curlew-never'), ['own']);
});

const ONCE = specText(`  collectors:
    - memory: {}
  analyzers:
    - memory: {checkName: first, exclude: '{{kurl .IsUpgrade }}', outcomes: [{fail: {message: not twice}}]}
`);

test('checks know a second run as an upgrade', async () => {
  await using box = await boxWith([addon('aaa', ONCE)]);
  assert.is((await install(box, ENFORCED)).exitCode, 21);
  assert.is((await install(box, TRIAL)).exitCode, 0);
  const again = await install(box, [...ENFORCED, '--reapply']);
  assert.is(again.exitCode, 0, again.stderr);
});

test('a run that goes on from another is not asked again: what that began would be in its way', async () => {
  const failing = 'bbb() { [ -e "$TRACE.mended" ]; }';
  await using box = await boxWith([addon('aaa', judging('warn')), tracer('bbb', failing)]);
  const first = await install(box, ENFORCED);
  assert.is(first.exitCode, 20, first.stderr);
  assert.match(first.stderr, '[WARN]');
  await writeFile(box.at('trace.mended'), '');
  const second = await install(box, ENFORCED);
  assert.is(second.exitCode, 0, second.stderr);
  assert.not(second.stderr.includes('[WARN]'));
});

test('a spec that is wrong is told with its add-on, file and line, and nothing is changed', async () => {
  for (const [text, message] of [
    ['a: {{kurl nosuch }}\n', /aaa-1\.0\.0: host-preflight\.yaml:1:11 .*unknown function "nosuch"/],
    ['a: 1\nb: {{kurl if }}\n', /aaa-1\.0\.0: host-preflight\.yaml:2:\d+ /],
    [
      'a: {{kurl range until 5000 }}{{kurl range until 5000 }}x{{kurl end }}{{kurl end }}\n',
      /aaa-1\.0\.0: host-preflight\.yaml:1:\d+ .*steps/,
    ],
    [specText('  collectors: 5\n'), /aaa-1\.0\.0: host-preflight\.yaml:6:\d+ /],
  ] as const) {
    await using box = await boxWith([addon('aaa', text)]);
    const { exitCode, stderr } = await install(box, TRIAL);
    assert.is(exitCode, 11, stderr);
    assert.match(stderr, message);
    await isUntouched(box);
  }
});

test('a check that hangs, a port that is used and a disk that is gone are told by their names', async () => {
  const server = createServer().listen(0);
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const body = `  collectors:
    - run: {collectorName: slow, command: sleep, args: ['3600'], timeout: 100ms}
    - tcpPortStatus: {collectorName: taken, port: ${port}}
    - diskUsage: {collectorName: gone, path: /etc/passwd/disk}
  analyzers:
    - textAnalyze: {checkName: S, fileName: host-collectors/run-host/slow.txt, regex: a, outcomes: [{pass: {when: 'true', message: m}}]}
    - tcpPortStatus: {checkName: P, collectorName: taken, outcomes: [{fail: {when: address-in-use, message: taken}}, {pass: {message: free}}]}
    - diskUsage: {checkName: D, collectorName: gone, outcomes: [{pass: {message: m}}]}
`;
  await using box = await boxWith([addon('aaa', specText(body))]);
  const { exitCode, stderr } = await install(box, ENFORCED);
  server.close();
  assert.is(exitCode, 21, stderr);
  assert.match(stderr, '[WARN] S: No matching files (run "slow" took longer than 0.1 s)');
  assert.match(stderr, '[FAIL] P: taken');
  assert.match(stderr, /\[FAIL\] D: cannot be evaluated: diskUsage "gone": /);
});

test.run();
