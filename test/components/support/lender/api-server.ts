/** An API server that is lent to one file of tests after another. */
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { apiClient } from '../../../support/api-client.ts';
import { tree } from '../../../support/tree.ts';
import { ownApiServer } from '../api-server.ts';
import { readKeys, restoreKeys } from '../etcd-keys.ts';
import type { Server } from '../../../runner/stock.ts';

/** The time that a start has. */
const LIMIT_MS = 120_000;

/** What the API server writes by itself, over and over, and no test changes. */
const OWN = [
  'leases/kube-system/apiserver-',
  'masterleases/',
  'peerserverleases/',
  'flowschemas/',
  'prioritylevelconfigurations/',
];

function counts(key: string): boolean {
  return !OWN.some((prefix) => key.startsWith(`/registry/${prefix}`));
}

export async function lendApiServer(): Promise<Server> {
  const box = await tree();
  const server = await ownApiServer(box.path);
  const kubeconfig = await readFile(server.kubeconfig, 'utf8');
  const client = apiClient(kubeconfig);
  const isReady = async (): Promise<boolean> => (await client.get('/readyz').catch(() => undefined))?.status === 200;
  const seen = async (): Promise<string> => JSON.stringify(await Promise.all(SHOWN.map(async (path) => shown(path))));
  const shown = async (path: string): Promise<unknown> => {
    const { body } = await client.get(path);
    return path === '/apis' ? body : namesOf(body);
  };
  await until('it is ready', isReady);
  // What it makes last by itself.
  await until(
    'it has a service',
    async () => (await client.get('/api/v1/namespaces/default/services/kubernetes')).status === 200,
  );
  const before = await readKeys(server.etcdUrl, counts);
  const seenBefore = await seen();
  return {
    about: { url: server.url, kubeconfig },
    calls: { kill: server.kill, startAgain: async () => server.startAgain() },
    check: async () => {
      if (!(await isReady())) throw new Error('the API server is not ready');
    },
    restore: async () => {
      // A server that was killed may never get ready over what is left, such as a webhook that refuses what it writes first.
      await restoreKeys(server.etcdUrl, before, counts);
      await server.startAgain();
      await until('it is ready', isReady);
      // What is removed may be a reason for the API server to write something itself.
      let calm = 0;
      await until('nothing is left', async () => {
        calm = (await restoreKeys(server.etcdUrl, before, counts)) === 0 ? calm + 1 : 0;
        return calm > 1 && (await seen()) === seenBefore;
      });
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

/** What a user of it sees first, and what the API server itself follows last. */
const SHOWN: readonly string[] = [
  '/apis',
  '/api/v1/namespaces',
  '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  '/apis/apiregistration.k8s.io/v1/apiservices',
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
];

function namesOf(body: object): readonly string[] {
  const { items = [] } = body as { readonly items?: readonly { readonly metadata: { readonly name: string } }[] };
  return items.map(({ metadata }) => metadata.name).toSorted();
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const limit = Date.now() + LIMIT_MS;
  while (!(await isSo())) {
    if (Date.now() > limit) throw new Error(`the API server: not after ${LIMIT_MS} ms: ${what}`);
    await pause(50);
  }
}
