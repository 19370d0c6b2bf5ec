/** A package of ten images into an empty containerd, and again when they are there, beside kURL's way. */
import { execa } from 'execa';
import { createWriteStream, existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { digestOf } from '../../src/core/digest.ts';
import { sendTar, type SentEntry, sentBytes } from '../../src/formats/archive/send-tar.ts';
import { startContainerd, type SocketDaemon } from '../components/support/services.ts';
import { never } from '../support/context.ts';
import { writeAddons, type Options } from './images.ts';
import { SET, storedBlob } from './image-set.ts';
import { measure, pairwise, spread, type Sample } from './measure.ts';
import { figure, range, type Section, type Target } from './report.ts';
import { BENCH_HOST, CURLEW, type Place } from './ways.ts';

const KURL = 'gunzip into ctr import, one at a time';
const KURL_AGAIN = 'the same again, all images loaded';
const OURS = 'curlew load-images';
const OURS_AGAIN = 'the same again, all images loaded already';

/** kURL's load_images: one file after the other, whatever is there already. */
const KURL_LINE =
  'find "$1" -name "*.tar.gz" -print0 | xargs -0 -I {} bash -c "gunzip -c {} | ctr -a $2 -n=k8s.io images import - >/dev/null"';
const OURS_LINE = 'CONTAINERD_ADDRESS="$2" node "$3" load-images --quiet --install-dir "$1" >/dev/null';

/** Runs both ways in turn, each with a daemon that has nothing yet. */
export async function benchImagesLoad(place: Place, home: string, { rounds, say }: Options): Promise<Section> {
  const node = await unpackedPackage(place, home);
  say("archives of kURL's form, made once: some minutes");
  const archives = await kurlArchives(place, home);
  const ways = [
    { first: KURL, again: KURL_AGAIN, line: KURL_LINE, folder: archives },
    { first: OURS, again: OURS_AGAIN, line: OURS_LINE, folder: node },
  ];
  const samples = new Map<string, Sample[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const { first, again, line, folder } of round % 2 === 0 ? ways : ways.toReversed()) {
      const runtime = join(home, 'containerd');
      await rm(runtime, { recursive: true, force: true });
      await using daemon: SocketDaemon = await startContainerd(runtime);
      for (const name of [first, again]) {
        const sample = await measure(line, [folder, daemon.socket, CURLEW], home);
        samples.set(name, [...(samples.get(name) ?? []), sample]);
        say(`${name}: ${sample.seconds} s`);
      }
      await sameImages(daemon);
    }
  }
  await rm(join(home, 'containerd'), { recursive: true, force: true });
  return section(samples);
}

/** A package of the set, as a node has it in its install folder. */
async function unpackedPackage({ host, work }: Place, home: string): Promise<string> {
  const tree = join(home, 'tree');
  await writeAddons(tree);
  const out = join(work, 'packages');
  const words = ['build', 'set', '--quiet', '--out', out, '--registry-mirror', `${BENCH_HOST}=${host}`];
  await execa('node', [CURLEW, ...words], { cwd: tree, env: { XDG_CACHE_HOME: join(work, 'cache') } });
  const node = join(work, 'node');
  await mkdir(node, { recursive: true });
  await execa('tar', ['-xzf', join(out, 'set-1.0.0.tar.gz'), '-C', node]);
  return node;
}

interface Manifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string }[];
}

/** What `docker save IMAGE | gzip` makes of each image of the set: layers without compression, then all of it. */
async function kurlArchives({ host, storage, blobs }: Place, home: string): Promise<string> {
  const folder = join(home, 'kurl-archives');
  const mark = join(folder, `of-${digestOf([...blobs.keys()].toSorted().join(' ')).slice(-12)}`);
  if (existsSync(mark)) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const repository of SET) {
    const answer = await fetch(`http://${host}/v2/${repository}/manifests/1`, {
      headers: { accept: 'application/vnd.docker.distribution.manifest.v2+json' },
    });
    const { config, layers } = (await answer.json()) as Manifest;
    const entries: SentEntry[] = [];
    for (const { digest } of layers) {
      const path = join(folder, 'layer.tar');
      const packed = Readable.from([await readFile(storedBlob(storage, digest))]);
      await pipeline(packed, createGunzip(), createWriteStream(path));
      entries.push(sentBytes(`${digest.slice(7)}/layer.tar`, await readFile(path)));
    }
    const name = `${config.digest.slice(7)}.json`;
    const row = {
      Config: name,
      RepoTags: [`${BENCH_HOST}/${repository}:1`],
      Layers: layers.map(({ digest }) => `${digest.slice(7)}/layer.tar`),
    };
    entries.push(sentBytes(name, await readFile(storedBlob(storage, config.digest))));
    entries.push(sentBytes('manifest.json', JSON.stringify([row])));
    const target = createWriteStream(join(folder, `${repository.replace('/', '-')}.tar.gz`));
    await pipeline(Readable.from(sendTar(entries, { signal: never })), createGzip(), target);
  }
  await rm(join(folder, 'layer.tar'));
  await writeFile(mark, '');
  return folder;
}

/** Both ways must have done the same work. */
async function sameImages({ socket }: SocketDaemon): Promise<void> {
  const { stdout } = await execa('ctr', ['-a', socket, '-n', 'k8s.io', 'images', 'check', '--quiet']);
  const names = stdout.split('\n').filter((name) => name.startsWith(`${BENCH_HOST}/`));
  if (names.length !== SET.length) throw new Error(`${names.length} images of ${SET.length}: ${stdout}`);
}

function section(samples: ReadonlyMap<string, readonly Sample[]>): Section {
  const seconds = (name: string): readonly number[] => (samples.get(name) ?? []).map((sample) => sample.seconds);
  const target = (name: string, ours: string, theirs: string, limit: number): Target => {
    const quotient = pairwise(seconds(ours), seconds(theirs));
    return { name, wanted: `≤ ${limit}`, measured: range(quotient), met: quotient.median <= limit };
  };
  return {
    title: 'Images into containerd',
    about:
      "A package of 10 images on three bases into an empty containerd (Debian's), and again. CPU seconds and memory are those of the clients; the daemon does most of the work.",
    table: [
      ['method', 'seconds', 'CPU seconds', 'memory, MB'],
      ...[...samples].map(([name, all]) => [
        name,
        range(spread(seconds(name))),
        figure(spread(all.map(({ cpu }) => cpu)).median),
        figure(spread(all.map(({ rss }) => rss)).most),
      ]),
    ],
    targets: [
      target("into an empty containerd ÷ kURL's", OURS, KURL, 0.6),
      target("all images loaded already ÷ kURL's", OURS_AGAIN, KURL_AGAIN, 0.1),
    ],
  };
}
