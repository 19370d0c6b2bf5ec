/** Registers a site at a hub: a key that does not leave it, a request, and the wait for its approval. */
import { resolve } from 'node:path';
import { askForCertificate, keepCertificate, readCertificate } from '../fleet/agent/certificate.ts';
import { AgentFolder, type AgentSettings } from '../fleet/agent/folder.ts';
import type { Context } from '../core/context.ts';
import { CurlewError, requireRefusal } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { readPublicKey, type TrustedKey } from '../formats/signing/keys.ts';
import { readToken } from '../fleet/hub/kubeconfig.ts';
import { namespaceOf } from '../fleet/hub/observe.ts';
import { openApi, type KubeApi } from '../cluster/kube/api.ts';
import { openCalls } from '../cluster/kube/call.ts';
import { getObject } from '../cluster/kube/objects.ts';
import { apiPath } from '../cluster/kube/path.ts';
import { readLimited } from '../platform/files/read-limited.ts';
import { readOwnFile } from '../platform/files/state-file.ts';
import { pause } from '../platform/limit/repeat.ts';
import { resourceOf } from '../fleet/hub/run/hub-pass.ts';
import { AGENT_REGISTER } from '../requests/registration.ts';

const LIMIT = 1 << 20;
const PATIENCE_MS = 60_000;
const LOOK_MS = 2000;

export interface Registered {
  readonly cluster: string;
  readonly server: string;
  /** The folder of the agent. */
  readonly folder: string;
  /** When its certificate expires. */
  readonly expires: string;
}

/**
 * Until the site is accepted; interrupted, the same call continues. A certificate that works stays. Without a token, only the trusted keys
 * of a site change that is registered, and the hub is not asked; `NOT_FOUND` for another one. `AUTH_FAILED` for a token
 * that the hub does not know or no longer knows, `FILE_EXISTS` for a site of another hub or name, `CLUSTER_FAILED` if it is denied.
 */
export const registerAgent = useCase(
  AGENT_REGISTER,
  async ({ tokenFile, key = [], allowUnsigned = false, root }, context): Promise<Registered> => {
    const { cwd, env, signal, report } = context;
    const folder = new AgentFolder(root === undefined ? undefined : resolve(cwd, root));
    if (tokenFile === undefined)
      return changeKeys(folder, { keys: await readKeys(key, { cwd, allowUnsigned }), allowUnsigned });
    const path = resolve(cwd, tokenFile);
    const text = await readOwnFile(path, LIMIT);
    if (text === undefined) {
      throw new CurlewError('NOT_FOUND', `cannot read ${tokenFile}: it does not exist`, {
        hint: 'copy the file that curlew hub token has written to this site',
      });
    }
    const { hub, binding } = readToken(text, tokenFile);
    const { cluster } = binding;
    const keys = await readKeys(key, { cwd, allowUnsigned });
    await using _claim = await folder.claim();
    const before = await folder.readSettings();
    if (before !== undefined && (before.hub !== binding.hub || before.cluster !== cluster)) {
      throw new CurlewError(
        'FILE_EXISTS',
        `cannot register ${cluster}: this site is ${before.cluster} at another hub`,
        { hint: 'run curlew agent unregister first' },
      );
    }
    await folder.writeSettings({ ...binding, keys, allowUnsigned });
    const done = async (): Promise<Registered | undefined> => {
      const certificate = await readCertificate(folder);
      if (certificate === undefined || !(await isKnown(folder, context, cluster))) return undefined;
      return { cluster, server: hub.server, folder: folder.path, expires: new Date(certificate.endsAt).toISOString() };
    };
    const present = await done();
    if (present !== undefined) return present;
    const api = await openApi({ env: { ...env, KUBECONFIG: path }, isForeign: true });
    if (api === undefined) throw new CurlewError('NOT_FOUND', `cannot read ${tokenFile}: it is gone`);
    for (let isSaid = false; ;) {
      const asked = await askForCertificate(folder, { api, signal, cluster }).catch(async (error: unknown) => {
        throw (await unknownToken(api, { cluster, tokenFile, signal })) ?? error;
      });
      if (asked.state === 'issued') {
        await keepCertificate(folder, asked, hub);
        const result = await done();
        if (result !== undefined) return result;
        throw new CurlewError(
          'CLUSTER_FAILED',
          `cannot register ${cluster}: the hub does not accept its own certificate`,
          { hint: 'the API server of the hub needs the authority of its signer in --client-ca-file' },
        );
      }
      const command = `curlew fleet accept ${cluster} --fingerprint ${asked.fingerprint} --yes`;
      if (!isSaid)
        report({ type: 'note', level: 'info', text: `waiting until the hub accepts ${asked.request}: ${command}` });
      isSaid = true;
      await pause(LOOK_MS * (0.5 + Math.random()), { signal });
    }
  },
);

async function changeKeys(
  folder: AgentFolder,
  { keys, allowUnsigned }: Pick<AgentSettings, 'keys' | 'allowUnsigned'>,
): Promise<Registered> {
  const before = await folder.read();
  const [certificate, kubeconfig] = [await readCertificate(folder), await folder.readKubeconfig()];
  if (certificate === undefined || kubeconfig === undefined) {
    const what = `cannot change the trusted keys: ${folder.kubeconfig} has no certificate of an agent`;
    throw new CurlewError('NOT_FOUND', what, { hint: 'add --token-file FILE, to register this site' });
  }
  await using _claim = await folder.claim();
  await folder.writeSettings({ ...before, keys, allowUnsigned });
  const expires = new Date(certificate.endsAt).toISOString();
  return { cluster: before.cluster, server: kubeconfig.hub.server, folder: folder.path, expires };
}

async function readKeys(
  paths: readonly string[],
  { cwd, allowUnsigned }: { readonly cwd: string; readonly allowUnsigned: boolean },
): Promise<readonly TrustedKey[]> {
  if (paths.length === 0 && !allowUnsigned) {
    throw new CurlewError('USAGE', 'cannot register: no key says whose content may run here', {
      hint: 'add --key FILE, the public key of who signs packages, or --allow-unsigned',
    });
  }
  const all = paths.map(async (path) =>
    readPublicKey((await readLimited(resolve(cwd, path), LIMIT)).toString('utf8'), path),
  );
  return Promise.all(all);
}

/** True if the hub knows the agent, and has accepted it. */
async function isKnown(folder: AgentFolder, { env, signal }: Context, cluster: string): Promise<boolean> {
  const api = await openApi({ env: { ...env, KUBECONFIG: folder.kubeconfig } });
  if (api === undefined) return false;
  const call = openCalls(api, { patienceMs: PATIENCE_MS, signal });
  const named = { namespace: namespaceOf(cluster), name: cluster };
  return getObject(call, resourceOf('Cluster'), named).then(
    (object) => object !== undefined,
    (error: unknown) => {
      requireRefusal(error, signal);
      return false;
    },
  );
}

async function unknownToken(
  api: KubeApi,
  {
    cluster,
    tokenFile,
    signal,
  }: { readonly cluster: string; readonly tokenFile: string; readonly signal: AbortSignal },
): Promise<CurlewError | undefined> {
  signal.throwIfAborted();
  const answer = await api.ask({ verb: 'get', path: apiPath`/version` }, { signal });
  if (answer.kind === 'answer' || answer.status !== 401) return undefined;
  const what = `cannot register ${cluster}: the hub does not know the token in ${tokenFile}: it has expired, or was used`;
  const hint = `get another one: curlew hub token ${cluster}, or curlew fleet accept ${cluster} --rejoin if it was accepted before`;
  return new CurlewError('AUTH_FAILED', what, { hint });
}
