/** Publishing when little has changed: what planning costs, and how many requests a release takes. */
import { execa } from 'execa';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BUCKET, startS3 } from '../components/support/s3-servers.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { startRegistry } from '../support/registry-server.ts';
import type { S3Request } from '../support/s3-proxy.ts';
import { writeTree, type Files } from '../support/tree.ts';
import { measure, spread } from './measure.ts';
import { CHANGED, comparePublishing, DELAY_MS, PACKAGES } from './publish-ways.ts';
import { figure, range, type Section } from './report.ts';
import { rssTarget, type Options } from './images.ts';
import { CURLEW } from './ways.ts';

const ADDONS = 600;

function addonFiles(count: number): Files {
  const rows = Array.from({ length: count }, (_, at) => {
    const folder = `addons/addon-${at % 25}/1.${at}.0`;
    return [
      [`${folder}/Manifest`, 'image one images.example/team/one:1\nimage two images.example/team/two:1\n'],
      [`${folder}/install.sh`, `function addon-${at % 25}() { :; }\n`],
      [`${folder}/deploy.yaml`, `number: ${at}\n${'# text\n'.repeat(200)}`],
      [`${folder}/kustomization.yaml`, 'resources: [deploy.yaml]\n'],
    ] as const;
  });
  return Object.fromEntries(rows.flat());
}

export async function benchPublish(home: string, { rounds, say }: Options): Promise<Section> {
  const root = join(home, 'publish');
  await rm(root, { recursive: true, force: true });
  await writeTree(root, addonFiles(ADDONS));
  await mkdir(join(root, 'server'));
  const images = [makeImage([makeLayer({ a: 'one' })]), makeImage([makeLayer({ a: 'two' })])] as const;
  await using registry = await startRegistry({ 'team/one:1': images[0], 'team/two:1': images[1] });
  await using server = await startS3('versitygw', join(root, 'server'));
  const store = ['--to', `s3://${BUCKET}/dist`, '--s3-endpoint', server.url];
  const more = [...store, '--registry-mirror', `images.example=${registry.host}`];
  await execa('node', [CURLEW, 'publish', '--quiet', '--release', 'r1', ...more], { cwd: root });
  say('first release made');
  const [samples, asked] = [[], []] as [Awaited<ReturnType<typeof measure>>[], number[]];
  const script = 'cd "$1"; rm -rf out cache; node "$2" publish --quiet --dry-run --release r2 --cache cache "${@:3}"';
  for (let round = 0; round < rounds; round += 1) {
    const before = registry.log.length;
    samples.push(await measure(`${script} >/dev/null`, [root, CURLEW, ...more], home));
    asked.push(registry.log.length - before);
  }
  const seconds = spread(samples.map((sample) => sample.seconds));
  await rm(root, { recursive: true, force: true });
  return {
    title: 'Planning when nothing has changed',
    about:
      `\`curlew publish --dry-run\` over ${ADDONS} add-ons of two images each, with an empty cache and no packages, against a ` +
      `release in versitygw on loopback; the registry got ${range(spread(asked))} requests.`,
    table: [
      ['what', 'figure'],
      ['seconds', range(seconds)],
      ['memory in MB', figure(spread(samples.map(({ rss }) => rss)).most)],
    ],
    targets: [
      { name: `planning ${ADDONS}`, wanted: '< 2 s', measured: `${range(seconds)} s`, met: seconds.median < 2 },
      rssTarget('memory, planning', samples),
    ],
  };
}

/** True for a request that moves bytes from here to the server. */
function isUpload({ kind, path }: S3Request): boolean {
  return kind.startsWith('PutObject') && path.includes('.tar.gz');
}

const KINDS: readonly (readonly [head: string, counts: (request: S3Request) => boolean])[] = [
  ['listings', ({ kind }) => kind.startsWith('ListObjects')],
  ['HEAD requests', ({ kind }) => kind === 'HeadObject'],
  ['uploads of packages', isUpload],
  ['copies in the server', ({ kind }) => kind === 'UploadPartCopy' || kind === 'CopyObject'],
];

export async function benchRelease(home: string, { say }: Options): Promise<Section> {
  const root = join(home, 'release');
  await rm(root, { recursive: true, force: true });
  const rows = await comparePublishing(root);
  await rm(root, { recursive: true, force: true });
  say('releases measured');
  const count = (log: readonly S3Request[], which: (request: S3Request) => boolean): number => log.filter(which).length;
  const [ours] = rows;
  const [lists, uploads] = ['listings', 'uploads of packages'].map((head) => {
    const which = KINDS.find(([name]) => name === head)?.[1];
    return ours === undefined || which === undefined ? Number.NaN : count(ours.log, which);
  });
  return {
    title: `A release of ${PACKAGES} packages of which ${CHANGED} have changed`,
    about:
      'Requests to versitygw on loopback, counted by a proxy in front of it that delays each request by ' +
      `${DELAY_MS} ms. Each row was measured once. A package has 1 MB. Sync is ` +
      "rclone's, by listing and content, as `aws s3 sync` works; it has no releases, and sends everything to a new folder. " +
      'A copy to a key that must not exist takes three requests (AWS has no reliable conditional CopyObject), and the row of ' +
      'curlew includes its probes of an unknown server.',
    table: [
      ['method', 'requests', ...KINDS.map(([head]) => head), 'MB sent', 'seconds'],
      ...rows.map(({ name, log, seconds }) => [
        name,
        String(log.length),
        ...KINDS.map(([, which]) => String(count(log, which))),
        figure(log.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6),
        figure(seconds),
      ]),
    ],
    targets: [
      { name: 'listings', wanted: '≤ 1', measured: String(lists), met: lists !== undefined && lists <= 1 },
      { name: 'uploads', wanted: String(CHANGED), measured: String(uploads), met: uploads === CHANGED },
    ],
  };
}
