/** A signed apt repository of tiny packages, made by Debian's own tools. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eachLimited } from '../../../src/platform/limit/each.ts';
import type { Repository } from '../../../src/core/repositories.ts';
import { never } from '../../support/context.ts';
import { startServer, type ServerOptions, type WebServer } from '../../support/web-server.ts';
import { run } from './programs.ts';

export interface TinyPackage {
  readonly name: string;
  readonly version: string;
  /** `all` when absent. */
  readonly arch?: string;
  /** Further fields of its control file. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Number of files; 1 when absent. */
  readonly files?: number;
}

/** What a web server hands out, by path. */
export type Served = Record<string, Uint8Array | string>;

export interface SigningKey {
  /** Path of the public key ring. */
  readonly ring: string;
  readonly sign: (text: string) => Promise<string>;
}

/** Makes a key of its own below `folder`; no agent of gpg stays behind once {@link endAgent} has been called. */
export async function makeKey(folder: string, name: string): Promise<SigningKey> {
  const home = join(folder, name);
  const ring = join(folder, `${name}.gpg`);
  await mkdir(home, { mode: 0o700 });
  const gpg = ['--homedir', home, '--batch', '--quiet', '--passphrase', '', '--pinentry-mode', 'loopback'];
  await run('gpg', [...gpg, '--quick-generate-key', `${name} <${name}@example.org>`, 'rsa2048', 'sign', 'never']);
  await run('gpg', [...gpg, '--output', ring, '--export']);
  return {
    ring,
    sign: async (text) => run('gpg', [...gpg, '--clearsign', '--digest-algo', 'SHA256'], { input: text }),
  };
}

export async function endAgent(folder: string, name: string): Promise<void> {
  await run('gpgconf', ['--homedir', join(folder, name), '--kill', 'all']);
}

async function buildPackage(folder: string, tiny: TinyPackage): Promise<void> {
  const { name, version, arch = 'all', fields = {}, files = 1 } = tiny;
  const root = join(folder, 'roots', `${name}_${version.replace(':', '%')}_${arch}`);
  const data = join(root, 'usr/share', name);
  await mkdir(join(root, 'DEBIAN'), { recursive: true });
  await mkdir(data, { recursive: true });
  const control = {
    Package: name,
    Version: version,
    Architecture: arch,
    Maintainer: 'Nobody <nobody@example.org>',
    Description: `tiny ${name}`,
    ...fields,
  };
  const text = Object.entries(control).map(([field, value]) => `${field}: ${value}\n`);
  await writeFile(join(root, 'DEBIAN/control'), text.join(''));
  const names = Array.from({ length: files }, (_, index) => join(data, `file-${index}`));
  await eachLimited(names, async (path) => writeFile(path, `${name} ${version}\n`), {
    width: 32,
    signal: never,
  });
  // Debian's pools leave the epoch out of file names.
  const file = `${name}_${version.replace(/^\d+:/, '')}_${arch}.deb`;
  await run('dpkg-deb', ['--build', '--root-owner-group', '-Zgzip', root, join(folder, 'pool', file)]);
}

/** Adds packages to the pool in `folder`, which stays. */
export async function addPackages(folder: string, packages: readonly TinyPackage[]): Promise<void> {
  await mkdir(join(folder, 'pool'), { recursive: true });
  for (const tiny of packages) await buildPackage(folder, tiny);
}

/** The pool with a signed index, which `edit` may change first, as a web server hands it out. */
export async function indexed(
  folder: string,
  key: SigningKey,
  arches: readonly string[],
  edit: (packages: string) => string = (packages) => packages,
  fields = 'Date: Sat, 01 Jan 2022 00:00:00 UTC\n',
): Promise<Served> {
  const served: Served = {};
  for (const file of await readdir(join(folder, 'pool'))) {
    served[`pool/${file}`] = await readFile(join(folder, 'pool', file));
  }
  const sums: string[] = [];
  for (const arch of arches) {
    const packages = await run('dpkg-scanpackages', ['--multiversion', '--arch', arch, 'pool'], { cwd: folder });
    // Ubuntu's archive adds the field to its indexes, so no package has it.
    const text = edit(`${packages}\n`.replace(/^Package: zebra-app$/m, '$&\nPhased-Update-Percentage: 10'));
    const path = `main/binary-${arch}/Packages`;
    served[`dists/stable/${path}`] = text;
    sums.push(` ${createHash('sha256').update(text).digest('hex')} ${Buffer.byteLength(text)} ${path}\n`);
  }
  const release = [
    'Origin: Tiny\nLabel: Tiny\nSuite: stable\nCodename: stable\nComponents: main\n',
    `Architectures: ${arches.join(' ')}\n${fields}SHA256:\n`,
    ...sums,
  ].join('');
  served['dists/stable/InRelease'] = await key.sign(release);
  return served;
}

/** Hands files out under their names, which apt asks for with percent signs. `served` may change meanwhile. */
export async function servePool(served: Served, options: ServerOptions = {}): Promise<WebServer> {
  return startServer((asked) => {
    const body = served[decodeURIComponent(asked.path.slice(1))];
    return body === undefined ? { status: 404, body: 'no such file' } : { status: 200, body };
  }, options);
}

export function repositoryAt(url: string, key: string | undefined): Repository {
  return {
    id: 'tiny',
    url: `${url}/`,
    suites: ['stable'],
    components: ['main'],
    ...(key === undefined ? {} : { key }),
  };
}
