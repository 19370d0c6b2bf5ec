/**
 * Makes the image whose programs kURL's add-ons run in pods (KURL_UTIL_IMAGE), for every architecture, as one archive of OCI's
 * form. Same pins, same bytes. What is fetched (packages of Debian, modules and, where another Go is installed, the pinned Go)
 * stays in .curlew/helper-image, so that later builds need no network.
 * usage: tsx scripts/build-helper-image.ts [FILE]   (default: where the Manifest of packages/curlew-utils looks for it)
 */
import { execa } from 'execa';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { ARCHES, compareText, type Arch } from '../src/core/ref.ts';
import { debianEntries } from './helper-image/debian.ts';
import { describe, makeBlob, makeImage, makeTar, type MadeBlob, type MadeEntry } from './oci-image.ts';

const ROOT = join(import.meta.dirname, '..');
const KEPT = join(ROOT, '.curlew/helper-image');
const PROGRAMS = join(import.meta.dirname, 'helper-image/programs');
/** One of another version would make other bytes. */
const GO = 'go1.26.8';
const VERSION = '1.0.0';
/** No registry has that name: a node without the image cannot pull it. */
const NAME = `localhost/curlew-utils:${VERSION}`;
const INDEX = 'application/vnd.oci.image.index.v1+json';

/** Programs from busybox; bash, nc and rsync are those of their own packages. */
const APPLETS = `
  awk base64 cat chmod chown cp cut date df dirname du echo env expr false find grep head hostname id ip
  kill ln ls mkdir mktemp mount mv nslookup ping printf ps pwd readlink rm rmdir sed seq sh sha256sum sleep
  sort stat sync tail tar tee test timeout touch tr true umount uname uniq wc wget xargs
`
  .trim()
  .split(/\s+/);

/** Where add-ons and controllers look for the programs of ours, which are one file. */
const OWN = 'usr/local/bin/kurl';
const OWN_NAMES = ['usr/local/bin/network', 'usr/local/bin/veleroplugin'];

/** Velero starts the image with this once, to have its plugin in the folder that it mounts there. */
const ENTRYPOINT = ['/bin/cp', '/usr/local/bin/veleroplugin', '/target/kotsadmrestore'];

const TEXTS: Readonly<Record<string, string>> = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n',
  'etc/group': 'root:x:0:\nnogroup:x:65534:\n',
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};

async function programs(arch: Arch): Promise<Uint8Array> {
  const file = join(KEPT, `programs-${arch}`);
  const find = 'source scripts/support/tools.bash && tools_ensure go >&2 && tools_go_path';
  const { stdout: go } = await execa('bash', ['-euo', 'pipefail', '-c', find], { cwd: ROOT });
  await execa(go, ['build', '-C', PROGRAMS, '-ldflags=-s -w -buildid=', '-o', file, '.'], {
    env: {
      GOOS: 'linux',
      GOARCH: arch,
      GOTOOLCHAIN: GO,
      CGO_ENABLED: '0',
      GOFLAGS: '-modcacherw -trimpath -buildvcs=false -mod=readonly',
      GOPATH: join(KEPT, 'gopath'),
      GOCACHE: join(KEPT, 'gocache'),
    },
  });
  return readFile(file);
}

async function entriesFor(arch: Arch): Promise<readonly MadeEntry[]> {
  const link = (path: string, linkpath: string): MadeEntry => ({ type: 'SymbolicLink', path, mode: 0o777, linkpath });
  const file = (path: string, mode: number, data: Uint8Array): MadeEntry => ({ type: 'File', path, mode, data });
  const found = [
    ...(await debianEntries(arch, join(KEPT, 'debs'))),
    file(OWN, 0o755, await programs(arch)),
    ...OWN_NAMES.map((name) => link(name, 'kurl')),
    ...APPLETS.map((name) => link(`usr/bin/${name}`, 'busybox')),
    ...Object.entries(TEXTS).map(([path, text]) => file(path, 0o644, Buffer.from(text))),
    ...['bin', 'lib', 'lib64', 'sbin'].map((name) => link(name, `usr/${name}`)),
    { type: 'Directory', path: 'tmp/', mode: 0o1777 } as const,
  ];
  const folders = new Set(['usr/lib64/', 'usr/sbin/', 'root/', ...found.flatMap(({ path }) => foldersOf(path))]);
  const made = [...folders].map((path): MadeEntry => ({ type: 'Directory', path, mode: 0o755 }));
  return [...made, ...found].toSorted((a, b) => compareText(a.path, b.path));
}

function foldersOf(path: string): readonly string[] {
  const parts = path.replace(/\/$/, '').split('/').slice(0, -1);
  return parts.map((_, at) => `${parts.slice(0, at + 1).join('/')}/`);
}

/** One name, and behind it an index with the image of each architecture: a reader takes its own. */
async function archive(): Promise<Buffer> {
  const config = {
    Entrypoint: ENTRYPOINT,
    Env: ['PATH=/usr/local/bin:/usr/bin'],
    Labels: { 'org.opencontainers.image.version': VERSION },
  };
  const blobs: MadeBlob[] = [];
  const manifests: object[] = [];
  for (const arch of ARCHES) {
    const image = makeImage(arch, config, await entriesFor(arch));
    blobs.push(...image.blobs, image.manifest);
    manifests.push({ ...describe(image.manifest), platform: { os: 'linux', architecture: arch } });
  }
  const index = makeBlob(INDEX, json({ schemaVersion: 2, mediaType: INDEX, manifests }));
  const annotations = { 'io.containerd.image.name': NAME, 'org.opencontainers.image.ref.name': VERSION };
  const named = { schemaVersion: 2, mediaType: INDEX, manifests: [{ ...describe(index), annotations }] };
  const file = (path: string, data: Uint8Array): MadeEntry => ({ type: 'File', path, mode: 0o644, data });
  return makeTar([
    file('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
    file('index.json', json(named)),
    ...[index, ...blobs].map(({ digest, data }) => file(`blobs/${digest.replace(':', '/')}`, data)),
  ]);
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}

async function main(): Promise<void> {
  const path = resolve(process.argv[2] ?? join(ROOT, 'packages/curlew-utils/build-images/curlew-utils.tar'));
  await mkdir(KEPT, { recursive: true });
  await mkdir(dirname(path), { recursive: true });
  const partial = `${path}.${process.pid}`;
  const bytes = await archive();
  await writeFile(partial, bytes);
  await rename(partial, path);
  console.log(`${path}: ${NAME}, ${bytes.byteLength} bytes`);
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
