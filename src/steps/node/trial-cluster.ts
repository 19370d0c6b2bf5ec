/** The cluster that hooks of a trial may change: checked before anything runs, and given to them as a kubeconfig of their own. */
import { rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError, ifExists } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { nodePath } from '../../core/layout.ts';
import type { ApiAnswer, KubeApi } from '../../cluster/kube/api.ts';
import { apiPath, type ApiPath } from '../../cluster/kube/path.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { clusterText, type TrialCluster } from '../../runtime/node/node-place.ts';
import { readable } from '../../runtime/history/history.ts';
import { readRecords } from '../../runtime/node/records.ts';
import { isClusterUid } from '../../runtime/plan/records.ts';
import type { TargetRequest } from '../../requests/node.ts';
import { placesOf } from './target.ts';

export interface FoundCluster {
  readonly facts: TrialCluster;
  /** Writes the kubeconfig into the install folder, and removes it when disposed: it contains credentials. */
  readonly writeIn: (directory: string) => Promise<AsyncDisposable>;
}

const KUBECONFIG_HINT =
  '--kubeconfig takes the kubeconfig of a cluster that the trial may change, which is a file such as ~/.kube/config';

/**
 * The API server of a kubeconfig, which is not asked yet. `NOT_FOUND` if there is no file, `FILE_UNUSABLE` for a folder; other
 * mistakes are found when it is asked.
 */
export async function openTrialApi(
  kubeconfig: string,
  { context: kubeContext }: Pick<TargetRequest, 'context'>,
  { env, cwd }: Pick<Context, 'env' | 'cwd'>,
): Promise<{ readonly path: string; readonly api: KubeApi }> {
  const { openApi } = await import('../../cluster/kube/api.ts');
  const path = resolve(cwd, kubeconfig);
  const api = await openApi({ env: { ...env, KUBECONFIG: path }, kubeContext, way: '--kubeconfig' });
  if (api === undefined)
    throw new CurlewError('NOT_FOUND', `cannot read ${path}: no such file`, { hint: KUBECONFIG_HINT });
  if ((await ifExists(`read ${path}`, stat(path)))?.isDirectory() === true)
    throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: it is a folder`, { hint: KUBECONFIG_HINT });
  return { path, api };
}

/**
 * Undefined without --kubeconfig, with a warning if the trial used a cluster before: that cluster may be gone, and not all hooks
 * need one. Starts its credential plug-in, since hooks have neither the plug-in nor its files, and asks the API server. `CLUSTER_FAILED` if the kubeconfig is unusable or the server does not answer, `NOT_FOUND` if there is no file.
 */
export async function findTrialCluster(
  request: TargetRequest,
  { env, cwd, report, signal }: Context,
  { isPlan = false }: { readonly isPlan?: boolean } = {},
): Promise<FoundCluster | undefined> {
  if (request.kubeconfig === undefined) {
    const { root, directory } = placesOf(request, { cwd });
    if (root === undefined) return undefined;
    const { cluster } = await readable(directory, async () => readRecords(directory));
    const text =
      'earlier runs of this trial used a cluster, and this one does not: --kubeconfig FILE lets its hooks change it; ' +
      'without it, hooks that call kubectl fail, and objects in the cluster stay as they are';
    if (cluster !== undefined) report({ type: 'note', level: 'warning', text });
    return undefined;
  }
  const { path, api } = await openTrialApi(request.kubeconfig, request, { env, cwd });
  const { text, context, server, endsAt } = await api.embedded({ signal });
  const ask = async (asked: ApiPath): Promise<ApiAnswer> => {
    const answer = await api.ask({ verb: 'get', path: asked }, { signal });
    if (answer.kind === 'answer' || answer.status === 403) return answer;
    throw new CurlewError('CLUSTER_FAILED', `the cluster of ${path} cannot be used: ${answer.message}`, {
      hint: answer.hint ?? `check that ${server} is the right server and that it is up, or choose another --context`,
    });
  };
  const version = await ask(apiPath`/version`);
  const namespace = await ask(apiPath`/api/v1/namespaces/kube-system`);
  const facts = {
    context,
    server,
    kubernetes: textIn(version, 'gitVersion'),
    uid: uidOf(namespace),
    credentialEnds: endsAt === undefined ? undefined : new Date(endsAt).toISOString(),
  };
  // A plan has it in its text.
  if (!isPlan) report({ type: 'note', level: 'warning', text: clusterText(facts) });
  const writeIn = async (directory: string): Promise<AsyncDisposable> => {
    const file = join(directory, nodePath.kubeconfig);
    await writeStateFile(file, text.reveal());
    return { [Symbol.asyncDispose]: async () => rm(file, { force: true }) };
  };
  return { facts, writeIn };
}

function textIn(answer: ApiAnswer, field: string): string | undefined {
  const value = answer.kind === 'answer' && isObject(answer.value) ? answer.value[field] : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** Undefined if this user may not read the namespace. */
function uidOf(answer: ApiAnswer): string | undefined {
  const metadata = answer.kind === 'answer' && isObject(answer.value) ? answer.value['metadata'] : undefined;
  const uid = isObject(metadata) ? metadata['uid'] : undefined;
  return typeof uid === 'string' && isClusterUid(uid) ? uid : undefined;
}
