/** One large package into a server of the S3 protocol, beside rclone's copy of the same file to the same server. */
import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { BUCKET, S3_KEYS, startS3 } from '../components/support/s3-servers.ts';
import { oracle, ROOT } from '../components/support/programs.ts';
import { noise } from '../support/packages.ts';
import { rssTarget, type Options } from './images.ts';
import { measure, pairwise, spread, type Sample } from './measure.ts';
import { figure, range, type Section } from './report.ts';

const MB = 1_000_000;

export interface UploadOptions extends Options {
  /** Size of the package. */
  readonly megabytes: number;
}

/** `rclone` with `bench:` as the server; variables, because names of servers on the command line hide credentials badly. */
export function rcloneEnvironment(url: string): Readonly<Record<string, string>> {
  const settings = {
    TYPE: 's3',
    PROVIDER: 'Other',
    ENDPOINT: url,
    ACCESS_KEY_ID: S3_KEYS.AWS_ACCESS_KEY_ID,
    SECRET_ACCESS_KEY: S3_KEYS.AWS_SECRET_ACCESS_KEY,
    REGION: 'us-east-1',
    FORCE_PATH_STYLE: 'true',
    // Otherwise it asks for the bucket to be made, and waits for minutes when that is refused.
    NO_CHECK_BUCKET: 'true',
  };
  const variables = Object.entries(settings).map(([name, value]) => [`RCLONE_CONFIG_BENCH_${name}`, value] as const);
  return { RCLONE_CONFIG: '/dev/null', ...Object.fromEntries(variables) };
}

async function writeNoise(path: string, megabytes: number): Promise<void> {
  const block = noise(MB, 7);
  await pipeline(function* () {
    for (let at = 0; at < megabytes; at += 1) {
      block.writeUInt32LE(at, 0);
      yield Buffer.from(block);
    }
  }, createWriteStream(path));
}

/** What publishing does with one package that has changed, in the built program. */
const UPLOAD = `
const [dist, path, endpoint, address] = process.argv.slice(1);
const { createS3Store } = await import(dist + '/store/s3.js');
const { placePackage } = await import(dist + '/release/upload.js');
const { signal } = new AbortController();
const digest = 'sha256:' + '0'.repeat(64);
const about = { name: 'big', version: '1', arch: 'amd64', tree: 'addons', requires: [], fulfills: [] };
const addon = { ...about, digest, images: [], unpacked: { files: 0, images: 0 } };
const store = createS3Store(address, { endpoint, report: noReport });
const wanted = { file: { path, addon }, earlier: undefined };
const { outcome } = await placePackage(wanted, { store, release: 'v1', commit: undefined, fresh: true, signal });
if (outcome !== 'uploaded') throw new Error(outcome);
`;

export async function benchUpload(home: string, { rounds, say, megabytes }: UploadOptions): Promise<Section> {
  const root = join(home, 'upload');
  await rm(root, { recursive: true, force: true });
  await mkdir(join(root, 'server'), { recursive: true });
  const file = join(root, 'big-1.tar.gz');
  await writeNoise(file, megabytes);
  await using server = await startS3('versitygw', join(root, 'server'));
  Object.assign(process.env, rcloneEnvironment(server.url));
  say('file and server are there');
  const ways = [
    ['rclone copyto', 'timeout 900 "$1" copyto "$2" "bench:$3/r/$4/big.tar.gz"', [oracle('rclone'), file, BUCKET]],
    [
      'curlew',
      'timeout 900 node --input-type=module -e "$1" "$2" "$3" "$4" "s3://$5/c/$6"',
      [UPLOAD, join(ROOT, 'dist'), file, server.url, BUCKET],
    ],
  ] as const;
  const samples = new Map<string, Sample[]>(ways.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, line, values] of ways) {
      const sample = await measure(line, [...values, String(round)], home);
      samples.get(name)?.push(sample);
      say(`${name}: ${sample.seconds} s`);
      // The server keeps what it knows of an object elsewhere: the bytes may go, but each round has keys of its own.
      for (const place of ['r', 'c']) {
        await rm(join(root, 'server/data', BUCKET, place, String(round)), { recursive: true, force: true });
      }
    }
  }
  await rm(root, { recursive: true, force: true });
  const of = (name: string): readonly Sample[] => samples.get(name) ?? [];
  const seconds = (name: string): readonly number[] => of(name).map((sample) => sample.seconds);
  const speed = pairwise(seconds('rclone copyto'), seconds('curlew'));
  return {
    title: `A package of ${megabytes} MB into S3`,
    about:
      '`curlew publish` of one changed package: it checks that the key does not exist, reads the file twice ' +
      '(its sha256 is in the metadata, which is sent first), and uploads it in parts, each with a checksum. rclone copies ' +
      'the file with default options. The server is versitygw on loopback, on the same disk.',
    table: [
      ['method', 'seconds', 'MB a second', 'CPU seconds', 'memory, MB'],
      ...ways.map(([name]) => [
        name,
        range(spread(seconds(name))),
        range(spread(seconds(name).map((one) => megabytes / one))),
        figure(spread(of(name).map(({ cpu }) => cpu)).median),
        figure(spread(of(name).map(({ rss }) => rss)).most),
      ]),
    ],
    targets: [
      { name: 'speed ÷ rclone copy', wanted: '≥ 0.8', measured: range(speed), met: speed.median >= 0.8 },
      rssTarget('memory, upload', of('curlew')),
    ],
  };
}
