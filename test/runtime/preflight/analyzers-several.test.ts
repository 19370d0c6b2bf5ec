import * as assert from '../../support/assert.ts';
import { judge } from '../../support/preflight.ts';
import { suite } from '../../support/suite.ts';

const test = suite('preflight/analyzers with several results');

test('all kernel modules of a condition have to be in one of its states', () => {
  const modules = { overlay: 'loaded', br_netfilter: 'loadable', 'dm-snapshot': 'loadable' };
  const verdicts = (...outcomes: readonly string[]): readonly string[] =>
    judge('kernelModules', modules, outcomes).map(({ verdict, message }) => (message === verdict ? verdict : message));
  assert.equal(verdicts('pass: overlay,br_netfilter == loaded,loadable', 'fail'), ['pass']);
  assert.equal(verdicts('pass: overlay,br_netfilter == loaded', 'fail'), ['fail']);
  assert.equal(verdicts('pass: dm_snapshot = loadable', 'fail'), ['pass']);
  assert.equal(verdicts('fail: nosuch != loaded', 'warn', 'pass'), ['fail']);
  assert.equal(verdicts('warn: overlay == loaded', 'pass'), ['warn', 'pass']);
  assert.equal(verdicts('warn: nosuch == loaded'), ['no results']);
  assert.match(verdicts('warn: overlay is loaded')[0] ?? '', /not a (known )?comparison of modules/);
});

test('each host package is judged by itself, with what dpkg and rpm say of it', () => {
  const data = {
    os: 'ubuntu',
    osVersion: '22.04',
    packages: [
      {
        name: 'nfs-common',
        details: 'Package: nfs-common\nVersion: 1:2.6\nInstalled-Size: 12\n',
        exitCode: 0,
        error: '',
      },
      { name: 'lvm2', details: '', exitCode: 1, error: 'not installed' },
    ],
  };
  const verdicts = (...outcomes: readonly string[]): readonly string[] =>
    judge('systemPackages', data, outcomes).map(({ verdict }) => verdict);
  assert.equal(verdicts('fail: {{ not .IsInstalled }}', 'pass'), ['pass', 'fail']);
  assert.equal(verdicts('warn: {{ and (eq .Name "lvm2") (eq .OSVersionMajor 22) }}'), ['warn']);
  assert.equal(verdicts('warn: {{ eq .InstalledSize "12" }}'), ['warn']);
  assert.match(judge('systemPackages', data, ['fail: {{ .Name }}'])[0]?.message ?? '', /neither true nor false/);
  assert.match(judge('systemPackages', data, ['fail: {{ nosuch }}'])[0]?.message ?? '', /unknown function "nosuch"/);
});

test('texts of programs are searched for patterns and groups', () => {
  const data = { exitCode: 0, stdout: 'loss: 12%\n', stderr: 'oops', files: { 'a.txt': 'inside' } };
  const file = (name: string, regex: string): string =>
    `        fileName: host-collectors/run-host/${name}\n        ${regex}\n`;
  const verdicts = (settings: string, ...outcomes: readonly string[]): readonly string[] =>
    judge('textAnalyze', data, outcomes, settings).map(({ verdict, message }) =>
      message === verdict ? verdict : message,
    );
  assert.equal(verdicts(file('run-host.txt', 'regex: loss'), 'pass: true', 'fail: false'), ['pass']);
  assert.equal(verdicts(file('run-host.txt', 'regex: nothing'), 'pass', 'fail'), ['fail']);
  assert.equal(verdicts(file('run-host-stderr.txt', 'regex: oops'), 'pass: true'), ['pass']);
  assert.equal(verdicts(file('run-host/out/a.txt', 'regex: inside'), 'pass: true'), ['pass']);
  const groups = file('run-host.txt', "regexGroups: '(?P<Loss>\\d+)%'");
  assert.equal(verdicts(groups, 'fail: Loss > 10', 'pass'), ['fail']);
  assert.equal(verdicts(groups, 'fail: Other > 10', 'pass'), ['pass']);
  assert.equal(verdicts(file('other.txt', 'regex: x'), 'pass'), ['No matching files']);
  assert.equal(verdicts(file('other.txt', 'ignoreIfNoFiles: true'), 'pass'), []);
});

test.run();
