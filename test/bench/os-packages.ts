/** Host packages for five systems in containers, beside kURL's way: a container for each package and system. */
import { execa } from 'execa';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  addPackages,
  indexed,
  servePool,
  type Served,
  type TinyPackage,
} from '../components/support/apt-repository.ts';
import { BUILDER, importBuilder } from '../components/support/builder.ts';
import { startEngine } from '../components/support/engine.ts';
import { repositoryOf, startRpmLab } from '../components/support/rpm-lab.ts';
import { openTinyRepository } from '../components/support/tiny-repository.ts';
import { writeTree } from '../support/tree.ts';
import type { Options } from './images.ts';
import { measure, milliseconds, pairwise, spread, type Sample } from './measure.ts';
import { figure, range, type Section } from './report.ts';
import { CURLEW } from './ways.ts';

const UBUNTUS = ['16.04', '18.04', '20.04', '22.04'];
const DEB_NAMES = ['one', 'two', 'three', 'four', 'five', 'six'].map((name) => `bench-${name}`);
const RPM_NAMES = ['app', 'helper', 'service', 'extra', 'many', 'right'];
const SYSTEMS = [...UBUNTUS.map((version) => `ubuntu-${version}`), 'rhel-8'];
const MORE = 'bench-seven';

/** Six packages with a dependency each, and one that comes later. */
const PACKAGES: readonly TinyPackage[] = [...DEB_NAMES, MORE].flatMap((name) => [
  { name, version: '1.0', files: 40, fields: { Depends: `${name}-data` } },
  { name: `${name}-data`, version: '1.0', files: 40 },
]);

/** kURL's own sequence (kurl.md 1.5), on the same builder image and repositories. */
const KURL = `rm -rf "$1" && mkdir -p "$1"; out="$1" image="$2"; shift 2
for package in "$@"; do
  [[ "$package" == bench-* ]] || continue
  for version in ${UBUNTUS.join(' ')}; do
    name="ubuntu-$version-$package"
    docker run --network host --name "$name" "$image" bash -c "mkdir -p /packages/archives &&
      apt-get update -y && apt-get install -d --no-install-recommends -y $package -oDebug::NoLocking=1 -odir::cache=/packages/"
    mkdir -p "$out/ubuntu-$version" && docker cp "$name":/packages/archives "$out/ubuntu-$version"
    docker rm -f "$name"
  done
done
docker run --network host --name rhel-8 "$image" bash -c "mkdir -p /packages/archives &&
  dnf install --assumeyes --releasever=8 --installroot=/tmp/empty --setopt=reposdir=/etc/yum.repos.d \\
    --downloadonly --destdir=/packages/archives ${RPM_NAMES.join(' ')}"
mkdir -p "$out/rhel-8" && docker cp rhel-8:/packages/archives "$out/rhel-8" && docker rm -f rhel-8
docker run --name rhel-8-createrepo -v "$out/rhel-8/archives":/packages/archives "$image" createrepo_c /packages/archives
docker rm -f rhel-8-createrepo
tar -C "$out" -czf "$out.tar.gz" .
`;

function manifestOf(debs: readonly string[]): string {
  return [...debs.map((name) => `apt ${name}\n`), ...RPM_NAMES.map((name) => `yum8 ${name}\n`)].join('');
}

export async function benchOsPackages(home: string, { rounds, say }: Options): Promise<Section> {
  const tree = join(home, 'os-packages');
  await rm(tree, { recursive: true, force: true });
  const scratch = join(home, 'os-work');
  await rm(scratch, { recursive: true, force: true });
  await mkdir(scratch, { recursive: true });
  await using tiny = await openTinyRepository();
  await addPackages(join(scratch, 'repository'), PACKAGES);
  const served: Served = await indexed(join(scratch, 'repository'), tiny.key, ['amd64']);
  await using pool = await servePool(served);
  const lab = await startRpmLab();
  await using engine = await startEngine(tiny.at('engine'));
  await importBuilder({ engine, tiny, pool, lab });
  const manifest = join(tree, 'addons/many/1.0/Manifest');
  await writeTree(tree, {
    'addons/many/1.0/Manifest': manifestOf(DEB_NAMES),
    'addons/many/1.0/install.sh': 'many() { true; }\n',
    'config.json': JSON.stringify({ repositories: { 'rhel-8': [repositoryOf(lab)] } }),
  });
  const builders = SYSTEMS.flatMap((os) => ['--builder', `${os}=${BUILDER}`]);
  const words = [
    'build',
    'many',
    '--config',
    'config.json',
    '--container-network',
    'host',
    ...builders,
    '--cache',
    'cache',
  ];
  const ours = async (...more: readonly string[]): Promise<string> =>
    (await execa('node', [CURLEW, ...words, ...more], { cwd: tree, env: engine.env, stderr: 'ignore' })).stdout;
  const line = 'cd "$1"; rm -rf out cache; export DOCKER_HOST="$2"; node "$3" "${@:4}" --quiet >/dev/null';
  const host = engine.env['DOCKER_HOST'] ?? '';
  const samples: { readonly kurl: Sample[]; readonly ours: Sample[] } = { kurl: [], ours: [] };
  const warm: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const all = [join(scratch, 'kurl'), BUILDER, ...DEB_NAMES, ...RPM_NAMES];
    samples.kurl.push(
      await measure(`export DOCKER_HOST="${host}"; docker() { /usr/bin/docker "$@"; }\n${KURL}`, all, home),
    );
    samples.ours.push(await measure(line, [tree, host, CURLEW, ...words], home));
    await ours();
    warm.push(await timedIn(tree, engine.env, words));
    say(`kURL ${samples.kurl.at(-1)?.seconds} s, ours ${samples.ours.at(-1)?.seconds} s, unchanged ${warm.at(-1)} ms`);
  }
  await writeFile(manifest, manifestOf([...DEB_NAMES, MORE]));
  const built = JSON.parse(await ours('--json')) as { packages: readonly { fetched: number }[] };
  const sizes = [MORE, `${MORE}-data`].map((name) => Buffer.from(served[`pool/${name}_1.0_all.deb`] ?? '').byteLength);
  const fresh = sizes.reduce((sum, size) => sum + size, 0) * UBUNTUS.length;
  await lab.close();
  const fetched = built.packages[0]?.fetched ?? Number.NaN;
  const size = (await stat(join(tree, 'out/many-1.0.tar.gz'))).size;
  const seconds = (one: readonly Sample[]): readonly number[] => one.map((sample) => sample.seconds);
  const quotient = pairwise(seconds(samples.kurl), seconds(samples.ours));
  const unchanged = spread(warm);
  return {
    title: 'Host packages for five systems',
    about: `Six apt packages for four systems and six dnf packages for a fifth, from repositories on loopback, in containers of one
builder image. One package was then added: ${fetched} bytes were fetched, of which ${fresh} are new; the whole package has ${size}.`,
    table: [
      ['method', 'seconds', 'CPU seconds of the clients'],
      ["kURL's: a container for each package and system", range(spread(seconds(samples.kurl))), cpuOf(samples.kurl)],
      ['curlew, cold', range(spread(seconds(samples.ours))), cpuOf(samples.ours)],
      ['curlew, nothing changed', range(spread(warm.map((ms) => ms / 1000))), ''],
    ],
    targets: [
      { name: "kURL's ÷ cold", wanted: '≥ 5', measured: range(quotient), met: quotient.median >= 5 },
      { name: 'nothing changed', wanted: '< 200 ms', measured: `${range(unchanged)} ms`, met: unchanged.median < 200 },
      { name: 'one package added, bytes', wanted: `= ${fresh}`, measured: String(fetched), met: fetched === fresh },
    ],
  };
}

function cpuOf(samples: readonly Sample[]): string {
  return figure(spread(samples.map(({ cpu }) => cpu)).median);
}

async function timedIn(cwd: string, env: Readonly<Record<string, string>>, words: readonly string[]): Promise<number> {
  const line = 'cd "$1"; export DOCKER_HOST="$2"; exec node "$3" "${@:4}" --quiet';
  return milliseconds('bash', ['-c', line, 'bash', cwd, env['DOCKER_HOST'] ?? '', CURLEW, ...words]);
}
