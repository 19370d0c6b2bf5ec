/** Publishing when little has changed: what planning costs, and how many requests a release takes. */
import { execa } from 'execa';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { packageFileName } from '../../src/core/layout.ts';
import { publishPackages } from '../../src/release/publish.ts';
import type { PackageFileToPublish } from '../../src/release/upload.ts';
import { createFolderStore } from '../../src/store/folder.ts';
import type { Store } from '../../src/store/store.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { noise, writePackage } from '../support/packages.ts';
import { startRegistry } from '../support/registry-server.ts';
import { writeTree, type Files } from '../support/tree.ts';
import { measure, spread } from './measure.ts';
import { figure, range, type Section } from './report.ts';
import { rssTarget, type Options } from './images.ts';
import { CURLEW } from './ways.ts';

const ADDONS = 600;
const PACKAGES = 40;
const CHANGED = 2;

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

/** A store that counts what it is asked. */
function counting(inner: Store): { readonly store: Store; readonly counts: Map<string, number> } {
  const counts = new Map<string, number>();
  const count = (what: string): void => {
    counts.set(what, (counts.get(what) ?? 0) + 1);
  };
  const store: Store = {
    ...inner,
    head: async (...args) => {
      count('head');
      return inner.head(...args);
    },
    get: async (...args) => {
      count('get');
      return inner.get(...args);
    },
    put: async (key, ...rest) => {
      count(key.endsWith('.tar.gz') ? 'put of a package' : 'put of a small file');
      return inner.put(key, ...rest);
    },
    copy: async (from, key, options) => {
      count(key.includes('/') ? 'copy' : 'copy to latest');
      return inner.copy(from, key, options);
    },
    list: (...args) => {
      count('list');
      return inner.list(...args);
    },
  };
  return { store, counts };
}

async function requestsOfRelease(root: string): Promise<ReadonlyMap<string, number>> {
  await mkdir(join(root, 'few/store'), { recursive: true });
  const { signal } = new AbortController();
  const made = async (at: number, content: string): Promise<PackageFileToPublish> => {
    const path = join(root, 'few', `${content}-${packageFileName({ name: `p${at}`, version: '1' }, 'amd64')}`);
    const files = [
      { path: 'install.sh', data: `${content} ${at}` },
      { path: 'assets/blob', data: noise(5000, at + 1) },
    ];
    return { path, addon: await writePackage(path, `p${at}`, '1', files), inputs: { at, content } };
  };
  const all = await Promise.all(Array.from({ length: PACKAGES }, async (_, at) => made(at, 'old')));
  const { store, counts } = counting(createFolderStore(join(root, 'few/store')));
  const given = { store, now: new Date(), commit: undefined, jobs: 4, report: () => undefined, signal };
  await publishPackages(all, { ...given, release: 'r1', carry: false });
  counts.clear();
  const changed = await Promise.all(Array.from({ length: CHANGED }, async (_, at) => made(at, 'new')));
  await publishPackages(changed, { ...given, release: 'r2', carry: true });
  return new Map(counts);
}

export async function benchPublish(home: string, { rounds, say }: Options): Promise<Section> {
  const root = join(home, 'publish');
  await rm(root, { recursive: true, force: true });
  await writeTree(root, addonFiles(ADDONS));
  const images = [makeImage([makeLayer({ a: 'one' })]), makeImage([makeLayer({ a: 'two' })])] as const;
  await using registry = await startRegistry({ 'team/one:1': images[0], 'team/two:1': images[1] });
  const more = ['--registry-mirror', `images.example=${registry.host}`];
  await execa('node', [CURLEW, 'publish', '--quiet', '--to', 'store', '--release', 'r1', ...more], { cwd: root });
  say('first release made');
  const [samples, asked] = [[], []] as [Awaited<ReturnType<typeof measure>>[], number[]];
  const script =
    'cd "$1"; rm -rf out cache; node "$2" publish --quiet --dry-run --to store --release r2 --cache cache "${@:3}"';
  for (let round = 0; round < rounds; round += 1) {
    const before = registry.log.length;
    samples.push(await measure(`${script} >/dev/null`, [root, CURLEW, ...more], home));
    asked.push(registry.log.length - before);
  }
  const counts = await requestsOfRelease(root);
  say('publishing measured');
  await rm(root, { recursive: true, force: true });
  const seconds = spread(samples.map((sample) => sample.seconds));
  const [lists, uploads] = [counts.get('list') ?? 0, counts.get('put of a package') ?? 0];
  return {
    title: `Publishing with little changed`,
    about:
      `Planning: \`curlew publish --dry-run\` over ${ADDONS} add-ons of two images each, with an empty cache and no packages, ` +
      `against a folder store; the registry got ${range(spread(asked))} requests. Then the calls to the store of a release of ` +
      `${PACKAGES} packages of which ${CHANGED} changed.`,
    table: [
      ['what', 'figure'],
      ['planning, seconds', range(seconds)],
      ['planning, memory in MB', figure(spread(samples.map(({ rss }) => rss)).most)],
      ...[...counts].map(([what, count]) => [what, String(count)]),
    ],
    targets: [
      { name: `planning ${ADDONS}`, wanted: '< 2 s', measured: `${range(seconds)} s`, met: seconds.median < 2 },
      { name: 'uploads', wanted: `${CHANGED}`, measured: String(uploads), met: uploads === CHANGED },
      { name: 'listings', wanted: '≤ 2', measured: String(lists), met: lists <= 2 },
      rssTarget('memory, planning', samples),
    ],
  };
}
