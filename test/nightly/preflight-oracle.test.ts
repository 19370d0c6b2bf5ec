/** Host preflights beside Troubleshoot's own program: the same specs on the same machine give the same verdicts. */
import { existsSync } from 'node:fs';
import { execa } from 'execa';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { specText } from '../support/preflight.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import {
  asking,
  comparisons,
  countComparisons,
  differs,
  each,
  prints,
  same,
  UBUNTU,
  WORLDS,
} from '../components/support/preflight-oracle.ts';
import { ROOT } from '../components/support/programs.ts';

const test = suite('preflight beside Troubleshoot: the machine', { timeoutMs: 600_000 });
const compare = comparisons(test);

/** Made by `scripts/tools fio`. */
const FIO = join(ROOT, '.curlew/tools/fio/bin/fio');

compare('processors and memory', async () => {
  await each('cpu', ['count < 2', 'logical >= 1', 'physical != 1', '> 1000', 'hasFlags fpu', 'supports x86-64-v2']);
  await each('cpu', ['machineArch == x86_64', 'count < two', 'bla', 'count !== 3']);
  await each('memory', ['< 4G', '> 1Gi', '>= 100Gi', '== 1', '4G', '< lots', '<= 8e9', '!= 8G']);
});

compare('disks', async () => {
  await each(
    'diskUsage',
    ['total < 30Gi', 'used/total > 80%', 'available < 1Gi', 'used/total < 0.99', 'free > 1'],
    'path: /nosuch/folder',
  );
  await each('diskUsage', ['Available/Total > 1%', 'used >= 1', 'total > many', 'total < 1 Gi'], 'path: /tmp');
});

const SYSTEMS = ['debian >= 12', 'ubuntu = 22.04', 'centos < 8', 'rocky >= 9 && < 10', 'rhel >= 8', 'amazon >= 2023'];

compare('systems', async () => {
  for (const [, world] of WORLDS) await each('hostOS', SYSTEMS, '', world);
  await each(
    'hostOS',
    ['redhat = 8.9', 'ubuntu = 20.04 || = 22.04', 'ubuntu < 22.4', 'centos-7.9.2009-kernel > 1'],
    '',
    UBUNTU,
  );
  await each('hostOS', ['kernelVersion >= 3.10', 'ubuntu', 'ubuntu = jammy', 'ubuntu > 20 and < 24']);
});

const LSBLK = `for size; do :; done
case "$size" in
  *SERIAL*) extra='MAJ:MIN="8:0"' serial='SERIAL="x"' ;;
  *) extra= serial= ;;
esac
line() { echo "NAME=\\"$1\\" KNAME=\\"$1\\" PKNAME=\\"$2\\" TYPE=\\"$3\\" $extra SIZE=\\"$4\\" FSTYPE=\\"$5\\" MOUNTPOINT=\\"$6\\" $serial RO=\\"0\\" RM=\\"0\\""; }
`;

compare('devices', async () => {
  const lines = [
    'sda "" disk 1000 "" ""',
    'sda1 sda part 900 "" ""',
    'sdb "" disk 500 "" ""',
    'sdc "" disk 10 ext4 ""',
    'sdd "" disk 10 "" /x',
  ];
  const world = { programs: { lsblk: `#!/bin/bash\n${LSBLK}${lines.map((line) => `line ${line}`).join('\n')}\n` } };
  await each('blockDevices', ['sd.* == 1', '.* > 0', 'sda1 == 0', 'sd[b-d] >= 2', 'sd[ > 1', '.* > many'], '', world);
  await same(asking('blockDevices', '.* == 2', '', '        includeUnmountedPartitions: true\n'), world);
  await same(asking('blockDevices', '.* == 0', '', '        minimumAcceptableSize: 800\n'), world);
  await same(asking('blockDevices', '.* >= 1'));
});

compare('services and kernel parameters', async () => {
  const units = 'ufw.service loaded active exited Uncomplicated firewall\nx.service not-found inactive dead x';
  const world = { programs: { systemctl: prints(units) } };
  await each(
    'hostServices',
    ['ufw.service = active', 'ufw != active', 'x = inactive,dead', 'y = active', 'ufw is up', 'x <> *,*,loaded'],
    '',
    world,
  );
  await each('sysctl', [
    'kernel.ostype = Linux',
    'net.ipv4.ip_forward >= 0',
    'kernel.ostype > 1',
    'no.such = 1',
    'vm.swappiness',
  ]);
});

compare('kernel modules', async () => {
  const { stdout: kernel } = await execa('uname', ['-r']);
  const folder = `/usr/lib/modules/${kernel}`;
  const world = {
    files: {
      [`${folder}/modules.builtin`]: 'kernel/fs/ext4x.ko\n',
      [`${folder}/kernel/brdx.ko`]: '',
      [`${folder}/kernel/zipped.ko.xz`]: '',
    },
  };
  await each(
    'kernelModules',
    ['ext4x == loaded', 'brdx == loadable', 'ext4x,brdx == loaded', 'nosuch != loaded', 'ext4x is loaded'],
    '',
    world,
  );
  if (!existsSync('/proc/modules')) return;
  const zipped = asking('kernelModules', 'zipped == loadable');
  await differs(zipped, ['pass Kernel Modules'], ['pass Kernel Modules', 'warn Kernel Modules'], world);
});

const REPORT = JSON.stringify({
  jobs: [
    {
      jobname: 'fsperf',
      sync: { lat_ns: { min: 1000, max: 9_000_000, mean: 55_000, percentile: { '99.000000': 8_000_000 } } },
    },
  ],
});

compare('speed of a disk', async () => {
  await using box = await tree();
  const world = { programs: { fio: prints(REPORT) } };
  const conditions = [
    'p99 < 10ms',
    'max >= 9ms',
    'average > 1s',
    'min = 1us',
    'p98 < 1ms',
    'p99 < soon',
    'fileNotCollected',
  ];
  await each('filesystemPerformance', conditions, `directory: '${box.path}'`, world);
});

compare(
  'speed of a disk, by fio itself',
  async () => {
    await using box = await tree();
    const settings = `directory: '${box.path}', fileSize: 1Mi, operationSize: 4096, datasync: true, runTime: "5"`;
    const world = { programs: { fio: `#!/bin/sh\nexec '${FIO}' "$@"\n` } };
    await each('filesystemPerformance', ['p99 > 1ns', 'p99 > 1h', 'min <= 1h'], settings, world);
    const left = (await readdir(box.path)).filter((name) => name.includes('curlew'));
    assert.equal(left, [], 'nothing of our own measurement stays');
  },
  FIO,
);

compare('the differences that the documentation lists', async () => {
  await differs(asking('memory', '< 1.5Gi'), ['fail Amount of Memory'], ['pass Amount of Memory']);
  await differs(asking('diskUsage', 'total < 100Ti', 'path: /'), ['fail Disk Usage'], ['warn Disk Usage']);
  const lone = (analyzer: string): string =>
    specText(`  collectors:
    - cpu: {}
  analyzers:
    - cpu: {outcomes: [{pass: {message: m}}]}
    - ${analyzer}
`);
  const cpu = 'pass Number of CPUs';
  await differs(lone('memory: {outcomes: [{pass: {message: m}}]}'), [cpu], ['fail Amount of Memory', cpu]);
  const slow = lone('filesystemPerformance: {outcomes: [{warn: {when: fileNotCollected, message: m}}]}');
  await differs(slow, [cpu], [cpu, 'warn Filesystem Performance']);
  const units = {
    programs: {
      systemctl:
        '#!/bin/sh\nmark="● "; for word; do [ "$word" != --plain ] || mark=; done\necho "${mark}x.service loaded failed failed x"\n',
    },
  };
  await differs(asking('hostServices', 'x.service = failed'), ['pass Host Services'], ['warn Host Services'], units);
});

countComparisons(compare);

test.run();
