/** A hub in this process that signs what is approved, and sites that register at it. */
import { writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { registerAgent, type Registered } from '../../src/app/agent-register.ts';
import { makeHubToken } from '../../src/app/hub-token.ts';
import type { Context } from '../../src/core/context.ts';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { apiClient, textAt, type ApiClient } from './api-client.ts';
import { startMemoryApiServer, type MemoryApiOptions } from './api-server/server.ts';
import { signApproved } from './hub-signer.ts';
import { openHubScene, type HubScene } from './hub-scene.ts';
import { makeCertificate } from './tls.ts';
import { tree, type Tree } from './tree.ts';

const certificate = await makeCertificate();
const RBAC = '/apis/rbac.authorization.k8s.io/v1';

export interface Site {
  /** Settles when it is accepted or not. */
  readonly done: Promise<Registered>;
  /** What it has reported; the last note names the command of the hub. */
  readonly notes: readonly string[];
  /** Its key, as it was shown. */
  readonly fingerprint: () => string;
  readonly stop: () => void;
}

export interface RegistrationScene extends AsyncDisposable {
  readonly box: Tree;
  readonly hub: HubScene;
  readonly client: ApiClient;
  readonly context: Context;
  /** What may be given to use cases about the hub. */
  readonly kubeconfig: string;
  /** A file with a token for the cluster. */
  readonly token: (cluster: string, file?: string) => Promise<string>;
  /** A site below a folder of this name that registers. */
  readonly site: (root: string, tokenFile: string) => Site;
  /** Names of the Secrets of tokens. */
  readonly tokens: () => Promise<readonly string[]>;
}

interface RegistrationOptions extends MemoryApiOptions {
  readonly signs?: () => boolean;
  /** Kubeconfig of a server that has its own signer, in place of one in this process. */
  readonly server?: string;
}

export async function registrationScene({
  server: given,
  signs = () => given === undefined,
  ...options
}: RegistrationOptions = {}): Promise<RegistrationScene> {
  const box = await tree();
  const own = given === undefined ? await startMemoryApiServer({ certificate, users: true, ...options }) : undefined;
  const server = { kubeconfig: given ?? own?.kubeconfig ?? '' };
  const client = apiClient(server.kubeconfig);
  const hub = await openHubScene(server.kubeconfig);
  const rights = hubManifests().filter(({ kind }) => kind === 'ClusterRoleBinding');
  for (const one of rights) await client.create(`${RBAC}/clusterrolebindings`, one);
  const ended = new AbortController();
  const signing = (async (): Promise<void> => {
    while (!ended.signal.aborted) {
      if (signs()) await signApproved(client);
      await wait(50);
    }
  })();
  const context: Context = { signal: ended.signal, report: () => undefined, env: {}, cwd: box.path };
  const kubeconfig = 'hub.conf';
  await writeFile(box.at(kubeconfig), server.kubeconfig);
  return {
    box,
    hub,
    client,
    context,
    kubeconfig,
    token: async (cluster, out = `${cluster}.token`) =>
      (await makeHubToken({ cluster, kubeconfig, out }, context)).file,
    site: (root, tokenFile) => {
      const stopped = new AbortController();
      const notes: string[] = [];
      const own: Context = {
        ...context,
        signal: stopped.signal,
        report: (event) => void (event.type === 'note' && notes.push(event.text)),
      };
      const done = registerAgent({ tokenFile, root, allowUnsigned: true }, own);
      done.catch(() => undefined);
      const fingerprint = (): string => /SHA256:\S+/.exec(notes.join(' '))?.[0] ?? '';
      return { done, notes, fingerprint, stop: () => stopped.abort(new Error('stopped')) };
    },
    tokens: async () => {
      const { body } = await client.get('/api/v1/namespaces/kube-system/secrets');
      return (body['items'] as readonly { readonly metadata: object }[]).map((one) =>
        textAt(one as never, 'metadata.name'),
      );
    },
    [Symbol.asyncDispose]: async () => {
      ended.abort();
      await signing;
      await hub[Symbol.asyncDispose]();
      await own?.[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}
