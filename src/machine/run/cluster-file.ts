/** The one cluster of files, and the hosts of its machines. */
import { dirname, resolve } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { readFleet } from '../../fleet/read.ts';
import type { FleetFile, FleetCluster as Found } from '../../fleet/fleet.ts';
import type { ClusterFields } from '../../fleet/schema.ts';
import type { DesiredCluster, DesiredMachine, SeenCluster } from '../cluster.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { SshHost } from '../ssh/ssh.ts';
import { listFiles } from '../../fleet/run/files.ts';
import { unreadableSetting } from './kubeadm-settings.ts';
import { requireName } from './require-name.ts';
import { readConfig } from '../../steps/open/config.ts';
import type { Provider, Wanted } from './provider.ts';

const MAX_BYTES = 16 << 20;
const AT_ONCE = 8;

export type Machine = NonNullable<ClusterFields['spec']['machines']>[number];

export interface WrittenHost extends DesiredMachine {
  readonly machine: Machine;
  /** Without an address while its provider has not said it. */
  readonly ssh: SshHost;
  readonly provided?: { readonly by: Provider; readonly wanted: Wanted } | undefined;
}

export interface WrittenCluster extends DesiredCluster {
  readonly machines: readonly WrittenHost[];
  /** Absolute path of the file that has it. */
  readonly file: string;
  /** Absolute path of the kubeconfig that the file names. */
  readonly kubeconfig: string;
  /** Settings of the add-ons by name, over those of the bundle. */
  readonly installer: Readonly<Record<string, unknown>>;
  /** The mistake of a setting, in a file that was read only to look at its machines. */
  readonly unreadable?: string | undefined;
}

interface Configured {
  /** The configuration that has the providers; default: the operator's own. */
  readonly config?: string | undefined;
  /** No machine gets settings of the file: one that cannot be read is no error. */
  readonly withoutSettings?: boolean;
}

/** `SPEC_INVALID` for mistakes in a file, `USAGE` if the files have no cluster, or several. Begins errors with `cannot DOING`. */
export async function readCluster(paths: readonly string[], doing: string, context: Context): Promise<ClusterFields> {
  return (await findCluster(paths, doing, context)).fields;
}

async function findCluster(paths: readonly string[], doing: string, context: Context): Promise<Found> {
  const { cwd, report, signal } = context;
  const files = (await Promise.all(paths.map(async (one) => listFiles(one, context)))).flat();
  const read = async ({ path }: { readonly path: string }) => {
    const content = await readLimited(resolve(cwd, path), MAX_BYTES, { signal });
    return { path, folder: dirname(path), text: content.toString('utf8') };
  };
  const found = oneCluster(await mapLimited(files, read, { width: AT_ONCE, signal }), doing, paths.join(' '));
  for (const { severity, place, message, hint } of found.findings.diagnostics) {
    if (severity !== 'warning') continue;
    report({ type: 'note', level: 'warning', text: `${place.file}:${place.line}: ${message}: ${hint ?? ''}` });
  }
  return found;
}

function oneCluster(texts: readonly FleetFile[], doing: string, name: string): Found {
  const { clusters, diagnostics } = readFleet(texts);
  if (diagnostics.some(({ severity }) => severity === 'error')) {
    throw new CurlewError('SPEC_INVALID', `cannot ${doing} ${name}: it has errors`, { diagnostics });
  }
  const [cluster, other] = clusters;
  if (cluster !== undefined && other === undefined) return cluster;
  const what = cluster === undefined ? 'it has no cluster' : `it has ${clusters.length} clusters`;
  throw new CurlewError('USAGE', `cannot ${doing} ${name}: ${what}`, {
    hint: 'name a file with one document of kind: Cluster',
  });
}

/** The same with what an SSH connection to each machine needs. `SPEC_INVALID` if a machine does not have it. */
export async function readHosts(
  { files, ...options }: { readonly files: readonly string[] } & Configured,
  doing: string,
  context: Context,
): Promise<WrittenCluster> {
  return hostsOf(await findCluster(files, doing, context), { doing, ...options }, context);
}

/** The same cluster after its file was changed to this text. */
export async function readChanged(
  { file, text, config }: { readonly file: string; readonly text: string } & Configured,
  doing: string,
  context: Context,
): Promise<WrittenCluster> {
  return hostsOf(oneCluster([{ path: file, folder: dirname(file), text }], doing, file), { doing, config }, context);
}

async function hostsOf(
  { fields, kubeconfig, file }: Found,
  { doing, config: path, withoutSettings = false }: { readonly doing: string } & Configured,
  context: Context,
): Promise<WrittenCluster> {
  const { cwd, env } = context;
  const { metadata, spec } = fields;
  const { kubernetes, paused, machines = [], installer = {} } = spec;
  const wrong = (what: string, hint: string): CurlewError =>
    new CurlewError('SPEC_INVALID', `cannot ${doing} ${metadata.name}: ${what}`, { hint });
  if (kubernetes === undefined) throw wrong('it has no version of Kubernetes', 'add spec.kubernetes.version');
  const unreadable = unreadableSetting(installer);
  if (unreadable !== undefined && !withoutSettings)
    throw wrong(unreadable, 'correct it: kubeadm would refuse it on each machine');
  if (machines.length === 0) throw wrong('it has no machines', 'list them in spec.machines');
  // The file of a cluster never names a program: whoever writes it would run that as the operator.
  const isProvided = machines.some(({ provider }) => provider !== undefined);
  const programs = new Map(isProvided ? (await readConfig(path, context)).providers : []);
  const hosts = machines.map((machine): WrittenHost => {
    const { name, role, address, kubeletVersion, ssh, provider, update } = machine;
    if (update === 'Replace' && role === 'control-plane')
      throw wrong(`the control plane ${name} gets its versions in place`, 'only workers have update: Replace');
    if (provider !== undefined) {
      const { exec, config = {} } = provider;
      const program = programs.get(exec);
      if (address !== undefined || ssh !== undefined)
        throw wrong(`the machine ${name} has a provider, and an address or ssh`, 'remove them: the provider says both');
      if (program === undefined)
        throw wrong(
          `the provider ${exec} of the machine ${name} is not known here`,
          `name its program in the configuration: {"providers": {"${exec}": "/usr/local/bin/${exec}"}}`,
        );
      const by = { name: exec, program, env };
      const wanted = { uid: `${metadata.name}/${name}`, name, role, config };
      const unknown = { name, address: '', hostKey: '' };
      return { name, role, kubeletVersion, update, machine, ssh: unknown, provided: { by, wanted } };
    }
    if (update === 'Replace')
      throw wrong(`the machine ${name} has update: Replace and no provider`, 'add its provider, or use update: Auto');
    if (address === undefined) throw wrong(`the machine ${name} has no address`, 'add it: address: 10.0.0.1');
    if (ssh === undefined) {
      throw wrong(
        `the machine ${name} has no host key`,
        `ssh-keyscan -t ed25519 ${address} | ssh-keygen -lf -, compared with its console, gives ssh: { hostKey: 'SHA256:…' }`,
      );
    }
    return { name, role, address, kubeletVersion, machine, ssh: { name, address, ...ssh } };
  });
  return {
    name: metadata.name,
    version: kubernetes.version.replace(/^v?/, 'v'),
    paused,
    machines: hosts,
    file: resolve(cwd, file.path),
    kubeconfig: resolve(cwd, kubeconfig),
    installer,
    unreadable,
  };
}

/** `NOT_FOUND` for a name that the file does not have. */
export function requireMachine({ file, machines }: WrittenCluster, name: string, doing: string): void {
  const names = machines.map((one) => one.name);
  requireName(name, names, { doing, missing: `${file} has no such machine` });
}

interface Seen {
  readonly extras: readonly { readonly host: WrittenHost }[];
  readonly seen: SeenCluster;
  readonly speaker?: WrittenHost | undefined;
  /** A control plane without curlew, which the bundle would let answer. */
  readonly silent?: WrittenHost | undefined;
}

interface Named {
  readonly name: string;
  readonly doing: string;
}

/** `NOT_FOUND` for a name that neither the file of a cluster nor the cluster has. */
export function requireKnown(
  { file, machines }: WrittenCluster,
  { extras, seen, speaker }: Seen,
  { name, doing }: Named,
): void {
  const names = [...machines, ...extras.map(({ host }) => host), ...seen.machines, ...(seen.members ?? [])];
  requireName(name, [...new Set(names.map((one) => one.name))], {
    doing,
    missing:
      speaker === undefined
        ? `${file} has no such machine, and no control plane could be asked for others`
        : `neither ${file} nor the cluster has such a machine`,
  });
}

/** The same, but where a control plane could be asked once it has the bundle, its cluster may have the machine. */
export function requireFound(cluster: WrittenCluster, look: Seen, what: Named): void {
  if (look.silent === undefined) requireKnown(cluster, look, what);
}
