/** What a build asks the internet for, answered on loopback: images, files, host packages, base images of containers. */
import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';
import { engineName } from '../../src/build/containers/docker.ts';
import type { BuildPlan } from '../../src/build/plan.ts';
import { parseImageRef } from '../../src/core/image-ref.ts';
import { isOsId, OSES } from '../../src/core/os.ts';
import {
  addPackages,
  endAgent,
  indexed,
  makeKey,
  repositoryAt,
  servePool,
} from '../components/support/apt-repository.ts';
import { startEngine } from '../components/support/engine.ts';
import { createOpened, type Opened } from '../components/support/opened.ts';
import { run, shell } from '../components/support/programs.ts';
import { makeMetadata, makeRpms, serveFolder } from '../components/support/rpm-repository.ts';
import { makeImage, makeLayer, type Image } from '../support/images.ts';
import { startProxy } from '../support/proxy-server.ts';
import { startRegistry } from '../support/registry-server.ts';
import { makeCertificate } from '../support/tls.ts';
import { startServer } from '../support/web-server.ts';

export interface StandIns extends AsyncDisposable {
  /** Options for `curlew build` and `curlew publish`. */
  readonly words: readonly string[];
  /** Variables for them. */
  readonly env: Readonly<Record<string, string>>;
}

type Step = BuildPlan['addons'][number]['steps'][number];

/** A valid image for any name; one of its two layers is the same in all. */
function imageOf(name: string): Image {
  return makeImage([makeLayer({ 'bin/base': 'the same in all' }), makeLayer({ 'bin/app': name })]);
}

/** A gzipped tar with an executable file at each of these paths. */
function archiveOf(paths: readonly string[], text: string): Buffer {
  const data = Buffer.from(text);
  const parts = paths.flatMap((path) => {
    const block = Buffer.alloc(512);
    const header = new Header({ path, mode: 0o755, uid: 0, gid: 0, size: data.byteLength, type: 'File' });
    header.mtime = new Date(0);
    header.encode(block);
    return [block, data, Buffer.alloc((512 - (data.byteLength % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(1024)]));
}

/** A program that says its name and succeeds; asked for YAML, it prints a namespace, a workload and how it was called. */
function programText(name: string): string {
  return `#!/bin/sh
namespace=default
for word in "$@"; do
  [ "$last" != --namespace ] || namespace="$word"
  last="$word"
done
case " $* " in
  *" -o yaml "*) cat <<END ;;
apiVersion: v1
kind: Namespace
metadata:
  name: $namespace
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}-stand-in
  namespace: $namespace
data:
  called: |
    $*
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
  namespace: $namespace
spec:
  selector:
    matchLabels:
      app: ${name}
  template:
    metadata:
      labels:
        app: ${name}
    spec:
      containers:
        - name: ${name}
          image: example/${name}
END
  *) echo "${name}, a stand-in: $*" ;;
esac
`;
}

/**
 * The stand-in for the file behind a URL is such a program. In a stand-in archive it is at the top and in a folder
 * named as the archive: one of the two is where upstreams put it.
 */
function downloadOf(path: string): Buffer | string {
  const file = decodeURIComponent(path.split('?', 1)[0] ?? '')
    .split('/')
    .at(-1);
  const [, stem] = /^(.+)\.(?:tar\.gz|tgz)$/.exec(file ?? '') ?? [];
  const [name = ''] = (stem ?? file ?? '').split(/[-_.]/, 1);
  const text = programText(name);
  return stem === undefined ? text : archiveOf([name, `${stem}/${name}`], text);
}

/** Starts what these steps need, with its files below `folder`. */
export async function startStandIns(folder: string, repository: string, steps: readonly Step[]): Promise<StandIns> {
  const opened = createOpened();
  try {
    const mirrors = await startImages(opened, steps);
    const downloads = await startDownloads(opened, folder, steps);
    const packages = await startPackages(opened, folder, steps);
    const engine = await startBases(opened, folder, repository, steps);
    return {
      words: [...mirrors, ...packages, '--cache', join(folder, 'cache')],
      env: { ...downloads, ...engine },
      [Symbol.asyncDispose]: opened.close,
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function startImages(opened: Opened, steps: readonly Step[]): Promise<readonly string[]> {
  const { host } = opened.keep(await startRegistry({}, { otherwise: imageOf }));
  const registries = steps.flatMap((step) => {
    const ref = step.kind === 'image' && step.reference !== undefined ? parseImageRef(step.reference) : '';
    return typeof ref === 'string' ? [] : [ref.registry];
  });
  return [...new Set(registries)].flatMap((name) => ['--registry-mirror', `${name}=${host}`]);
}

async function startDownloads(
  opened: Opened,
  folder: string,
  steps: readonly Step[],
): Promise<Readonly<Record<string, string>>> {
  const urls = steps.flatMap((step) => (step.kind === 'asset' && !step.local ? [new URL(step.source)] : []));
  if (urls.length === 0) return {};
  const { ca, ...tls } = await makeCertificate([...new Set(urls.map(({ hostname }) => hostname))]);
  const server = opened.keep(await startServer(({ path }) => ({ status: 200, body: downloadOf(path) }), { tls }));
  const hosts = Object.fromEntries(urls.map(({ hostname, port }) => [`${hostname}:${port || '443'}`, server.port]));
  const proxy = opened.keep(await startProxy({ hosts }));
  await writeFile(join(folder, 'ca.pem'), ca);
  return { HTTPS_PROXY: proxy.url, NO_PROXY: '127.0.0.1', SSL_CERT_FILE: join(folder, 'ca.pem') };
}

/** Every system has these, and what resolves packages wants to see them. */
const SYSTEM = [
  { name: 'base-files', version: '1.0', fields: { Essential: 'yes', Priority: 'required', 'Pre-Depends': 'libc6' } },
  { name: 'libc6', version: '1.0', arch: 'amd64' },
];

/** Tiny packages of the names that are asked for, for each system in its own form, and a configuration that leads there. */
async function startPackages(opened: Opened, folder: string, steps: readonly Step[]): Promise<readonly string[]> {
  const asked = steps.flatMap((step) => (step.kind === 'os-packages' ? [step] : []));
  if (asked.length === 0) return [];
  const names = (family: string): readonly string[] => [
    ...new Set(asked.filter(({ os }) => OSES[os].family === family).flatMap(({ packages }) => packages)),
  ];
  const key = await makeKey(folder, 'key');
  await addPackages(join(folder, 'apt'), [...SYSTEM, ...names('debian').map((name) => ({ name, version: '9:9.0' }))]);
  const pool = opened.keep(await servePool(await indexed(join(folder, 'apt'), key, ['amd64'])));
  await endAgent(folder, 'key');
  const rpms = join(folder, 'rpm');
  await makeRpms(
    rpms,
    names('rpm').map((name) => ({ name })),
  );
  await makeMetadata(rpms);
  const server = opened.keep(await serveFolder(rpms));
  const repositories = Object.fromEntries(
    Object.entries(OSES).map(([os, { family }]) => [
      os,
      [family === 'debian' ? repositoryAt(pool.url, key.ring) : { id: 'tiny', url: `${server.url}/` }],
    ]),
  );
  await writeFile(join(folder, 'config.json'), JSON.stringify({ repositories }));
  return ['--packages-by', 'host', '--config', join(folder, 'config.json')];
}

/** Whatever a Dockerfile runs succeeds; what is run last leaves a package where results are taken from. */
const SHELL = '#!/bin/busybox sh\nif [ -d /out ]; then cp /stand-in/* /out/; fi\n';

/** An engine that has the images which Dockerfiles start from: a shell alone, and the package that comes out of it. */
async function startBases(
  opened: Opened,
  folder: string,
  repository: string,
  steps: readonly Step[],
): Promise<Readonly<Record<string, string>>> {
  const builds = steps.flatMap((step) => (step.kind === 'container-build' ? [step] : []));
  if (builds.length === 0) return {};
  const engine = opened.keep(await startEngine(join(folder, 'engine')));
  await addPackages(join(folder, 'built'), [{ name: 'containerd.io', version: '9:9.0' }]);
  await makeRpms(join(folder, 'built-rpm'), [{ name: 'containerd.io' }]);
  const made = { debian: join(folder, 'built/pool'), rpm: join(folder, 'built-rpm/noarch') };
  for (const { destination, dockerfile } of builds) {
    const family = isOsId(destination) ? OSES[destination].family : 'rpm';
    const text = await readFile(join(repository, dockerfile), 'utf8');
    for (const [, base = ''] of text.matchAll(/^FROM\s+(?:--\S+\s+)*(\S+)/gim)) {
      const ref = parseImageRef(base);
      if (typeof ref === 'string') continue;
      const root = join(folder, `base-${family}`);
      await mkdir(join(root, 'bin'), { recursive: true });
      await copyFile('/bin/busybox', join(root, 'bin/busybox'));
      await writeFile(join(root, 'bin/sh'), SHELL);
      await chmod(join(root, 'bin/sh'), 0o755);
      await run('cp', ['-rT', made[family], join(root, 'stand-in')]);
      const host = engine.env['DOCKER_HOST'] ?? '';
      await shell('tar -C "$1" -cf - . | /usr/bin/docker --host "$2" import - "$3"', root, host, engineName(ref));
    }
  }
  return engine.env;
}
