/** Forty packages of which two have changed, on their way to a server of the S3 protocol: ours, a sync, and kURL's way. */
import { CopyObjectCommand, HeadObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { execa } from 'execa';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageFileName } from '../../src/core/layout.ts';
import { publishPackages } from '../../src/ship/release/publish.ts';
import type { PackageFileToPublish } from '../../src/ship/release/upload.ts';
import { createS3Store } from '../../src/ship/store/s3.ts';
import { oracle } from '../components/support/programs.ts';
import { BUCKET, startS3 } from '../components/support/s3-servers.ts';
import { noReport } from '../support/context.ts';
import { noise, writePackage } from '../support/packages.ts';
import { startS3Proxy, type S3Request } from '../support/s3-proxy.ts';
import { rcloneEnvironment } from './upload.ts';

export const PACKAGES = 40;
export const CHANGED = 2;
const PACKAGE_SIZE = 1_000_000;
const JOBS = 4;
/** Delay of each request: servers are seldom in the same room. */
export const DELAY_MS = 20;

export interface PublishWay {
  readonly name: string;
  readonly seconds: number;
  readonly log: readonly S3Request[];
}

/** What a way does with the packages as they were, and as they are now. */
interface Way {
  readonly name: string;
  readonly first: (endpoint: string) => Promise<void>;
  readonly second: (endpoint: string) => Promise<void>;
}

interface Sets {
  readonly old: readonly PackageFileToPublish[];
  readonly changed: readonly PackageFileToPublish[];
  /** Folders with all packages under their names. */
  readonly folders: { readonly old: string; readonly now: string };
}

async function makeSets(root: string): Promise<Sets> {
  const folders = { old: join(root, 'old'), now: join(root, 'now') };
  await mkdir(folders.old, { recursive: true });
  await mkdir(folders.now);
  const made = async (folder: string, at: number, content: string): Promise<PackageFileToPublish> => {
    const path = join(folder, packageFileName({ name: `p${at}`, version: '1' }, 'amd64'));
    const files = [
      { path: 'install.sh', data: `${content} ${at}` },
      { path: 'assets/blob', data: noise(PACKAGE_SIZE, at + 1) },
    ];
    return { path, addon: await writePackage(path, `p${at}`, '1', files), inputs: { at, content } };
  };
  const numbers = Array.from({ length: PACKAGES }, (_, at) => at);
  const old = await Promise.all(numbers.map(async (at) => made(folders.old, at, 'old')));
  for (const at of numbers) {
    const name = packageFileName({ name: `p${at}`, version: '1' }, 'amd64');
    await copyFile(join(folders.old, name), join(folders.now, name));
  }
  const changed = await Promise.all(numbers.slice(0, CHANGED).map(async (at) => made(folders.now, at, 'new')));
  return { old, changed, folders };
}

function ours({ old, changed }: Sets): Way {
  const publish = async (endpoint: string, files: readonly PackageFileToPublish[], release: string): Promise<void> => {
    const { signal } = new AbortController();
    const store = createS3Store(`s3://${BUCKET}/ours`, { endpoint, report: noReport });
    const options = { now: new Date(), carry: true, commit: 'abc1234', jobs: JOBS, report: noReport, signal };
    await publishPackages(files, { store, release, ...options });
  };
  return {
    name: 'curlew publish: a new release; the old one stays',
    first: async (endpoint) => publish(endpoint, old, 'v1'),
    second: async (endpoint) => publish(endpoint, changed, 'v2'),
  };
}

/** Works like `aws s3 sync`: one listing, then whatever differs by size or content. */
function sync({ folders }: Sets, name: string, place: (round: string) => string): Way {
  const run = async (endpoint: string, folder: string, to: string): Promise<void> => {
    await execa('timeout', ['300', oracle('rclone'), 'sync', '--checksum', folder, `bench:${BUCKET}/${to}`], {
      env: rcloneEnvironment(endpoint),
    });
  };
  return {
    name,
    first: async (endpoint) => run(endpoint, folders.old, place('v1')),
    second: async (endpoint) => run(endpoint, folders.now, place('v2')),
  };
}

/** kURL's upload of a release: a look at each package, one after the other, then copies and uploads, one after the other. */
function kurl({ folders }: Sets): Way {
  const run = async (endpoint: string, folder: string, release: string, isChanged: (at: number) => boolean) => {
    const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
    const exists = async (Key: string): Promise<boolean> =>
      client.send(new HeadObjectCommand({ Bucket: BUCKET, Key })).then(
        () => true,
        () => false,
      );
    for (let at = 0; at < PACKAGES; at += 1) {
      const file = packageFileName({ name: `p${at}`, version: '1' }, 'amd64');
      const [plain, versioned] = [`kurl/${file}`, `kurl/${release}/${file}`];
      const known = await exists(plain);
      if (!known || isChanged(at)) {
        const Body = await readFile(join(folder, file));
        const Metadata = { gitsha: 'abc1234' };
        await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: versioned, Body, Metadata }));
        await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: plain, Body, Metadata }));
      } else if (!(await exists(versioned))) {
        const CopySource = `${BUCKET}/${plain}`;
        await client.send(new CopyObjectCommand({ Bucket: BUCKET, Key: versioned, CopySource }));
      }
    }
    client.destroy();
  };
  return {
    name: 'kURL: a check of each, one after the other',
    first: async (endpoint) => run(endpoint, folders.old, 'v1', () => true),
    second: async (endpoint) => run(endpoint, folders.now, 'v2', (at) => at < CHANGED),
  };
}

/** Runs each way once, on a bucket that has the first release, and notes what the server was asked for the second. */
export async function comparePublishing(root: string): Promise<readonly PublishWay[]> {
  const sets = await makeSets(join(root, 'packages'));
  await mkdir(join(root, 'server'));
  await using server = await startS3('versitygw', join(root, 'server'));
  await using proxy = await startS3Proxy(server.url, { delayMs: DELAY_MS });
  const ways = [
    ours(sets),
    sync(sets, 'sync into the same folder: no releases', () => 'sync'),
    sync(sets, "sync into a new release's folder", (release) => `synced/${release}`),
    kurl(sets),
  ];
  const rows: PublishWay[] = [];
  for (const { name, first, second } of ways) {
    await first(server.url);
    const before = proxy.log.length;
    const start = process.hrtime.bigint();
    await second(proxy.url);
    const seconds = Number(process.hrtime.bigint() - start) / 1e9;
    rows.push({ name, seconds, log: proxy.log.slice(before) });
  }
  return rows;
}
