/** The add-ons of test/fixtures/kurl-addons, built, published, and bundled with the executable for nodes. */
import { cp, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NODE_PLATFORM } from '../../support/image-packages.ts';
import { BUILT_MAIN as main } from '../../support/built.ts';
import { curlewOk } from '../../support/curlew.ts';
import { makeImage, makeLayer, type Image } from '../../support/images.ts';
import { startRegistry } from '../../support/registry-server.ts';
import type { Tree } from '../../support/tree.ts';
import { addPackages, endAgent, indexed, makeKey, repositoryAt, servePool } from './apt-repository.ts';
import { ROOT } from './programs.ts';

const FIXTURES = join(ROOT, 'test/fixtures/kurl-addons');
const REGISTRIES = ['registry.example', 'registry.k8s.io', 'docker.io'];
/** What Manifests ask for by `apt`, and what that needs; every system has the last two. */
const PACKAGES = [
  { name: 'zebra-app', version: '2.0-1', fields: { Depends: 'zebra-lib, libc6' } },
  { name: 'zebra-lib', version: '1.0' },
  { name: 'base-files', version: '1.0', fields: { Essential: 'yes', Priority: 'required', 'Pre-Depends': 'libc6' } },
  { name: 'libc6', version: '1.0', arch: NODE_PLATFORM.slice('linux/'.length) },
];

/** `addon` once more as another version, all numbers in its files with it. */
async function copyVersion(box: Tree, addon: string, from: string, to: string): Promise<void> {
  const folder = box.at('addons', addon);
  await cp(join(folder, from), join(folder, to), { recursive: true });
  for (const entry of await readdir(join(folder, to), { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) await writeFile(path, (await readFile(path, 'utf8')).replaceAll(from, to));
  }
}

/** An image for each line of a Manifest, by the name that a registry has it under. */
async function imagesOf(box: Tree): Promise<Readonly<Record<string, Image>>> {
  const images: Record<string, Image> = {};
  const found = ['addons', 'packages'].map(async (name) =>
    readdir(box.at(name), { recursive: true, withFileTypes: true }),
  );
  for (const entry of (await Promise.all(found)).flat()) {
    if (entry.name !== 'Manifest') continue;
    const text = await readFile(join(entry.parentPath, entry.name), 'utf8');
    for (const [, reference = ''] of text.matchAll(/^image \S+ (\S+)/gm)) {
      const name = reference.slice(reference.indexOf('/') + 1);
      images[name] = makeImage([makeLayer({ 'bin/base': 'the same in all' }), makeLayer({ 'bin/app': name })]);
    }
  }
  return images;
}

export interface BundleWish {
  readonly file: string;
  /** Versions other than those of the fixtures' installer.yaml. */
  readonly versions: Readonly<Record<string, string>>;
}

/**
 * Writes bundles into the box: of the fixtures, and of containerd 2.2.6 and velero 1.18.3, which are copies of the versions
 * there.
 */
export async function makeBundles(box: Tree, wishes: readonly BundleWish[]): Promise<void> {
  await cp(FIXTURES, box.path, { recursive: true });
  await copyVersion(box, 'containerd', '1.6.33', '2.2.6');
  await copyVersion(box, 'velero', '1.18.2', '1.18.3');
  const key = await makeKey(box.path, 'key');
  await addPackages(box.at('repository'), PACKAGES);
  const served = await indexed(box.at('repository'), key, ['amd64', 'arm64']);
  await endAgent(box.path, 'key');
  await using pool = await servePool(served);
  await using registry = await startRegistry(await imagesOf(box));
  const systems = ['ubuntu-16.04', 'ubuntu-18.04', 'ubuntu-20.04', 'ubuntu-22.04'];
  const repositories = Object.fromEntries(systems.map((os) => [os, [repositoryAt(pool.url, key.ring)]]));
  await writeFile(box.at('config.json'), JSON.stringify({ repositories }));
  const mirrors = REGISTRIES.flatMap((host) => ['--registry-mirror', `${host}=${registry.host}`]);
  const how = ['--packages-by', 'host', '--config', 'config.json', '--cache', 'cache', ...mirrors];
  await curlewOk(['publish', '--to', 'store', '--release', 'v2026.11.21-0', ...how], { cwd: box.path, main });
  const spec = await readFile(box.at('installer.yaml'), 'utf8');
  for (const { file, versions } of wishes) {
    const text = Object.entries(versions).reduce(
      (all, [name, version]) => all.replace(new RegExp(`(\\n  ${name}:\\n    version:) .*`), `$1 ${version}`),
      spec,
    );
    await mkdir(box.at(file));
    await writeFile(box.at(file, 'installer.yaml'), text);
    const made = box.at(file, 'part');
    await curlewOk(['bundle', join(file, 'installer.yaml'), '--from', 'store', '-o', made], { cwd: box.path, main });
    await rename(made, box.at(file, 'bundle.tar.gz'));
  }
}
