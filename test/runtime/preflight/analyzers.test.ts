import type { Json } from '../../../src/formats/yaml/yaml.ts';
import { analyzeFacts } from '../../../src/runtime/preflight/analyze.ts';
import * as assert from '../../support/assert.ts';
import { holds, judge, preflightOf } from '../../support/preflight.ts';
import { suite } from '../../support/suite.ts';

const test = suite('preflight/analyzers');

function table(
  kind: string,
  data: Json,
  cases: readonly (readonly [when: string, expected: boolean | RegExp])[],
  settings = '',
): void {
  for (const [when, expected] of cases) {
    const found = holds(kind, data, when, settings);
    if (typeof expected === 'boolean') assert.is(found, expected, `${kind}: ${when}: ${String(found)}`);
    else assert.match(String(found), expected);
  }
}

test('processors are counted, and asked for their kind and features', () => {
  const flags = 'cmov cx8 fpu fxsr mmx syscall sse sse2 cx16 lahf_lm popcnt ssse3 sse4_1 sse4_2'.split(' ');
  table('cpu', { logicalCount: 4, physicalCount: 2, flags, machineArch: 'x86_64' }, [
    ['count < 2', false],
    ['count >= 4', true],
    ['>= 4', true],
    ['logical == 4', true],
    ['physical != 2', false],
    ['Physical === 2', true],
    ['machineArch == x86_64', true],
    ['machineArch != arm64', true],
    ['supports x86-64-v2', true],
    ['supports x86-64-v3', false],
    ['hasFlags sse,sse2', true],
    ['hasFlags sse,avx', false],
    ['supports pentium', /"pentium" is not an x86-64 level/],
    ['count less 2', /not a (known )?comparison/],
    ['count < two', /is not an integer/],
    ['bla', /does not have the form "count < 2"/],
    ['threads < 2', /does not have the form/],
  ]);
});

test('memory is compared with amounts', () => {
  table('memory', { total: 8_000_000_000 }, [
    ['< 8G', false],
    ['<= 8G', true],
    ['< 8Gi', true],
    ['> 7.5G', true],
    ['== 8e9', true],
    ['>= 8000000000', true],
    ['< 4Q', /is not a quantity/],
    ['8G', /does not have the form/],
    ['< -1', /is not a quantity/],
    ['!= 8G', /not a (known )?comparison/],
  ]);
});

test('disks are compared in all, by what is used and left, and by shares', () => {
  table('diskUsage', { totalBytes: 100 * 2 ** 30, usedBytes: 81 * 2 ** 30 }, [
    ['total < 30Gi', false],
    ['used > 80Gi', true],
    ['available < 20Gi', true],
    ['used/total > 80%', true],
    ['used/total > 0.82', false],
    ['Available/Total <= 19%', true],
    ['free < 1Gi', /not one of total/],
    ['used/total > lots', /not a share/],
    ['total <', /does not have the form/],
  ]);
});

test('systems are compared by platform, family and kernel', () => {
  const ubuntu = {
    name: 'n',
    kernelVersion: '5.15.0-91-generic',
    platform: 'ubuntu',
    platformFamily: 'debian',
    platformVersion: '22.04',
  };
  table('hostOS', ubuntu, [
    ['ubuntu = 22.04', true],
    ['ubuntu == 22.4', true],
    ['ubuntu >= 20.04 && < 22.04', false],
    ['ubuntu = 20.04 || = 22.04', true],
    ['ubuntu < 18 || >= 20 && < 24', true],
    ['debian >= 22', true],
    ['centos < 8', false],
    ['ubuntu != 22.04', false],
    ['ubuntu ! 20.04', /not a (known )?comparison of versions/],
    ['kernelVersion >= 5.10', true],
    ['ubuntu-22.04-kernel >= 5.15', true],
    ['ubuntu-20.04-kernel >= 5.15', false],
    ['ubuntu = jammy', /is not a version/],
    ['ubuntu =', /does not have the form/],
    ['ubuntu === 22.04', /not a (known )?comparison of versions/],
    ['ubuntu > 20 and < 24', /neither && nor/],
  ]);
});

test('ports and certificates have states', () => {
  for (const kind of ['tcpPortStatus', 'udpPortStatus', 'tcpConnect', 'tcpLoadBalancer']) {
    table(kind, { status: 'address-in-use', message: '' }, [
      ['address-in-use', true],
      ['connected', false],
    ]);
  }
  table('certificate', 'key-pair-valid', [
    ['key-pair-valid', true],
    ['key-pair-missing', false],
  ]);
});

test('answers of web servers are judged by their status', () => {
  table('http', { statusCode: 204 }, [
    ['statusCode == 200', false],
    ['statusCode = 204', true],
    ['statusCode === 204', true],
    ['statusCode >= 200 && statusCode < 300', true],
    ['!(statusCode == 204) || statusCode != 204', false],
    ['statusCode in (200, 204)', true],
    ['error', false],
    ['status == 200', /unknown name status/],
    ['statusCode ==', /a number or a name is missing/],
    ['statusCode 200', /a comparison is missing/],
    ['(statusCode == 200', /parenthesis is not closed/],
    ['statusCode @ 2', /unexpected/],
  ]);
  table('http', { statusCode: 200 }, [['clockSkew > 60', false]]);
  table('http', { statusCode: 200, clockSkew: 90 }, [
    ['clockSkew > 60', true],
    ['clockSkew > 300', false],
  ]);
  table('http', { error: 'refused' }, [
    ['error', true],
    ['statusCode == 200', false],
    ['statusCode !=', /a number or a name is missing/],
  ]);
});

test('devices are free when nothing is on them and nothing is made of them', () => {
  const free = { parentKernelName: '', type: 'disk', size: 1000, filesystemType: '', mountpoint: '' };
  const disk = (name: string, more: object = {}): Json => {
    return { ...free, name, kernelName: name, readOnly: false, removable: false, ...more };
  };
  const devices = [
    disk('sda'),
    disk('sda1', { type: 'part', parentKernelName: 'sda' }),
    disk('sdb'),
    disk('sdc', { filesystemType: 'ext4' }),
    disk('sdd', { mountpoint: '/data' }),
    disk('sde', { readOnly: true }),
    disk('sdf', { removable: true }),
    disk('sdg', { size: 10 }),
    disk('vg0', { type: 'lvm' }),
  ];
  table('blockDevices', devices, [
    ['sd[a-z] == 2', true],
    ['.* == 2', true],
    ['sdb > 0', true],
    ['sda == 0', true],
    ['sd > 1 and', /does not have the form/],
    ['sd[ > 1', /the pattern "sd\[" is invalid/],
    ['sdb != 1', /not a (known )?comparison/],
  ]);
  table('blockDevices', devices, [['.* == 1', true]], '        minimumAcceptableSize: 500\n');
  table('blockDevices', devices, [['.* == 3', true]], '        includeUnmountedPartitions: true\n');
  table('blockDevices', devices, [['.* == 3', true]], '        additionalDeviceTypes: [lvm]\n');
});

test('a pattern that takes for ever is given up', () => {
  const device = {
    name: `${'a'.repeat(60)}!`,
    kernelName: 'x',
    parentKernelName: '',
    type: 'disk',
    size: 1,
    filesystemType: '',
    mountpoint: '',
    readOnly: false,
    removable: false,
  };
  assert.match(String(holds('blockDevices', [device], '^(a+)+$ > 0')), /takes too long/);
});

test('time is judged by zone and by NTP', () => {
  table('time', { timezone: 'UTC', ntpSynchronized: false, ntpActive: true }, [
    ['ntp == unsynchronized+active', true],
    ['ntp = synchronized+active', false],
    ['timezone == UTC', true],
    ['timezone != UTC', false],
    ['ntp != synchronized+active', /not a (known )?comparison of ntp/],
    ['ntp == good', /does not have the form/],
    ['clock == good', /neither timezone nor ntp/],
  ]);
});

test('services are found by the beginning of their names', () => {
  const services = [{ unit: 'ufw.service', load: 'loaded', active: 'active', sub: 'exited' }];
  table('hostServices', services, [
    ['ufw.service = active', true],
    ['ufw = inactive', false],
    ['ufw = active,exited,loaded', true],
    ['ufw = *,running', false],
    ['ufw != active', false],
    ['ufw <> *,running', true],
    ['firewalld = active', false],
    ['firewalld != active', false],
    ['ufw is active', /not a (known )?comparison of services/],
  ]);
});

test('kernel parameters are compared as texts or numbers', () => {
  table('sysctl', { 'net.ipv4.ip_forward': '1', 'kernel.name': 'linux' }, [
    ['net.ipv4.ip_forward = 1', true],
    ['net.ipv4.ip_forward == 0', false],
    ['net.ipv4.ip_forward >= 1', true],
    ['kernel.name = linux', true],
    ['kernel.name > 1', /is not an integer/],
    ['kernel.other = 1', /no parameter kernel.other/],
    ['kernel.name', /does not have the form/],
  ]);
});

test('interfaces are counted', () => {
  table(
    'ipv4Interfaces',
    [{ name: 'eth0', address: '10.0.0.1' }],
    [
      ['count >= 1', true],
      ['count > 1', false],
      ['number > 1', /is not count/],
    ],
  );
});

test('latencies are compared with durations, and messages tell them', () => {
  const facts = { min: 1000, max: 9e9, average: 2_500_000, p99: 9_999_999 };
  table('filesystemPerformance', facts, [
    ['p99 < 10ms', true],
    ['average > 2ms', true],
    ['max >= 9s', true],
    ['fileNotCollected', false],
    ['p98 < 1ms', /not one of min/],
    ['p99 < soon', /is not a duration/],
  ]);
  const spec = preflightOf(`  analyzers:
    - filesystemPerformance: {outcomes: [{pass: {message: 'p99 {{ .P99 }}, average {{ .Average }}'}}]}
`);
  const fact = { kind: 'filesystemPerformance', name: 'filesystemPerformance', ms: 1 };
  const [result] = analyzeFacts([spec], [{ ...fact, status: 'collected', data: facts }]);
  assert.is(result?.message, 'p99 9.999999ms, average 2.5ms');
});

test('the first outcome that holds counts; without one a check of problems passes, any other is a warning', () => {
  const verdicts = (outcomes: readonly string[]): readonly string[] =>
    judge('memory', { total: 5 }, outcomes).map(({ verdict }) => verdict);
  assert.equal(verdicts(['fail: < 1', 'warn: < 2']), ['pass']);
  assert.equal(verdicts(['fail: < 1', 'pass: > 6']), ['warn']);
  assert.equal(
    judge('memory', { total: 5 }, ['fail: < 1', 'warn: < 9', 'pass: < 10']).map(({ verdict }) => verdict),
    ['warn'],
  );
});

test('what cannot be judged fails and names file, line and reason', () => {
  const [result] = judge('memory', { total: 5 }, ['fail: lots']);
  assert.is(result?.message, 'cannot be evaluated: spec.yaml:9: the condition "lots" does not have the form "< 8G"');
});

test.run();
