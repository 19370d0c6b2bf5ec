/** Nodes whose cluster is a real API server: runs over small add-ons, and what they leave in its ConfigMaps. */
import { mkdir, symlink } from 'node:fs/promises';
import { openCluster, type NodeCluster } from '../../../src/runtime/cluster/cluster.ts';
import { bundleOf, type TestAddon } from '../../support/node-bundles.ts';
import { packagesOf, run, type Given } from '../../support/node-install.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { accepted } from '../../support/api-client.ts';
import type { ApiServer } from './api-server.ts';
import { oracle } from './programs.ts';
import type { RunResult } from '../../../src/runtime/run/run-result.ts';

const { signal } = new AbortController();

export interface Spec {
  readonly addons: readonly TestAddon[];
  readonly settings?: Readonly<Record<string, object>>;
  readonly adopt?: boolean;
  readonly patienceMs?: number;
}

/** A folder whose kubectl is the one that hooks find, in PATH. Afterwards the cluster is as it was. */
export async function boxOf(server: ApiServer): Promise<Tree> {
  const box = await tree();
  await mkdir(box.at('path'));
  await symlink(oracle('../api-server/kubectl'), box.at('path/kubectl'));
  return {
    ...box,
    [Symbol.asyncDispose]: async () => {
      await server.startAgain();
      await clear(server);
      await box[Symbol.asyncDispose]();
    },
  };
}

export function envOf(box: Tree, kubeconfig: string): Readonly<Record<string, string>> {
  return { PATH: `${box.at('path')}:${process.env['PATH'] ?? ''}`, HOME: box.path, KUBECONFIG: kubeconfig };
}

export function opens(box: Tree, server: Pick<ApiServer, 'kubeconfig'>, patienceMs = 1000) {
  return async (): Promise<NodeCluster | undefined> =>
    openCluster({ env: envOf(box, server.kubeconfig), patienceMs, signal });
}

export async function install(
  box: Tree,
  server: Pick<ApiServer, 'kubeconfig'>,
  { addons, settings = {}, adopt = false, patienceMs }: Spec,
  given: Given = {},
): Promise<RunResult> {
  const entries = addons.map(({ name, version, extra }) => {
    return [name, { entry: { version, ...settings[name] }, schema: extra?.settings }] as const;
  });
  return run(box, await packagesOf(bundleOf(addons)), {
    settings,
    env: { ...envOf(box, server.kubeconfig), TRACE: box.at('trace') },
    cluster: {
      find: opens(box, server, patienceMs),
      adopt,
      whole: true,
      release: 'v2026.11.21-0',
      entries: new Map(entries),
    },
    ...given,
  });
}

/** The paths of the API below a namespace. */
const IN = (namespace: string): string => `/api/v1/namespaces/${namespace}`;

export async function dataOf(
  { client }: ApiServer,
  name: string,
  namespace = 'kurl',
): Promise<Readonly<Record<string, string>>> {
  const { data } = accepted(await client.get(`${IN(namespace)}/configmaps/${name}`)) as {
    readonly data?: Readonly<Record<string, string>>;
  };
  return data ?? {};
}

/** The values of a Secret beside kURL's ConfigMaps, as they are written; undefined when there is none. */
export async function secretOf(
  { client }: ApiServer,
  name: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const reply = await client.get(`${IN('kurl')}/secrets/${name}`);
  if (reply.status === 404) return undefined;
  const { data = {} } = accepted(reply) as { readonly data?: Readonly<Record<string, string>> };
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, decoded(value)]));
}

/** Changes our own records in the cluster, as somebody else might. */
export async function patchRecords(
  { client }: ApiServer,
  data: Readonly<Record<string, string | null>>,
): Promise<void> {
  accepted(await client.merge(`${IN('kurl')}/configmaps/curlew-records`, { data }));
}

export const outcomes = ({ addons }: RunResult): readonly string[] =>
  addons.map(({ name, outcome }) => `${name} ${outcome}`).toSorted();
export const decoded = (text = ''): string => Buffer.from(text, 'base64').toString();
const CHANGING = ['curlew-records', 'kurl-current-config', 'kurl-last-config'];

export async function clear({ client }: ApiServer): Promise<void> {
  const paths = [
    ...CHANGING.map((name) => `${IN('kurl')}/configmaps/${name}`),
    ...CHANGING.slice(1).map((name) => `${IN('kurl')}/secrets/${name}`),
    `${IN('kube-system')}/configmaps/kurl-config`,
  ];
  for (const path of paths) {
    const reply = await client.remove(path);
    if (reply.status !== 404) accepted(reply);
  }
}
