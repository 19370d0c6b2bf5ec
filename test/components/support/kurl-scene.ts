/** A cluster's API server, an object store and two nodes for the add-ons of test/fixtures/kurl-addons, and what shows there. */
import { setTimeout as pause } from 'node:timers/promises';
import { join } from 'node:path';
import { executableFileName } from '../../../src/core/layout.ts';
import { tree } from '../../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer } from './api-server.ts';
import { built } from '../../support/built.ts';
import { OWN } from './executables.ts';
import { makeBundles } from './kurl-addons.ts';
import { startNode, type KurlNode } from './kurl-node.ts';
import { createOpened } from './opened.ts';
import { cannotRun, oracle, ROOT } from './programs.ts';
import { cannotServe, startS3 } from './s3-servers.ts';

export interface RunJson {
  readonly run: string;
  readonly addons: readonly { readonly name: string; readonly outcome: string }[];
  readonly messages: readonly { readonly addon: string; readonly text: string }[];
}

export interface KurlScene extends AsyncDisposable {
  /** Path of something in its folder: the bundles `first` and `second`, their installer specs, the store. */
  readonly at: (...parts: readonly string[]) => string;
  /** With Debian's containerd 1.6. */
  readonly primary: KurlNode;
  /** With containerd 2. */
  readonly joined: KurlNode;
  readonly kubectl: (args: readonly string[]) => Promise<string>;
  /** `http://127.0.0.1:<port>` */
  readonly objectStore: string;
}

const NEW_CONTAINERD = join(ROOT, '.curlew/tools/containerd-2');

/** Why there can be no such scene here, or undefined. */
export function cannotPlay(): string | undefined {
  const programs = ['containerd', 'ctr', 'unshare', 'nsenter', 'setpriv', 'openssl', 'dpkg-deb', 'gpg'];
  const made = [oracle('kustomize'), join(NEW_CONTAINERD, 'ctr'), built(executableFileName(OWN))];
  return cannotRun(...API_SERVER_PROGRAMS, ...programs, ...made) ?? cannotServe('moto');
}

export async function openKurlScene(): Promise<KurlScene> {
  const opened = createOpened();
  try {
    const box = opened.keep(await tree());
    const [server, store] = await Promise.all([
      startApiServer(box.at('server')).then(opened.keep),
      startS3('moto', box.at('s3')).then(opened.keep),
      makeBundles(box, [
        { file: 'first', versions: { containerd: '1.6.33', velero: '1.18.2' } },
        { file: 'second', versions: { containerd: '2.2.6', velero: '1.18.3' } },
      ]),
    ]);
    const { kubeconfig, kubectl } = server;
    return {
      at: box.at,
      kubectl,
      objectStore: store.url,
      primary: opened.keep(await startNode({ name: 'node-1', containerd: undefined, kubeconfig })),
      joined: opened.keep(await startNode({ name: 'node-2', containerd: NEW_CONTAINERD, kubeconfig })),
      [Symbol.asyncDispose]: opened.close,
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Runs a script of a bundle, which is unpacked for it as an operator would. */
export async function script(scene: KurlScene, node: KurlNode, bundle: string, words: string): Promise<RunJson> {
  const folder = `/srv/${bundle}`;
  await node.run(`mkdir -p ${folder} && tar -xzf ${scene.at(bundle, 'bundle.tar.gz')} -C ${folder}`);
  const text = await node.run(`cd /srv && ${folder}/${words} --hook-timeout 2m --json`);
  await node.run(`rm -rf ${folder}`);
  return JSON.parse(text) as RunJson;
}

/** The hooks of a run in the order in which they began. */
export async function hooksOf(node: KurlNode, { run }: RunJson): Promise<readonly string[]> {
  const text = await node.run(`cat /var/lib/curlew/runs/${run}/journal.jsonl`);
  return [...text.matchAll(/"type":"started","action":"hook ([^"]+)"/g)].map(([, name = '']) => name);
}

export function outcomesOf({ addons }: RunJson): Readonly<Record<string, string>> {
  return Object.fromEntries(addons.map(({ name, outcome }) => [name, outcome]));
}

/** One field of an object in the cluster. */
export async function field({ kubectl }: KurlScene, path: string, ...words: readonly string[]): Promise<string> {
  return kubectl(['get', ...words, '-o', `jsonpath={${path}}`]);
}

export async function secret(scene: KurlScene, namespace: string, name: string, key: string): Promise<string> {
  const text = await field(scene, `.data.${key.replaceAll('.', String.raw`\.`)}`, '-n', namespace, 'secret', name);
  return Buffer.from(text, 'base64').toString();
}

/** How often each workload was changed. */
export async function generations({ kubectl }: KurlScene): Promise<string> {
  const columns = 'custom-columns=NAME:.metadata.name,CHANGES:.metadata.generation';
  return kubectl(['get', 'deployments,daemonsets,cephclusters', '-A', '-o', columns]);
}

/** What a controller and nodes would do while something is done: the daemonset becomes ready once it is there. */
export async function withController<Result>({ kubectl }: KurlScene, doing: Promise<Result>): Promise<Result> {
  const done = new AbortController();
  const settled = doing.finally(() => {
    done.abort();
  });
  const play = async (): Promise<void> => {
    while (
      !done.signal.aborted &&
      (await kubectl(['get', 'daemonsets', '-A', '--ignore-not-found', '-o', 'name'])) === ''
    )
      await pause(100);
    const states = ['currentNumberScheduled', 'desiredNumberScheduled', 'numberReady', 'numberAvailable'];
    const status = Object.fromEntries([...states, 'updatedNumberScheduled'].map((name) => [name, 1]));
    const patch = JSON.stringify({ status: { ...status, numberMisscheduled: 0 } });
    const words = ['daemonset', 'kube-flannel-ds', '--subresource=status', '--type=merge', '-p', patch];
    if (!done.signal.aborted) await kubectl(['-n', 'kube-flannel', 'patch', ...words]);
  };
  const [result] = await Promise.all([settled, play()]);
  return result;
}
