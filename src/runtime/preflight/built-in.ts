/** The checks that every node must pass, regardless of its add-ons (kurl.md 8.3). Pure. */
import type { Place } from '../../core/diagnostic.ts';
import { clusterChecks, type BuiltIn, type CheckRow } from './built-in-cluster.ts';
import { checkSettingsOf } from './check-settings.ts';
import { versionIn, type Situation } from './situation.ts';
import type { AnalyzerSpec, CollectorSpec, HostPreflight } from './spec.ts';
import { satisfiesConstraint } from '../../formats/go-template/constraint.ts';
import { UnfitValue } from '../../formats/go-template/values.ts';

const PLACE: Place = { file: 'built-in', line: 1, column: 1, length: 1 };

/** The built-in spec for a situation. */
export function builtInSpec(situation: Situation): HostPreflight {
  const checks = [
    ...machineChecks(),
    ...diskChecks(situation),
    ...portChecks(situation),
    ...clusterChecks(situation),
    ...systemChecks(situation),
  ];
  return {
    name: 'built-in',
    collectors: [...checks.flatMap(collectorOf), ...otherCollectors()],
    analyzers: checks.map(analyzerOf),
  };
}

function collectorOf({ kind, name, settings = {}, excluded = false }: BuiltIn): readonly CollectorSpec[] {
  // One collector of the system serves all its checks.
  if (kind === 'hostOS') return [];
  const named = name === undefined ? settings : { collectorName: name, ...settings };
  return [{ kind, name, excluded, settings: checkSettingsOf(named), place: PLACE }];
}

function otherCollectors(): readonly CollectorSpec[] {
  return ['hostOS', 'hostServices'].map((kind) => {
    return { kind, name: undefined, excluded: false, settings: checkSettingsOf({}), place: PLACE };
  });
}

function analyzerOf({ kind, name, checkName, excluded = false, outcomes }: BuiltIn): AnalyzerSpec {
  return {
    kind,
    checkName: checkName ?? name,
    collectorName: name,
    excluded,
    strict: false,
    outcomes: outcomes.map(([verdict, when, message]) => ({ verdict, when, message, uri: undefined, place: PLACE })),
    settings: checkSettingsOf({}),
    place: PLACE,
  };
}

function machineChecks(): readonly BuiltIn[] {
  return [
    {
      kind: 'cpu',
      checkName: 'Number of CPUs',
      outcomes: [
        ['fail', 'count < 2', 'At least 2 CPU cores are required, 4 are recommended'],
        ['warn', 'count < 4', 'At least 4 CPU cores are recommended'],
        ['pass', '', 'There are at least 4 CPU cores'],
      ],
    },
    {
      kind: 'memory',
      checkName: 'Amount of Memory',
      outcomes: [
        ['fail', '< 4G', 'At least 4G of memory is required, 8G is recommended'],
        ['warn', '< 8G', 'At least 8G of memory is recommended'],
        ['pass', '', 'There is at least 8G of memory'],
      ],
    },
    {
      kind: 'time',
      checkName: 'NTP Status',
      outcomes: [
        ['fail', 'ntp == unsynchronized+inactive', 'The system clock is not synchronized'],
        ['warn', 'ntp == unsynchronized+active', 'The system clock is not synchronized yet'],
        ['pass', 'ntp == synchronized+active', 'The system clock is synchronized'],
        ['warn', 'timezone != UTC', 'A time zone other than UTC can cause problems with other systems'],
        ['pass', 'timezone == UTC', 'The time zone is UTC'],
      ],
    },
  ];
}

function diskChecks(situation: Situation): readonly BuiltIn[] {
  const total = (path: string): readonly CheckRow[] => [
    ['fail', 'total < 30Gi', `The disk of ${path} has less than 30Gi in total`],
    ['fail', 'used/total > 80%', `The disk of ${path} is more than 80% full`],
    ['warn', 'used/total > 60%', `The disk of ${path} is more than 60% full`],
    ['warn', 'available < 10Gi', `The disk of ${path} has less than 10Gi left`],
    ['pass', '', `The disk of ${path} has at least 30Gi in total and 10Gi left, and is less than 60% full`],
  ];
  const space = (path: string, verdict: 'warn' | 'fail'): readonly CheckRow[] => [
    [verdict, 'used/total > 80%', `The disk of ${path} is more than 80% full`],
    [verdict, 'available < 10Gi', `The disk of ${path} has less than 10Gi left`],
    ['pass', '', `The disk of ${path} has enough space`],
  ];
  const check = (path: string, outcomes: readonly CheckRow[], addon?: string): BuiltIn => ({
    kind: 'diskUsage',
    name: `Ephemeral Disk Usage ${path}`,
    settings: { path },
    excluded: addon !== undefined && versionIn(situation, addon) === '',
    outcomes,
  });
  return [
    check('/var/lib/kubelet', total('/var/lib/kubelet')),
    check('/var/lib/docker', total('/var/lib/docker'), 'docker'),
    check('/var/lib/containerd', total('/var/lib/containerd'), 'containerd'),
    check('/var/lib/rook', space('/var/lib/rook', 'fail'), 'rook'),
    check('/var/openebs', space('/var/openebs', 'warn'), 'openebs'),
  ];
}

/** Ports of Kubernetes; `loopback`: only on loopback; `primary`: only on primaries. */
const PORTS: readonly (readonly [name: string, port: number, loopback: boolean, primary: boolean])[] = [
  ['Kubernetes API', 6443, false, true],
  ['ETCD Client API', 2379, false, true],
  ['ETCD Server API', 2380, false, true],
  ['ETCD Health Server', 2381, true, true],
  ['Kubelet Health Server', 10_248, true, false],
  ['Kubelet API', 10_250, false, false],
  ['Kube Controller Manager Health Server', 10_257, true, true],
  ['Kube Scheduler Health Server', 10_259, true, true],
];

function portChecks({ isPrimary, isUpgrade, hasKubernetes = false }: Situation): readonly BuiltIn[] {
  return PORTS.map(([name, port, loopback, primary]) => ({
    kind: 'tcpPortStatus',
    name: `${name} TCP Port Status`,
    settings: { port, ...(loopback ? { interface: 'lo' } : {}) },
    excluded: isUpgrade || hasKubernetes || (primary && !isPrimary),
    outcomes: [
      ['fail', 'connection-refused', `A connection to port ${port} of this machine was refused: check its routes`],
      ['warn', 'address-in-use', `Another process listens on port ${port}`],
      ['fail', 'connection-timeout', `Port ${port} of this machine does not respond: check its firewall`],
      ['fail', 'error', `The status of port ${port} is unexpected`],
      ['pass', 'connected', `Port ${port} is free`],
      ['warn', '', `The status of port ${port} is unexpected`],
    ],
  }));
}

function within(constraint: string, version: string): boolean {
  try {
    return satisfiesConstraint(constraint, version);
  } catch (error) {
    // A version such as "nightly" matches no range.
    if (error instanceof UnfitValue) return false;
    throw error;
  }
}

function systemChecks(situation: Situation): readonly BuiltIn[] {
  const { isPrimary, isJoin, isUpgrade } = situation;
  const [docker, containerd, weave] = ['docker', 'containerd', 'weave'].map((name) => versionIn(situation, name));
  const [kotsadm = '', kubernetes = ''] = ['kotsadm', 'kubernetes'].map((name) => versionIn(situation, name));
  const onNewest = (message: string): readonly CheckRow[] =>
    ['ubuntu = 24.04', 'ubuntu = 26.04', 'amazon >= 2023'].map((when) => ['fail', when, message] as const);
  const check = (checkName: string, applies: boolean, outcomes: readonly CheckRow[]): BuiltIn => {
    return { kind: 'hostOS', checkName, excluded: !applies, outcomes };
  };
  return [
    {
      kind: 'filesystemPerformance',
      name: 'Filesystem Latency Two Minute Benchmark',
      settings: {
        timeout: '4m',
        directory: '/var/lib/etcd',
        fileSize: '22Mi',
        operationSize: 2300,
        datasync: true,
        enableBackgroundIOPS: true,
        backgroundIOPSWarmupSeconds: 10,
        backgroundWriteIOPS: 300,
        backgroundWriteIOPSJobs: 6,
        backgroundReadIOPS: 50,
        backgroundReadIOPSJobs: 1,
      },
      excluded: !isPrimary || isJoin || isUpgrade,
      outcomes: [
        ['warn', 'fileNotCollected', 'The latency of the file system could not be measured'],
        ['pass', 'p99 < 10ms', 'Writes are fast enough (p99 should be below 10ms, it is {{ .P99 }})'],
        ['warn', '', 'Writes are slow. p99 should be below 10ms, but is:{{ .String }}'],
      ],
    },
    check('Docker Support', docker !== '' && within('< 20.10.17', docker ?? ''), [
      ['fail', 'ubuntu = 22.04', 'Docker before 20.10.17 does not support Ubuntu 22.04'],
    ]),
    check('Docker Support', docker !== '', onNewest('Docker is not supported on this system: use containerd')),
    check(
      'Kubernetes Support',
      kubernetes !== '' && within('< 1.24.0', kubernetes),
      onNewest('Kubernetes before 1.24 is not supported on this system'),
    ),
    check(
      'Containerd and Weave Compatibility',
      weave !== '' && containerd !== '' && within('1.6.0 - 1.6.4', containerd ?? ''),
      [['fail', '', 'Weave does not work with containerd 1.6.0 to 1.6.4']],
    ),
    check(
      'Kots and Kubernetes Compatibility',
      kotsadm !== '' && kubernetes !== '' && within('<= 1.96.2', kotsadm) && within('>= 1.29.0', kubernetes),
      [['fail', '', 'Kots up to 1.96.2 does not work with Kubernetes 1.29 and later']],
    ),
  ];
}
