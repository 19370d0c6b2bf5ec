/** The machines of a cluster by what their providers have. */
import { CurlewError } from '../../core/errors.ts';
import type { SshError } from '../ssh/ssh.ts';
import type { Held, SeenMachine } from '../cluster.ts';
import type { HostFacts } from '../facts.ts';
import type { WrittenCluster, WrittenHost } from './cluster-file.ts';
import { isReady, listProvided, verdictOf, type Provided, type Provider } from './provider.ts';

export interface ListedHost {
  readonly host: WrittenHost;
  /** Its provider has it; undefined without a provider, and while its list is unknown. */
  readonly exists?: boolean;
  /** Why its provider must create it, or end that, before it can be reached. */
  readonly toCreate?: string;
  /** Why its provider must replace it. */
  readonly outdated?: string | undefined;
  /** Why it cannot be reached. */
  readonly problem?: Pick<SshError, 'problem' | 'reason' | 'hint'>;
}

export interface ListedHosts {
  readonly hosts: readonly ListedHost[];
  /** Machines of this cluster that the file does not have with this provider. */
  readonly extras: readonly ListedHost[];
  /** Extras, and lists that have failed: nothing is known of their machines. */
  readonly held: readonly Held[];
}

export async function listHosts({ name, machines }: WrittenCluster, signal: AbortSignal): Promise<ListedHosts> {
  const providers = new Map<string, Provider>();
  for (const { provided } of machines) if (provided !== undefined) providers.set(provided.by.name, provided.by);
  const lists = new Map<string, ReadonlyMap<string, Provided>>();
  const failures = new Map<string, string>();
  for (const by of providers.values()) {
    const wanted = machines.flatMap(({ provided }) => (provided?.by.name === by.name ? provided.wanted : []));
    try {
      const list = await listProvided(by, { cluster: name, machines: wanted }, signal);
      lists.set(by.name, new Map(list.map((one) => [one.name, one])));
    } catch (error) {
      if (!(error instanceof CurlewError) || signal.aborted) throw error;
      failures.set(by.name, error.message.replaceAll(/\s*\n\s*/g, ' '));
    }
  }
  const owners = new Map(machines.map(({ name: own, provided }) => [own, provided?.by.name ?? '']));
  const extras = [...lists].flatMap(([by, list]) =>
    [...list.keys()].flatMap((own) => (owners.get(own) === by ? [] : extraOf(own, name, providers.get(by)))),
  );
  return {
    hosts: machines.map((host) => listedHost(host, lists, failures)),
    extras,
    held: [
      ...[...failures.values()].map((reason) => ({ reason })),
      ...extras.map(({ host: { name: own, provided } }) => {
        const hint = owners.has(own) ? 'delete it there' : 'curlew machine remove deletes it';
        return { host: own, reason: `the provider ${provided?.by.name} has it, and the file does not: ${hint}` };
      }),
    ],
  };
}

function listedHost(
  host: WrittenHost,
  lists: ReadonlyMap<string, ReadonlyMap<string, Provided>>,
  failures: ReadonlyMap<string, string>,
): ListedHost {
  if (host.provided === undefined) return { host };
  const { name: by } = host.provided.by;
  const away = (reason: string): ListedHost => ({ host, problem: { problem: 'unreachable', reason, hint: '' } });
  const list = lists.get(by);
  if (list === undefined) return away(failures.get(by) ?? '');
  const seen = list.get(host.name);
  if (isReady(seen)) return { host: reached(host, seen), exists: true, outdated: seen.outdated };
  const toCreate = `the provider ${by} ${seen === undefined ? 'does not have it' : 'has no address and host key of it'}`;
  return { ...away(toCreate), toCreate, exists: seen !== undefined };
}

/** The host once its provider has said how it is reached. */
export function reached(host: WrittenHost, { address = '', ssh }: Provided): WrittenHost {
  return { ...host, address, ssh: { name: host.name, address, hostKey: '', ...ssh } };
}

function extraOf(name: string, cluster: string, by: Provider | undefined): readonly ListedHost[] {
  if (by === undefined) return [];
  const role = 'worker';
  const provided = { by, wanted: { uid: `${cluster}/${name}`, name } };
  return [
    { host: { name, role, machine: { name, role }, ssh: { name, address: '', hostKey: '' }, provided }, exists: true },
  ];
}

/** Why a machine counts as one that is there, although its provider does not have it. */
export function runsElsewhere({ host, exists }: ListedHost, node: SeenMachine | undefined): string | undefined {
  if (exists !== false || node?.ready !== true) return undefined;
  const { name = '' } = host.provided?.by ?? {};
  return `its node is ready, and the provider ${name} does not have it: look whether it uses another account or region; if it was just deleted, its node says so within a minute`;
}

/** Why a machine that is called outdated since it was new is not replaced again: each apply would make one more new machine, or several. */
export function bornOutdated(
  { host: { name: host, provided }, facts, outdated }: ListedHost & { readonly facts?: Pick<HostFacts, 'born'> },
  born: ReadonlySet<string> | undefined,
): readonly (Held & { host: string })[] {
  if (provided === undefined || outdated === undefined) return [];
  const { by, wanted } = provided;
  const isRecorded = facts?.born?.mark === verdictOf(wanted, outdated);
  if (!isRecorded && born?.has(host) !== true) return [];
  const since = isRecorded ? `at ${facts.born.at ?? 'an unknown time'}` : 'just now';
  const reason = `the provider ${by.name} still calls it outdated after it was made new ${since}: ${outdated}: correct ${by.program}`;
  return [{ host, reason }];
}

/** Why nothing may be created: what a running cluster has is not missing because a provider looks in another place. */
export function lostMachines(
  hosts: readonly ListedHost[],
  { nodes, madeBy }: { readonly nodes: ReadonlySet<string> | undefined; readonly madeBy: string | undefined },
): readonly Held[] {
  if (nodes === undefined) {
    const isLost = hosts.some(({ host, exists }) => host.role === 'control-plane' && exists === false);
    if (madeBy === undefined || !isLost) return [];
    const reason = `its providers do not have all control planes, and by ${madeBy} the cluster was made before: look whether they use another account or region; if the cluster is gone, delete that file`;
    return [{ reason }];
  }
  const known = hosts.filter(({ host, exists }) => exists !== undefined && nodes.has(host.name));
  return [...new Set(known.map(({ host }) => host.provided?.by.name))].flatMap((by) => {
    const own = known.filter(({ host }) => host.provided?.by.name === by);
    if (own.length === 1 || own.some(({ exists }) => exists === true)) return [];
    const reason = `the provider ${by} has none of the ${own.length} machines that the cluster has from it: look whether it uses another account or region; if they are gone, remove them from the file`;
    return [{ reason }];
  });
}
