/** Collectors of Troubleshoot's specs on this machine, and their files where its own programs look for them. */
import type { Json, JsonObject } from '../../formats/yaml/yaml.ts';
import { factNameOf } from '../preflight/check.ts';
import { COLLECTORS } from '../preflight/checks.ts';
import { collectFacts } from '../preflight/collect.ts';
import type { Fact } from '../preflight/facts.ts';
import { CollectProblem, type Host } from '../preflight/host.ts';
import { checkSettingsOf } from '../preflight/check-settings.ts';
import type { CollectorSpec } from '../preflight/spec.ts';
import type { Item, CollectedPiece } from './collect.ts';

const OUTPUT_LIMIT = 16 << 20;
/** Programs of specs may take longer than to read a file. */
const LIMIT_MS = 60_000;

const SYSTEM: ReadonlyMap<string, string> = new Map([
  ['blockDevices', 'block_devices'],
  ['cpu', 'cpu'],
  ['hostOS', 'hostos_info'],
  ['hostServices', 'systemctl_services'],
  ['ipv4Interfaces', 'ipv4Interfaces'],
  ['kernelModules', 'kernel_modules'],
  ['memory', 'memory'],
  ['sysctl', 'sysctl'],
  ['time', 'time'],
]);

function pathOf(kind: string, name: string): string {
  const file = name.replaceAll(/[^\w.-]+/g, '_');
  const system = SYSTEM.get(kind);
  if (system !== undefined) return `host-collectors/system/${system}.json`;
  if (kind === 'systemPackages') return `host-collectors/system/${file}-packages.json`;
  if (kind === 'tcpConnect') return `host-collectors/connect/${file}.json`;
  return kind === 'run' ? `host-collectors/run-host/${file}` : `host-collectors/${kind}/${file}.json`;
}

/** Facts are also given to `keep`, for analyzers. Unknown collectors fail. */
export function hostItems(
  specs: readonly CollectorSpec[],
  host: Pick<Host, 'root' | 'env'>,
  keep: (fact: Fact) => void,
): readonly Item[] {
  return specs
    .filter(({ excluded }) => !excluded)
    .map((spec): Item => {
      const { kind, settings } = spec;
      const collector = COLLECTORS.get(kind);
      const name = collector === undefined ? (spec.name ?? kind) : factNameOf(collector, spec.name);
      const command = [settings.text('command') ?? kind, ...(settings.texts('args') ?? [])];
      const path = pathOf(kind, name);
      const text = `${path}.txt`;
      return {
        path: kind === 'run' ? text : path,
        source:
          kind === 'run' ? command.join(' ') : [`collector ${kind}`, settings.text('path') ?? ''].join(' ').trim(),
        // Its own limit comes first.
        limit: 2 * LIMIT_MS,
        collect: async ({ signal }) => {
          if (collector === undefined) throw new CollectProblem(`the collector ${kind} is not known to this version`);
          const options = { ...host, outputLimit: OUTPUT_LIMIT, limitMs: LIMIT_MS, report: () => undefined, signal };
          const [fact] = await collectFacts([{ name: undefined, collectors: [spec], analyzers: [] }], options);
          if (fact === undefined) return [];
          keep(fact);
          if (fact.status === 'collected') return piecesOf(path, kind, fact.data);
          if (fact.problem.endsWith(' is not installed')) return [];
          throw new CollectProblem(fact.problem);
        },
      };
    });
}

function piecesOf(path: string, kind: string, data: Json): readonly CollectedPiece[] {
  if (kind === 'certificate') return [{ path, text: data as string }];
  if (kind !== 'run') return [{ path, value: theirForm(kind, data) }];
  const { exitCode, stdout, stderr, files } = data as {
    readonly exitCode: number;
    readonly stdout: string;
    readonly stderr: string;
    readonly files: Readonly<Record<string, string>>;
  };
  return [
    { path: `${path}.txt`, text: stdout },
    ...(stderr === '' ? [] : [{ path: `${path}-stderr.txt`, text: stderr }]),
    ...(exitCode === 0 ? [] : [{ path: `${path}-info.json`, value: { exitCode: String(exitCode) } }]),
    ...Object.entries(files).map(([name, text]) => ({ path: `${path}/${name}`, text })),
  ];
}

/** The names of Troubleshoot's fields. */
const UNDERSCORES: ReadonlySet<string> = new Set(['blockDevices', 'diskUsage', 'time']);

function theirForm(kind: string, data: Json): unknown {
  if (kind === 'kernelModules') {
    return Object.fromEntries(Object.entries(data).map(([name, status]) => [name, { size: 0, instances: 0, status }]));
  }
  if (kind === 'http') {
    const { statusCode, error } = data as { readonly statusCode?: number; readonly error?: string };
    return error === undefined ? { response: { status: statusCode } } : { error: { message: error } };
  }
  const rename = UNDERSCORES.has(kind)
    ? (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    : kind === 'hostServices'
      ? (name: string) => name.slice(0, 1).toUpperCase() + name.slice(1)
      : (name: string) => name;
  const renamed = (value: Json): unknown =>
    typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).map(([name, one]) => [rename(name), one]))
      : value;
  return Array.isArray(data) ? (data as readonly Json[]).map(renamed) : renamed(data);
}

const JOURNAL = '--no-pager --output=short-iso --lines=10000';

function ownSpec(kind: string, values: JsonObject): CollectorSpec {
  const settings = checkSettingsOf(values);
  const place = { file: 'built-in', line: 1, column: 1, length: 1 };
  return { kind, name: settings.text('collectorName'), excluded: false, settings, place };
}

/** The processes are listed without their arguments, which may be secrets. */
const PROGRAMS: Readonly<Record<string, string>> = {
  'kubelet-journal': `journalctl --unit=kubelet ${JOURNAL}`,
  'containerd-journal': `journalctl --unit=containerd ${JOURNAL}`,
  'kernel-journal': `journalctl --dmesg ${JOURNAL}`,
  'warnings-journal': `journalctl --priority=warning ${JOURNAL}`,
  'failed-units': 'systemctl --failed --no-pager',
  units: 'systemctl status --no-pager --lines=0 kubelet containerd',
  timers: 'systemctl list-timers --all --no-pager',
  uname: 'uname -a',
  uptime: 'uptime',
  processes: 'ps -eo pid,ppid,user,stat,etime,rss,comm',
  disks: 'df -h',
  inodes: 'df -i',
  addresses: 'ip address',
  routes: 'ip route',
  listening: 'ss --listening --tcp --udp --numeric',
  containers: 'crictl ps --all',
  sandboxes: 'crictl pods',
  images: 'crictl images',
};

/** Items that are of use on every machine. */
export const BUILT_IN_COLLECTORS: readonly CollectorSpec[] = [
  ...[...SYSTEM.keys()].map((kind) => ownSpec(kind, {})),
  ...['/', '/var/lib', '/var/log', '/tmp'].map((path) => {
    return ownSpec('diskUsage', { collectorName: path.slice(1).replaceAll('/', '-') || 'root', path });
  }),
  ...Object.entries(PROGRAMS).map(([name, line]) => {
    const [command = '', ...args] = line.split(' ');
    return ownSpec('run', { collectorName: name, command, args });
  }),
];
