/** The cluster of a channel: its facts, its records and the objects that add-ons consist of. */
import { access } from 'node:fs/promises';
import { hostname } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import * as v from 'valibot';
import type { ClusterFacts } from '../channel/pass.ts';
import { parseTriple } from '../channel/range.ts';
import { readAnnotations, decodeRecords } from '../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import { CHANNEL_RECORDS, RUN_RECORDS } from '../../core/layout.ts';
import { openApi, type ApiOptions, type KubeApi } from '../kube/api.ts';
import { openCalls, Refused, type Call, type CallOptions } from '../kube/call.ts';
import { holdLease } from '../kube/lease.ts';
import { listObjects } from '../kube/objects.ts';
import { apiPath } from '../kube/path.ts';
import { discover, type Discovery } from '../kube/resources.ts';
import { choosing } from '../kube/kubeconfig.ts';
import { kubeconfigPaths } from '../kube/session.ts';
import { configMapClient, type ConfigMapClient } from '../kube/config-map.ts';
import type { Context } from '../../core/context.ts';
import { NAMESPACES } from '../kube/core-kinds.ts';

export interface OpenRequest extends Pick<ApiOptions, 'isForeign' | 'way'> {
  /** Default: KUBECONFIG, then ~/.kube/config, then that of kubeadm. */
  readonly kubeconfig?: string | undefined;
  /** Name of a context in it; default: its current one. */
  readonly context?: string | undefined;
}

const REQUEST_MS = 30_000;
const PATIENCE_MS = 30_000;
export const AT_ONCE = 8;

export interface ChannelCluster {
  readonly call: Call;
  readonly signal: AbortSignal;
  /** Paths of the kubeconfig, as in KUBECONFIG, and the context, if it is not the current one: for programs. */
  readonly kubeconfig: string;
  readonly kubeContext: string | undefined;
  /** Address of its API server. */
  readonly server: string;
  /** The namespace of the kubeconfig's context. */
  readonly namespace: string;
  readonly kubernetes: string;
  readonly facts: ClusterFacts;
  readonly namespaces: ReadonlySet<string>;
  /** What could not be found out; the pass adds to it. */
  readonly warnings: string[];
  /** The kinds that it serves; asked for once. */
  readonly discovery: () => Promise<Discovery>;
  readonly maps: ConfigMapClient;
  readonly api: KubeApi;
  /** Rejects if this process may not write any more; undefined: it does not write. */
  readonly guard: CallOptions['guard'];
}

/** How a cluster is reached; nothing has been asked. */
type OpenedApi = Pick<ChannelCluster, 'api' | 'call' | 'kubeconfig' | 'kubeContext'>;

/** Reads what the cluster says about its add-ons: five requests. Errors are those of {@link openClusterApi}. */
export async function openChannelCluster(
  request: OpenRequest,
  context: Context,
  instead?: string,
): Promise<ChannelCluster> {
  const { signal, report } = context;
  const { api, kubeconfig, kubeContext } = await openClusterApi(request, context, instead);
  return readCluster(api, { kubeconfig, kubeContext, signal, guard: undefined, report });
}

/**
 * The API server of a cluster, and the paths of its kubeconfig as in KUBECONFIG. `CLUSTER_FAILED` if no kubeconfig leads to one; the
 * hint also names the option `instead` of which a cluster was looked for.
 */
export async function openClusterApi(request: OpenRequest, context: Context, instead?: string): Promise<OpenedApi> {
  const env = { ...context.env, KUBECONFIG: await kubeconfigOf(request, context) };
  const api = await openApi({
    env,
    kubeContext: request.context,
    isForeign: request.isForeign,
    way: request.kubeconfig === undefined ? undefined : (request.way ?? '--kubeconfig'),
    deadlineMs: REQUEST_MS,
  });
  if (api !== undefined) {
    const call = openCalls(api, { patienceMs: PATIENCE_MS, signal: context.signal });
    return { api, call, kubeconfig: kubeconfigPaths(env).join(delimiter), kubeContext: request.context };
  }
  const what = env.KUBECONFIG === undefined ? 'there is no kubeconfig' : `${env.KUBECONFIG} does not exist`;
  const option = `specify a kubeconfig with --kubeconfig or KUBECONFIG${instead === undefined ? '' : `, or add ${instead}`}`;
  const hint = request.way === 'spec.access' ? choosing(request.way, 'a kubeconfig that exists') : option;
  throw new CurlewError('CLUSTER_FAILED', `cannot find a cluster: ${what}`, { hint });
}

/** Also reads a cluster again whose records have changed. */
async function readCluster(
  api: KubeApi,
  from: Pick<ChannelCluster, 'kubeconfig' | 'kubeContext' | 'signal' | 'guard'> & Pick<Context, 'report'>,
): Promise<ChannelCluster> {
  const { kubeconfig, kubeContext, signal, guard, report } = from;
  // A kubeconfig that names no server would be waited for like a server that starts.
  const { server, namespace } = await api.target({ signal });
  let isSaid = false;
  const onSlow = (text: string): void => {
    if (!isSaid) report({ type: 'note', level: 'info', text: `${server}: ${text}` });
    isSaid = true;
  };
  const options = { patienceMs: PATIENCE_MS, signal, guard, onSlow };
  const call = openCalls(api, options);
  const maps = configMapClient(api, options);
  const [version, namespaces, full, installer] = await Promise.all([
    readVersion(call),
    listObjects(call, NAMESPACES),
    maps.read(CHANNEL_RECORDS),
    readInstalled(maps),
  ]);
  const triple = parseTriple(version);
  if (triple === undefined)
    throw new CurlewError('CLUSTER_FAILED', `the version of the cluster cannot be read: ${version}`);
  const readable = namespaces ?? [];
  const annotations = readAnnotations(readable.map(({ metadata }) => metadata));
  const records = decodeRecords(full?.data ?? {});
  let discovery: Promise<Discovery> | undefined;
  return {
    call,
    signal,
    guard,
    kubeconfig,
    kubeContext,
    maps,
    api,
    server,
    namespace,
    kubernetes: version,
    facts: {
      kubernetes: triple,
      annotations: annotations.records,
      records: records.records,
      installer: installer.addons,
    },
    namespaces: new Set(readable.map(({ metadata }) => metadata.name)),
    warnings: [...annotations.warnings, ...records.warnings, ...installer.warnings],
    discovery: async () => {
      discovery ??= discover(api, options);
      return discovery;
    },
  };
}

/** Add-ons that installs on nodes have brought; a user of one namespace may not be allowed to read that. */
async function readInstalled(
  maps: ConfigMapClient,
): Promise<{ readonly addons: ReadonlySet<string>; readonly warnings: readonly string[] }> {
  try {
    const keys = Object.keys((await maps.read(RUN_RECORDS))?.data ?? {});
    return { addons: new Set(keys.flatMap((key) => (key.startsWith('addon.') ? [key.slice(6)] : []))), warnings: [] };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { addons: new Set(), warnings: [`add-ons of installs on nodes are not known: ${error.message}`] };
  }
}

export interface HeldCluster extends AsyncDisposable {
  /** Read while it is held: another process may have changed it before. */
  readonly cluster: ChannelCluster;
}

/** Makes this process the only one that changes add-ons of the cluster. `BUSY` with the name of another one that does. */
export async function holdCluster(
  { api, kubeconfig, kubeContext }: Omit<OpenedApi, 'call'>,
  { doing, context }: { readonly doing: string; readonly context: Context },
): Promise<HeldCluster> {
  const call = openCalls(api, { patienceMs: PATIENCE_MS, signal: context.signal });
  const lease = await holdLease(
    { api, call },
    {
      ...CHANNEL_RECORDS,
      holder: `${hostname()}/${process.pid}`,
      doing,
      signal: context.signal,
      onWait: (holder) =>
        context.report({ type: 'note', level: 'info', text: `waiting for ${holder}, which may have been interrupted` }),
    },
  );
  const close = lease[Symbol.asyncDispose].bind(lease);
  try {
    const { signal, guard } = lease;
    const held = { kubeconfig, kubeContext, signal, guard, report: context.report };
    return { cluster: await readCluster(api, held), [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function kubeconfigOf({ kubeconfig }: OpenRequest, { env, cwd }: Context): Promise<string | undefined> {
  if (kubeconfig !== undefined) return resolve(cwd, kubeconfig);
  if ((env['KUBECONFIG'] ?? '') !== '') return env['KUBECONFIG'];
  const home = env['HOME'] ?? '';
  const own = join(home, '.kube/config');
  const isThere =
    home !== '' &&
    (await access(own).then(
      () => true,
      () => false,
    ));
  return isThere ? own : undefined;
}

const versionSchema = v.object({ gitVersion: v.string() });

/** The version of Kubernetes, such as `v1.31.2`. */
export async function readVersion(call: Call): Promise<string> {
  const answer = await call('read the version of the cluster', { verb: 'get', path: apiPath`/version` });
  if (answer.outcome === 'done' && v.is(versionSchema, answer.value)) return answer.value.gitVersion;
  throw new CurlewError('CLUSTER_FAILED', 'cannot read the version of the cluster: the response has none', {
    hint: 'check that the kubeconfig leads to a Kubernetes API server',
  });
}
