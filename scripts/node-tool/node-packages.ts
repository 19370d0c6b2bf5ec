/** The Node inside the executables for nodes: how it is fetched, and that it is the pinned one. */
import { execa } from 'execa';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { extract } from 'tar';
import { digestOf } from '../../src/core/digest.ts';
import type { Arch } from '../../src/core/ref.ts';
import PINS from './node.json' with { type: 'json' };

/** What is pinned of one architecture: the npm package that Node comes in, and the sha256 of files of the release. */
interface ArchPins {
  readonly package: string;
  readonly integrity: string;
  readonly node: string;
}

/**
 * What `scripts/node-tool/node.json` says. Its digests are those of nodejs.org, which scripts/ci/node-published holds them
 * against. The newest line with long-term support whose Linux builds need nothing but glibc and libstdc++: since Node 25
 * they need libatomic too, which bare systems do not have (decision 14).
 */
export interface NodePins {
  readonly version: string;
  readonly license: string;
  readonly arches: Readonly<Record<Arch, ArchPins>>;
}

export interface PinnedNode {
  /** Where the two files lie, and what else belongs to this Node may be kept. */
  readonly folder: string;
  readonly program: string;
  /** Bytes of `bin/node` and `LICENSE`, which were hashed when they were read. */
  readonly node: Buffer;
  readonly license: Buffer;
}

/**
 * This architecture's Node. Fetched once; `folder` keeps it. What is kept is hashed each time, since whoever restores or
 * shares such a folder could put another Node into every bundle: another file than the pinned one is an error.
 */
export async function pinnedNode(
  folder: string,
  arch: Arch,
  options: { readonly signal: AbortSignal; readonly pins?: NodePins },
): Promise<PinnedNode> {
  const { signal, pins = PINS } = options;
  const kept = join(folder, `${pins.version}-${arch}`);
  const program = join(kept, 'bin/node');
  if (!(await isThere(program))) await fetchInto(kept, folder, arch, { signal, pins });
  const [node, license] = [await readFile(program), await readFile(join(kept, 'LICENSE'))];
  requirePinned(program, node, pins.arches[arch].node, kept);
  requirePinned(join(kept, 'LICENSE'), license, pins.license, kept);
  return { folder: kept, program, node, license };
}

function requirePinned(path: string, bytes: Uint8Array, sha256: string, kept: string): void {
  const got = digestOf(bytes);
  if (got === `sha256:${sha256}`) return;
  throw new Error(`${path} is ${got}, not the pinned sha256:${sha256} of scripts/node-tool/node.json.
Find out who has changed it; then remove ${kept} and run again: npm run build`);
}

interface FetchOptions {
  readonly signal: AbortSignal;
  readonly pins: NodePins;
}

async function fetchInto(kept: string, folder: string, arch: Arch, options: FetchOptions): Promise<void> {
  await mkdir(folder, { recursive: true });
  const work = await mkdtemp(join(folder, '.fetch-'));
  try {
    await extract({
      file: await fetched(work, arch, options),
      cwd: work,
      filter: (path) => path === 'package/bin/node' || path === 'package/LICENSE',
    });
    await rename(join(work, 'package'), kept).catch(async (error: unknown) => {
      // Another build was faster.
      if (!(await isThere(join(kept, 'bin/node')))) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Has npm put the package's file into a folder, and checks that it is the pinned one. */
async function fetched(folder: string, arch: Arch, { signal, pins }: FetchOptions): Promise<string> {
  const { package: name, integrity } = pins.arches[arch];
  const wanted = `${name}@${pins.version}`;
  const { failed, stderr, stdout } = await execa(
    'npm',
    ['pack', wanted, '--json', '--loglevel', 'error', '--prefer-offline', '--pack-destination', folder],
    { reject: false, cancelSignal: signal, cwd: folder },
  );
  const file = join(folder, `${name}-${pins.version}.tgz`);
  if (failed || !(await isThere(file))) {
    throw new Error(`npm could not fetch ${wanted}, which the executable for ${arch} nodes is made of:\n${stderr || stdout}
Let this machine reach its npm registry (npm config get registry) and run again: npm run build`);
  }
  const got = `sha512-${createHash('sha512')
    .update(await readFile(file))
    .digest('base64')}`;
  if (got !== integrity) {
    throw new Error(`${wanted}: the npm registry gave a file of ${got}, not the pinned one of ${integrity}`);
  }
  return file;
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
