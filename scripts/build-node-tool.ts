/**
 * Makes the executables for nodes, dist/node/curlew-linux-ARCH, and next to each its packed form for bundles: curlew with
 * Node inside. Node comes from the npm registry once and is kept in .curlew/node, so that later builds need no network.
 * usage: tsx scripts/build-node-tool.ts
 */
import { execa } from 'execa';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../src/core/digest.ts';
import { EXECUTABLE_SUMS, executableFileName, executableIndexName, packedExecutableName } from '../src/core/layout.ts';
import { ARCHES, type Arch } from '../src/core/ref.ts';
import { openFileSource, readIndex } from '../src/formats/archive/read.ts';
import { nodeToolCode, type NodeToolCode } from './node-tool/code.ts';
import { writeExecutable } from './node-tool/executable.ts';
import { pinnedNode } from './node-tool/node-packages.ts';

const ROOT = join(import.meta.dirname, '..');
const NODES = join(ROOT, '.curlew/node');
const CODE = 'curlew.cjs';
const ASSETS = 'assets';
const signal = new AbortController().signal;

/** The architecture whose Node runs here and makes the blob, which is the same for all of them. */
function ownArch(): Arch | undefined {
  if (process.platform !== 'linux') return undefined;
  return ({ x64: 'amd64', arm64: 'arm64' } as const)[process.arch as 'x64' | 'arm64'];
}

async function prepare(arch: Arch): Promise<void> {
  const script = join(import.meta.dirname, 'node-tool/prepare-node.ts');
  const { failed, stderr } = await execa(process.execPath, ['--import', 'tsx', script, NODES, arch], {
    reject: false,
    cwd: ROOT,
  });
  if (failed) throw new Error(stderr);
}

/** The blob that Node looks for in itself. Names in it are relative: it does not depend on the path of the checkout. */
async function blobOf(own: Arch, { main, assets }: NodeToolCode): Promise<Uint8Array> {
  await mkdir(NODES, { recursive: true });
  const work = await mkdtemp(join(NODES, '.blob-'));
  try {
    await mkdir(join(work, ASSETS));
    await writeFile(join(work, CODE), main);
    const names = Object.keys(assets).toSorted();
    for (const name of names) await writeFile(join(work, ASSETS, name), assets[name] ?? '');
    const config = {
      main: CODE,
      output: 'blob',
      disableExperimentalSEAWarning: true,
      // What the caller's NODE_OPTIONS say is not for curlew.
      execArgvExtension: 'none',
      assets: Object.fromEntries(names.map((name) => [name, `${ASSETS}/${name}`])),
    };
    await writeFile(join(work, 'sea.json'), JSON.stringify(config));
    const { program } = await pinnedNode(NODES, own, { signal });
    await execa(program, ['--experimental-sea-config', 'sea.json'], { cwd: work, env: { NODE_OPTIONS: '' } });
    return await readFile(join(work, 'blob'));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const own = ownArch();
  if (own === undefined) {
    console.error(
      'executables for nodes are made on Linux, amd64 or arm64: this build has none, and cannot make bundles',
    );
    return;
  }
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
  const [code] = await Promise.all([nodeToolCode(ROOT, version), ...ARCHES.map(prepare)]);
  const blob = await blobOf(own, code);
  for (const arch of ARCHES) {
    const packed = join(ROOT, 'dist/node', packedExecutableName(arch));
    await writeExecutable(await pinnedNode(NODES, arch, { signal }), blob, {
      plain: join(ROOT, 'dist/node', executableFileName(arch)),
      packed,
    });
    await using source = await openFileSource(packed);
    const index = await readIndex(source, { signal });
    await writeFile(join(ROOT, 'dist/node', executableIndexName(arch)), `${JSON.stringify(index)}\n`);
  }
  // The npm package has the digests and the indexes instead of the executables.
  const sums = ARCHES.map(async (arch) => {
    const name = packedExecutableName(arch);
    return `${hexOf(digestOf(await readFile(join(ROOT, 'dist/node', name))))}  ${name}\n`;
  });
  await writeFile(join(ROOT, 'dist/node', EXECUTABLE_SUMS), (await Promise.all(sums)).join(''));
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
