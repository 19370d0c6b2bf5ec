/**
 * Makes the image whose programs kURL's add-ons run in pods (KURL_UTIL_IMAGE), for every architecture, as one archive of OCI's
 * form. Same pins, same bytes. What is fetched (packages of Debian, modules and, where another Go is installed, the pinned Go)
 * stays in .curlew/helper-image, so that later builds need no network.
 * usage: tsx scripts/build-helper-image.ts [FILE]   (default: where the Manifest of packages/curlew-utils looks for it)
 */
import { execa } from 'execa';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { ARCHES, type Arch } from '../src/core/ref.ts';
import { debianEntries, HELPER, SYSTEM } from './helper-image/debian.ts';
import {
  imageArchive,
  madeFile,
  madeLink,
  makeImage,
  withFolders,
  type MadeEntry,
  type MadeImage,
} from './oci-image.ts';

const ROOT = join(import.meta.dirname, '..');
const KEPT = join(ROOT, '.curlew/helper-image');
const PROGRAMS = join(import.meta.dirname, 'helper-image/programs');
/** One of another version would make other bytes. */
const GO = 'go1.26.8';
const VERSION = '1.0.0';
/** No registry has that name: a node without the image cannot pull it. */
const NAME = `localhost/curlew-utils:${VERSION}`;

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
  const found = [
    ...(await debianEntries(arch, join(KEPT, 'debs'), HELPER)),
    madeFile(OWN, 0o755, await programs(arch)),
    ...OWN_NAMES.map((name) => madeLink(name, 'kurl')),
    ...APPLETS.map((name) => madeLink(`usr/bin/${name}`, 'busybox')),
    ...SYSTEM,
  ];
  return withFolders(found, ['usr/lib64/', 'usr/sbin/', 'root/']);
}

async function archive(): Promise<Buffer> {
  const config = {
    Entrypoint: ENTRYPOINT,
    Env: ['PATH=/usr/local/bin:/usr/bin'],
    Labels: { 'org.opencontainers.image.version': VERSION },
  };
  const images = new Map<Arch, MadeImage>();
  for (const arch of ARCHES) images.set(arch, makeImage(arch, config, [await entriesFor(arch)]));
  return imageArchive(NAME, VERSION, images);
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
