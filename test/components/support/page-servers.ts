/** Servers of the machine on which a page is run: a web server, S3 and a cluster, at the addresses that pages name. */
import { chmod, copyFile, writeFile } from 'node:fs/promises';
import { tree, type Tree } from '../../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './api-server.ts';
import { makeClientAuthority, MANAGER } from './client-authority.ts';
import type { Machine } from './page-machine.ts';
import { oracle } from './programs.ts';
import { S3_KEYS } from './s3-servers.ts';

/** What `startWeb` needs. */
export const WEB_PROGRAM = '/usr/sbin/nginx';
/** What `startBuckets` needs. */
export const S3_PROGRAM: string = oracle('versitygw');
/** What `startCluster` needs. */
export const CLUSTER_PROGRAMS = API_SERVER_PROGRAMS;
/** What `startHub` needs. */
export const HUB_PROGRAMS: readonly string[] = [...CLUSTER_PROGRAMS, MANAGER];
/** Environment of a machine whose programs find its buckets without another option. */
export const S3_ENVIRONMENT = { ...S3_KEYS, AWS_ENDPOINT_URL: 'http://127.0.0.1:9000' };

/** Serves a folder of the machine at `https://HOST/`, for each of these hosts, which the machine must have. */
export async function startWeb(machine: Machine, folders: Readonly<Record<string, string>>): Promise<void> {
  const servers = Object.entries(folders).map(
    ([host, folder]) =>
      `server { listen 127.0.0.1:443 ssl; server_name ${host}; root ${folder};
    ssl_certificate /etc/page.crt; ssl_certificate_key /etc/page.key; }`,
  );
  const config = `daemon off; user root; pid /run/nginx.pid;
events { worker_connections 256; }
http {
  access_log off; default_type application/octet-stream;
  ${servers.join('\n  ')}
}
`;
  await writeFile(machine.at('/run/nginx.conf'), config);
  await machine.run('mkdir -p /var/log/nginx /var/lib/nginx');
  await machine.start(`${WEB_PROGRAM} -c /run/nginx.conf -e stderr`, 'exec 7<>/dev/tcp/127.0.0.1/443');
}

/** Starts S3 with these buckets, at the address of `S3_ENVIRONMENT`; with `tls`, at port 443 of the machine's hosts. */
export async function startBuckets(
  machine: Machine,
  buckets: readonly string[],
  { tls = false }: { readonly tls?: boolean } = {},
): Promise<void> {
  const port = tls ? 443 : 9000;
  const certificate = tls ? 'export VGW_KEY=/etc/page.key VGW_CERT=/etc/page.crt' : 'true';
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = S3_KEYS;
  await machine.run(`mkdir -p /var/s3/side ${buckets.map((bucket) => `/var/s3/data/${bucket}`).join(' ')}`);
  await machine.start(
    `${certificate}; export ROOT_ACCESS_KEY=${id} ROOT_SECRET_KEY=${secret}
exec '${S3_PROGRAM}' --quiet --port 127.0.0.1:${port} posix --sidecar /var/s3/side /var/s3/data`,
    `exec 7<>/dev/tcp/127.0.0.1/${port}`,
  );
}

/** Starts a registry at port 443 of the machine's hosts; its storage, which may be filled before, is `/var/registry/storage`. */
export async function startImages(machine: Machine): Promise<void> {
  const settings = {
    version: '0.1',
    storage: { filesystem: { rootdirectory: '/var/registry/storage' } },
    http: { addr: '127.0.0.1:443', tls: { certificate: '/etc/page.crt', key: '/etc/page.key' } },
  };
  await writeFile(machine.at('/etc/registry.json'), JSON.stringify(settings));
  await machine.start('exec docker-registry serve /etc/registry.json', 'exec 7<>/dev/tcp/127.0.0.1/443');
}

/** Starts a cluster's API server, with `~/.kube/config` for it. */
export async function startCluster(machine: Machine): Promise<ApiServer> {
  const box = await tree();
  return withKubeconfig(machine, box, await startApiServer(box.path, { within: machine.network }));
}

/** The same at `https://NAME:6443`, whose users may be agents with certificates and tokens. */
export async function startHub(machine: Machine, name: string): Promise<ApiServer> {
  const box = await tree();
  const authority = await makeClientAuthority(box.path, machine.network);
  const address = { name, port: 6443 };
  const hub = await startApiServer(box.path, { options: authority.options, within: machine.network, address });
  const signer = await authority.startSigner(hub.kubeconfig);
  const cluster = await withKubeconfig(machine, box, hub);
  return {
    ...cluster,
    [Symbol.asyncDispose]: async () => {
      await signer[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
    },
  };
}

async function withKubeconfig(machine: Machine, box: Tree, server: ApiServer): Promise<ApiServer> {
  await machine.run(`mkdir -p ~/.kube && ln -sf '${oracle('../api-server/kubectl')}' /run/bin/kubectl`);
  await copyFile(server.kubeconfig, machine.at('/run/kubeconfig'));
  await chmod(machine.at('/run/kubeconfig'), 0o644);
  await machine.run('(umask 77 && cp /run/kubeconfig ~/.kube/config) && rm -f /run/kubeconfig');
  return {
    ...server,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}
