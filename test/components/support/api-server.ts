/** A real API server over a real etcd, on loopback ports of its own, with certificates of its own. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { apiClient, type ApiClient } from '../../support/api-client.ts';
import { makeCertificate } from '../../support/tls.ts';
import { freePort } from '../../support/ports.ts';
import { startDaemon, type Daemon } from './daemon.ts';
import { borrow } from '../../runner/lent.ts';
import { oracle, run } from './programs.ts';

export interface ApiServer extends AsyncDisposable {
  /** Path of a kubeconfig with the rights of an administrator. */
  readonly kubeconfig: string;
  /** The address in it. */
  readonly url: string;
  /** The same requests for a fortieth of what a kubectl costs. */
  readonly client: ApiClient;
  /** Output of kubectl; a failure throws. */
  readonly kubectl: (args: readonly string[], input?: string) => Promise<string>;
  /** Ends the API server at once, as the OOM killer does; etcd lives on. */
  readonly kill: () => Promise<void>;
  /** Starts it again, on the same port and over the same etcd; another program is another version of Kubernetes. */
  readonly startAgain: (program?: string) => Promise<void>;
}

const TOKEN = 'test-token-of-the-administrator';

/** Why there can be no API server here, or undefined. */
export const API_SERVER_PROGRAMS: readonly string[] = [
  'etcd',
  oracle('../api-server/kube-apiserver'),
  oracle('../api-server/kubectl'),
];

/** Memory for processor time: Go collects its garbage when the heap has grown to five times what is in use, not to twice. */
const COLLECT_LATER = { GOGC: '400' };

async function startEtcd(folder: string, within: readonly string[]): Promise<Daemon & { readonly url: string }> {
  const [client, peer] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const [command, ...before] = [...within, 'etcd'];
  const logFile = join(folder, 'etcd.log');
  const daemon = await startDaemon({
    command,
    args: [
      before,
      ['--name', 'test', '--data-dir', join(folder, 'etcd')],
      ['--listen-client-urls', url, '--advertise-client-urls', url],
      ['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
      ['--initial-cluster', `test=${peerUrl}`, '--unsafe-no-fsync'],
    ].flat(),
    logFile,
    env: COLLECT_LATER,
    ready: async () => (await readFile(logFile, 'utf8')).includes('ready to serve client requests'),
  });
  return { ...daemon, url };
}

/** Certificates, keys and the tokens of its users; all below the folder. */
async function writeSecrets(folder: string, name = 'localhost'): Promise<{ readonly ca: string }> {
  const { key, cert, ca } = await makeCertificate([name, 'kubernetes']);
  const accounts = await generate([{ name: 'commonName', value: 'service accounts' }], { keyType: 'rsa' });
  await writeFile(join(folder, 'server.key'), key, { mode: 0o600 });
  await writeFile(join(folder, 'server.crt'), cert);
  await writeFile(join(folder, 'accounts.key'), accounts.private, { mode: 0o600 });
  await writeFile(join(folder, 'tokens.csv'), `${TOKEN},admin,admin,system:masters\n`, { mode: 0o600 });
  return { ca };
}

/** The API server of the minor before, which only `--all` makes. */
export const OLDER_API_SERVER: string = oracle('../kubernetes-1.35/kube-apiserver');

export interface ApiServerOptions {
  /** Further ones of the API server. */
  readonly options?: readonly string[];
  /** Another version of it. */
  readonly first?: string;
  /** What starts a program in another network, as of a page's machine: `nsenter --net=…`. */
  readonly within?: readonly string[];
  /** A name and a port that it has besides 127.0.0.1 and instead of a free port. */
  readonly address?: { readonly name: string; readonly port: number };
}

/** An API server of whoever started it. */
export interface OwnApiServer extends ApiServer {
  readonly etcdUrl: string;
}

/**
 * An API server in which nothing is yet, for this caller alone; its files are below `folder`, which is made if need be. One that
 * needs no options is lent by the run of the tests, if there is one.
 */
export async function startApiServer(folder: string, options: ApiServerOptions = {}): Promise<ApiServer> {
  const lent = Object.keys(options).length === 0 ? await borrow('api-server') : undefined;
  if (lent === undefined) return ownApiServer(folder, options);
  const { url, kubeconfig: text } = lent.about as Pick<ApiServer, 'url' | 'kubeconfig'>;
  const kubeconfig = join(folder, 'admin.conf');
  await mkdir(folder, { recursive: true });
  await writeFile(kubeconfig, text, { mode: 0o600 });
  return {
    kubeconfig,
    url,
    client: apiClient(text),
    kubectl: kubectlOf(kubeconfig, folder, []),
    kill: async () => lent.call('kill'),
    startAgain: async (program) => {
      if (program !== undefined) throw new Error('another version of the API server needs one of its own');
      await lent.call('startAgain');
    },
    [Symbol.asyncDispose]: async () => lent[Symbol.asyncDispose](),
  };
}

function kubectlOf(kubeconfig: string, folder: string, within: readonly string[]): ApiServer['kubectl'] {
  const [program, ...before] = [...within, oracle('../api-server/kubectl')];
  return async (args, input) => {
    const env = { KUBECONFIG: kubeconfig, HOME: folder };
    return run(program, [...before, ...args], input === undefined ? { env } : { env, input });
  };
}

/** Starts both below `folder`, which is made if need be; 10 to 20 seconds. */
export async function ownApiServer(
  folder: string,
  { options = [], first = oracle('../api-server/kube-apiserver'), within = [], address }: ApiServerOptions = {},
): Promise<OwnApiServer> {
  await mkdir(folder, { recursive: true });
  const etcd = await startEtcd(folder, within);
  const port = address?.port ?? (await freePort());
  const url = `https://127.0.0.1:${port}`;
  const { ca } = await writeSecrets(folder, address?.name);
  const kubeconfig = join(folder, 'admin.conf');
  const text = kubeconfigText(url, ca);
  await writeFile(kubeconfig, text, { mode: 0o600 });
  const kubectl = kubectlOf(kubeconfig, folder, within);
  // A kubectl costs as much as forty requests, and cannot be done without only where its network is another one.
  const client = apiClient(text);
  const answers = async (): Promise<boolean> =>
    within.length === 0
      ? (await client.get('/api/v1/namespaces/kube-system')).status === 200
      : (await kubectl(['get', 'namespace', 'kube-system'])) !== '';
  const start = async (version: string): Promise<Daemon> =>
    startDaemon({
      command: within[0] ?? version,
      args: [
        within.length === 0 ? [] : [...within.slice(1), version],
        ['--bind-address', '127.0.0.1', '--advertise-address', '127.0.0.1', '--secure-port', String(port)],
        ['--etcd-servers', etcd.url, '--cert-dir', folder, '--token-auth-file', join(folder, 'tokens.csv')],
        ['--tls-cert-file', join(folder, 'server.crt'), '--tls-private-key-file', join(folder, 'server.key')],
        ['--service-account-issuer', 'https://kubernetes.default.svc', '--service-cluster-ip-range', '10.96.0.0/22'],
        ['--service-account-key-file', join(folder, 'accounts.key')],
        ['--service-account-signing-key-file', join(folder, 'accounts.key'), '--authorization-mode', 'RBAC'],
        ['--endpoint-reconciler-type', 'none', '--shutdown-delay-duration', '0s'],
        options,
      ].flat(),
      logFile: join(folder, 'apiserver.log'),
      env: COLLECT_LATER,
      ready: answers,
      limitMs: 120_000,
    });
  let server: Daemon | undefined;
  const stop = async (): Promise<void> => {
    await server?.[Symbol.asyncDispose]();
    await etcd[Symbol.asyncDispose]();
  };
  try {
    server = await start(first);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    kubeconfig,
    url,
    etcdUrl: etcd.url,
    client,
    kubectl,
    kill: async () => {
      if (server === undefined) return;
      process.kill(server.pid, 'SIGKILL');
      await server[Symbol.asyncDispose]();
      server = undefined;
    },
    startAgain: async (version = first) => {
      server ??= await start(version);
    },
    [Symbol.asyncDispose]: stop,
  };
}

function kubeconfigText(server: string, ca: string): string {
  // JSON is YAML.
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'admin', user: { token: TOKEN } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    'current-context': 'test',
  });
}
