/** Servers that speak the S3 protocol, each with one empty bucket. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { suite, type Suite } from '../../support/suite.ts';
import type { TestCertificate } from '../../support/tls.ts';
import { freePort } from '../../support/ports.ts';
import { leftToOtherRuns } from '../../support/sweep.ts';
import { startDaemon, type Daemon } from './daemon.ts';
import { oracle, ROOT } from './programs.ts';

export const S3_KEYS = { AWS_ACCESS_KEY_ID: 'testaccess', AWS_SECRET_ACCESS_KEY: 'testsecret12' };
export const BUCKET = 'addons.example';

export interface S3Server extends Daemon {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
}

interface Kind {
  readonly program: string;
  readonly args: (folder: string, host: string, ports: readonly number[]) => readonly string[];
  /** Ports that it needs besides its own. */
  readonly morePorts?: number;
  /** Makes the bucket on servers that do not keep buckets as folders; false as long as it cannot. */
  readonly makeBucket?: (url: string, ports: readonly number[]) => Promise<boolean>;
  readonly env?: Readonly<Record<string, string>>;
  /** Honours conditions of writes. */
  readonly conditions: boolean;
  /** Keeps two writers apart also when both come at the same moment. */
  readonly exclusive: boolean;
  /**
   * Keeps two listings of a folder whose first files arrive at once, so that uploads in parts that began in one of them are
   * missing in the other and cannot be completed: status 500, however often they are asked to be.
   */
  readonly racesForFolders?: boolean;
  /** Parts that are copied have no checksums. */
  readonly plainCopies?: boolean;
  /** Lists the uploads of a key, not those of a prefix; a timer of its own removes old ones. */
  readonly hidesUploads?: boolean;
}

const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = S3_KEYS;

/** Options of SeaweedFS for its ports besides that of S3; the first is where buckets are folders. */
const SEAWEEDFS_PORTS = [
  'filer.port',
  'filer.port.grpc',
  'master.port',
  'master.port.grpc',
  'volume.port',
  'volume.port.grpc',
  's3.port.grpc',
  's3.port.lance',
  's3.port.iceberg',
] as const;

export const S3_SERVERS = {
  versitygw: {
    program: oracle('versitygw'),
    args: (folder, host) => [
      '--quiet',
      '--port',
      host,
      'posix',
      '--sidecar',
      join(folder, 'side'),
      join(folder, 'data'),
    ],
    env: { ROOT_ACCESS_KEY: id, ROOT_SECRET_KEY: secret },
    conditions: true,
    exclusive: true,
  },
  rclone: {
    program: oracle('rclone'),
    args: (folder, host) =>
      [
        ['serve', 's3', '--config', '/dev/null', '--cache-dir', join(folder, 'cache')],
        ['--addr', host, '--auth-key', `${id},${secret}`, join(folder, 'data')],
      ].flat(),
    conditions: false,
    exclusive: false,
    racesForFolders: true,
  },
  moto: {
    program: join(ROOT, '.curlew/tools/moto/bin/moto_server'),
    args: (_, host) => ['-H', '127.0.0.1', '-p', host.slice(host.indexOf(':') + 1)],
    conditions: true,
    exclusive: false,
    makeBucket: async (url) => (await fetch(`${url}/${BUCKET}`, { method: 'PUT' })).ok,
  },
  minio: {
    program: oracle('minio'),
    args: (folder, host) => ['server', '--quiet', '--address', host, join(folder, 'data')],
    env: { MINIO_ROOT_USER: id, MINIO_ROOT_PASSWORD: secret, MINIO_BROWSER: 'off' },
    conditions: true,
    exclusive: true,
    plainCopies: true,
    hidesUploads: true,
  },
  seaweedfs: {
    program: oracle('weed'),
    args: (folder, host, ports) => {
      const [ip, port] = host.split(':');
      const named = SEAWEEDFS_PORTS.map((name, at) => `-${name}=${ports[at]}`);
      const parts = [
        `-ip=${ip}`,
        `-ip.bind=${ip}`,
        `-dir=${join(folder, 'data')}`,
        '-filer',
        '-s3',
        `-s3.port=${port}`,
      ];
      const sockets = ['filer', 's3'].map((name) => `-${name}.localSocket=${join(folder, `${name}.sock`)}`);
      return ['server', ...parts, ...named, ...sockets, '-master.telemetry=false'];
    },
    morePorts: SEAWEEDFS_PORTS.length,
    // A file in the bucket can be written once a volume is there.
    makeBucket: async (_, [filer]) => {
      const probe = `http://127.0.0.1:${filer}/buckets/${BUCKET}/.probe`;
      const body = new FormData();
      body.set('file', new Blob(['x']));
      const { ok } = await fetch(probe, { method: 'POST', body });
      return ok && (await fetch(probe, { method: 'DELETE' })).ok;
    },
    conditions: true,
    exclusive: true,
  },
} satisfies Record<string, Kind>;

export type S3ServerName = keyof typeof S3_SERVERS;

/** What is special about this server. */
export function s3Kind(name: S3ServerName): Kind {
  return S3_SERVERS[name];
}

/** Why this server cannot be started here, or undefined when it can. */
export function cannotServe(name: S3ServerName): string | undefined {
  return existsSync(S3_SERVERS[name].program) ? undefined : `missing: scripts/tools ${name}`;
}

/** Why this run leaves a suite over this server to others, or undefined; a run takes one of those that can be started here. */
export function leftOut(name: S3ServerName, oneOf: readonly S3ServerName[]): string | undefined {
  const present = oneOf.filter((one) => cannotServe(one) === undefined);
  return cannotServe(name) ?? leftToOtherRuns(name, present);
}

/**
 * A suite over this server; undefined where the server cannot be started, or where a run takes one of several and this is not
 * the one, which then counts as skipped.
 */
export function s3Suite(name: S3ServerName, title: string, oneOf: readonly S3ServerName[]): Suite | undefined {
  const test = suite(title, { timeoutMs: 120_000 });
  const reason = leftOut(name, oneOf);
  if (reason === undefined) return test;
  test.skip('everything', reason);
  test.run();
  return undefined;
}

/**
 * Starts a server on a free port of loopback, with its data in `folder`; with a certificate, versitygw speaks TLS.
 * `prefixes` are those whose first objects the test uploads in parts at the same time. Credentials go into this process'
 * variables.
 */
export async function startS3(
  name: S3ServerName,
  folder: string,
  { tls, prefixes = [] }: { readonly tls?: TestCertificate; readonly prefixes?: readonly string[] } = {},
): Promise<S3Server> {
  const { program, args, env = {}, racesForFolders = false, morePorts = 0, makeBucket } = s3Kind(name);
  // Makes a bucket on servers that keep buckets as folders.
  for (const prefix of racesForFolders ? ['', ...prefixes] : ['']) {
    await mkdir(join(folder, 'data', BUCKET, prefix), { recursive: true });
  }
  await mkdir(join(folder, 'side'), { recursive: true });
  Object.assign(process.env, S3_KEYS);
  const host = `127.0.0.1:${await freePort()}`;
  const url = `${tls === undefined ? 'http' : 'https'}://${host}`;
  const ports = await Promise.all(Array.from({ length: morePorts }, freePort));
  const files = tls === undefined ? {} : await tlsFiles(folder, tls);
  const daemon = await startDaemon({
    command: program,
    args: args(folder, host, ports),
    logFile: join(folder, `${name}.log`),
    env: { ...env, ...files },
    ready: async () => {
      const answers = tls === undefined ? (await fetch(url)).status > 0 : await isListening(host);
      return answers && (makeBucket === undefined || makeBucket(url, ports));
    },
  });
  return { ...daemon, url };
}

async function tlsFiles(folder: string, { key, cert }: TestCertificate): Promise<Readonly<Record<string, string>>> {
  const [VGW_KEY, VGW_CERT] = [join(folder, 'server.key'), join(folder, 'server.crt')];
  await writeFile(VGW_KEY, key);
  await writeFile(VGW_CERT, cert);
  return { VGW_KEY, VGW_CERT };
}

async function isListening(host: string): Promise<boolean> {
  const [name = '', port] = host.split(':');
  const socket = connect(Number(port), name);
  try {
    await once(socket, 'connect');
    return true;
  } finally {
    socket.destroy();
  }
}
