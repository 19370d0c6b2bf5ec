/** Programs of Debian's packages, pinned by their digests: what of them goes into the images that are made here, and how it gets here. */
import { execa } from 'execa';
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Parser, type ReadEntry } from 'tar';
import { redact } from '../../src/core/errors.ts';
import type { Arch } from '../../src/core/ref.ts';
import { madeFile, madeLink, type MadeEntry } from '../oci-image.ts';
import PINS from './debian.json' with { type: 'json' };

/** Addresses of Debian archives, separated by blanks: for other systems, and for what this machine's mirrors have dropped. */
const MIRRORS = 'DEBIAN_MIRRORS';

const TRIPLETS: Readonly<Record<Arch, string>> = { amd64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' };

/** What is taken of each package: programs, each under its name in the image, and libraries that they are linked with. */
type Taken = Readonly<
  Record<string, { readonly programs?: Readonly<Record<string, string>>; readonly libraries?: string }>
>;

const SHELL: Taken = {
  'bash-static': { programs: { 'bin/bash-static': 'usr/bin/bash' } },
  'busybox-static': { programs: { 'bin/busybox': 'usr/bin/busybox' } },
};

/** The packages of the helper image. */
export const HELPER: Taken = {
  ...SHELL,
  'netcat-openbsd': { programs: { 'bin/nc.openbsd': 'usr/bin/nc' } },
  rsync: { programs: { 'usr/bin/rsync': 'usr/bin/rsync' } },
  libacl1: { libraries: 'libacl' },
  libbsd0: { libraries: 'libbsd' },
  libc6: { libraries: 'libc|libresolv|ld-linux[a-z0-9-]*' },
  'liblz4-1': { libraries: 'liblz4' },
  libmd0: { libraries: 'libmd' },
  libpopt0: { libraries: 'libpopt' },
  libssl3: { libraries: 'libcrypto' },
  libxxhash0: { libraries: 'libxxhash' },
  libzstd1: { libraries: 'libzstd' },
  zlib1g: { libraries: 'libz' },
};

/** The packages of curlew's own image: a shell, and what Node is linked with. `gcc-12-base` has the terms of two others. */
export const CURLEW: Taken = {
  ...SHELL,
  'gcc-12-base': {},
  libc6: { libraries: 'libc|libdl|libm|libpthread|libresolv|ld-linux[a-z0-9-]*' },
  'libgcc-s1': { libraries: 'libgcc_s' },
  'libstdc++6': { libraries: 'libstdc\\+\\+' },
};

const TEXTS: Readonly<Record<string, string>> = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n',
  'etc/group': 'root:x:0:\nnogroup:x:65534:\n',
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};

/** What every image has besides programs. */
export const SYSTEM: readonly MadeEntry[] = [
  ...Object.entries(TEXTS).map(([path, text]) => madeFile(path, 0o644, Buffer.from(text))),
  ...['bin', 'lib', 'lib64', 'sbin'].map((name) => madeLink(name, `usr/${name}`)),
  { type: 'Directory', path: 'tmp/', mode: 0o1777 },
];

/**
 * All that an image has of Debian's packages, with their terms, for one architecture. `folder` keeps every package that is pinned: a
 * machine of another system, whose mirrors have none of them, makes its images from what a container of Debian has fetched.
 */
export async function debianEntries(arch: Arch, folder: string, packages: Taken): Promise<readonly MadeEntry[]> {
  const pins: Readonly<Record<string, readonly string[]>> = PINS.arches[arch];
  const mirrors = await mirrorsHere();
  const files = new Map<string, string>();
  for (const [name, [path = '', sha256 = '']] of Object.entries(pins)) {
    files.set(name, await fetched(mirrors, path, sha256, folder));
  }
  const entries: MadeEntry[] = [];
  for (const [name, what] of Object.entries(packages)) {
    const file = files.get(name);
    if (file === undefined) throw new Error(`debian.json: ${name} is not pinned for ${arch}`);
    const taken = await takeFrom(file, namesIn(name, what, arch));
    if (taken.length === 0) throw new Error(`${file}: the files that are taken of ${name} are not in it`);
    entries.push(...taken);
  }
  return entries;
}

/** The name in the image of a path in the package; undefined for what is left out. */
function namesIn(
  name: string,
  { programs = {}, libraries }: Taken[string],
  arch: Arch,
): (path: string) => string | undefined {
  const shared = new RegExp(`^(?:usr/)?(lib|lib64)/(?:${TRIPLETS[arch]}/)?(?:${libraries})\\.so[.0-9]*$`);
  return (path) => {
    if (path === `usr/share/doc/${name}/copyright`) return path;
    if (libraries === undefined) return programs[path];
    return shared.test(path) ? path.replace(/^(?=lib)/, 'usr/') : undefined;
  };
}

async function takeFrom(deb: string, nameOf: (path: string) => string | undefined): Promise<readonly MadeEntry[]> {
  const { stdout } = await execa('dpkg-deb', ['--fsys-tarfile', deb], { encoding: 'buffer', maxBuffer: 256 << 20 });
  const entries: MadeEntry[] = [];
  const reads: Promise<void>[] = [];
  const parser = new Parser({
    onReadEntry: (entry: ReadEntry) => {
      const path = nameOf(entry.path.replace(/^\.\//, ''));
      if (path === undefined) entry.resume();
      else if (entry.type === 'SymbolicLink') {
        entries.push({ type: 'SymbolicLink', path, mode: 0o777, linkpath: entry.linkpath ?? '' });
        entry.resume();
      } else {
        const mode = (entry.mode ?? 0) & 0o755;
        reads.push(entry.concat().then((data) => void entries.push({ type: 'File', path, mode, data })));
      }
    },
  });
  parser.end(Buffer.from(stdout));
  await Promise.all(reads);
  return entries;
}

/** Mirrors in the variable, otherwise those of this machine's apt; the digests make any of them as good as another. */
async function mirrorsHere(): Promise<readonly string[]> {
  const given = (process.env[MIRRORS] ?? '').split(/\s+/).filter((address) => address !== '');
  if (given.length > 0) return given;
  const words = ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages'];
  const { stdout } = await execa('apt-get', words, { reject: false });
  return [...new Set((stdout ?? '').split('\n').filter((address) => address !== ''))];
}

async function fetched(mirrors: readonly string[], path: string, sha256: string, folder: string): Promise<string> {
  const kept = join(folder, `${sha256}.deb`);
  if ((await digestIn(kept)) === sha256) return kept;
  await mkdir(folder, { recursive: true });
  const partial = `${kept}.${process.pid}`;
  const failures: string[] = [];
  try {
    for (const mirror of mirrors) {
      const address = `${mirror.replace(/\/+$/, '')}/${path}`;
      const { failed, stderr } = await execa('curl', ['-fsSL', '--retry', '3', '-o', partial, address], {
        reject: false,
      });
      const found = failed ? undefined : await digestIn(partial);
      if (found === sha256) {
        await rename(partial, kept);
        return kept;
      }
      failures.push(redact(`${address}: ${failed ? stderr : `sha256 ${found}, and ${sha256} is pinned`}`));
    }
  } finally {
    await rm(partial, { force: true });
  }
  throw new Error(
    [
      `fetch ${path}: no mirror of this machine has it`,
      ...failures,
      `name archives of Debian 12 in ${MIRRORS} (its snapshot archive as of ${PINS.snapshot} has all), or pin the present ` +
        'versions: scripts/helper-image/pin-packages',
    ].join('\n'),
  );
}

async function digestIn(path: string): Promise<string | undefined> {
  const bytes = await readFile(path).catch(() => undefined);
  return bytes === undefined ? undefined : createHash('sha256').update(bytes).digest('hex');
}
