/** rpm packages and repositories of them, made with rpmbuild and createrepo_c. */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { eachLimited } from '../../../src/platform/limit/each.ts';
import { never } from '../../support/context.ts';
import { ranged, startServer, type Fault, type WebServer } from '../../support/web-server.ts';
import { run, shell } from './programs.ts';

export interface RpmSpec {
  readonly name: string;
  /** `[epoch:]version[-release]`; `1.0-1` if not told. */
  readonly version?: string;
  readonly arch?: 'noarch' | 'x86_64' | 'aarch64';
  readonly requires?: readonly string[];
  readonly provides?: readonly string[];
  readonly conflicts?: readonly string[];
  readonly recommends?: readonly string[];
  /** Absolute paths of small files. */
  readonly files?: readonly string[];
  /** Bytes of one more file, which do not compress. */
  readonly bulk?: number;
  /** `name:stream:version:context` of the module that it was built in. */
  readonly module?: string;
}

/** When all packages say that they were built: the same sources make the same bytes. */
const BUILT = 1_600_000_000;

function parts(version: string): { readonly epoch: string; readonly version: string; readonly release: string } {
  const [, epoch = '', upstream = '', release = '1'] = /^(?:(\d+):)?([^-]+)(?:-(.+))?$/.exec(version) ?? [];
  return { epoch, version: upstream, release };
}

function specFile(spec: RpmSpec): string {
  const { name, version: full = '1.0-1', arch = 'noarch', files = [], bulk = 0, module } = spec;
  const { epoch, version, release } = parts(full);
  const tags = [
    ['Name', name],
    ...(epoch === '' ? [] : [['Epoch', epoch]]),
    ['Version', version],
    ['Release', release],
    ['Summary', `The package ${name}`],
    ['License', 'MIT'],
    ...(arch === 'noarch' ? [['BuildArch', arch]] : []),
    ...(module === undefined ? [] : [['ModularityLabel', module]]),
    ...(spec.requires ?? []).map((text) => ['Requires', text]),
    ...(spec.provides ?? []).map((text) => ['Provides', text]),
    ...(spec.conflicts ?? []).map((text) => ['Conflicts', text]),
    ...(spec.recommends ?? []).map((text) => ['Recommends', text]),
  ];
  const blob = `/usr/share/${name}/bulk`;
  const own = [`/usr/share/${name}/readme`, ...files];
  return [
    ...tags.map(([tag, value]) => `${tag}: ${value}`),
    '%description',
    `The package ${name}.`,
    '%install',
    `for file in ${own.join(' ')}; do echo "%{buildroot}$file"; done >list`,
    'sed "s|/[^/]*$||" list | sort -u | xargs mkdir -p && xargs touch <list && xargs chmod 0755 <list',
    ...(bulk > 0 ? [`head -c ${bulk} /dev/urandom >'%{buildroot}${blob}'`] : []),
    '%files',
    ...own,
    ...(bulk > 0 ? [blob] : []),
    '',
  ].join('\n');
}

/** Builds packages into `folder/<arch>/`. */
export async function makeRpms(folder: string, specs: readonly RpmSpec[]): Promise<void> {
  const work = `${folder}.work`;
  await mkdir(work, { recursive: true });
  // rpmbuild asks whether these folders are there and then makes them: two at once fail.
  for (const { arch = 'noarch' } of specs) await mkdir(join(folder, arch), { recursive: true });
  const build = async (spec: RpmSpec): Promise<void> => {
    const file = join(
      work,
      `${spec.name}-${(spec.version ?? '1.0-1').replace(':', '_')}-${spec.arch ?? 'noarch'}.spec`,
    );
    await writeFile(file, specFile(spec));
    const defines = [
      `_topdir ${file}.top`,
      `_rpmdir ${folder}`,
      'use_source_date_epoch_as_buildtime 1',
      'clamp_mtime_to_source_date_epoch 1',
      '_buildhost builder.example',
      '__os_install_post %{nil}',
      'debug_package %{nil}',
    ];
    const words = defines.flatMap((define) => ['--define', define]);
    await run('rpmbuild', ['-bb', '--quiet', '--target', spec.arch ?? 'noarch', ...words, file], {
      env: { SOURCE_DATE_EPOCH: String(BUILT), LC_ALL: 'C' },
    });
  };
  await eachLimited(specs, build, { width: 2, signal: never });
  await shell('rm -rf "$1"', work);
}

/** (Re)makes the repository metadata of a folder. */
export async function makeMetadata(folder: string, modules?: string): Promise<void> {
  await run('createrepo_c', ['--quiet', '--no-database', folder]);
  if (modules === undefined) return;
  await writeFile(`${folder}.modules.yaml`, modules);
  await run('modifyrepo_c', ['--mdtype=modules', `${folder}.modules.yaml`, join(folder, 'repodata')]);
}

export interface SigningKey {
  /** `file://…` of the public key. */
  readonly url: string;
  /** Signs every package below a folder. */
  readonly signPackages: (folder: string) => Promise<void>;
  /** Signs `repodata/repomd.xml` of a folder. */
  readonly signMetadata: (folder: string) => Promise<void>;
}

/** A key of its own in `folder`, which only its owner may read. */
export async function makeKey(folder: string, name: string): Promise<SigningKey> {
  const home = join(folder, `${name}.gnupg`);
  const publicKey = join(folder, `${name}.asc`);
  await mkdir(home, { mode: 0o700 });
  const gpg = ['--homedir', home, '--batch', '--pinentry-mode', 'loopback', '--passphrase', ''];
  await run('gpg', [...gpg, '--quick-gen-key', `${name} <${name}@keys.example>`, 'rsa2048', 'sign', 'never']);
  await writeFile(publicKey, await run('gpg', [...gpg, '--armor', '--export']));
  await chmod(publicKey, 0o644);
  return {
    url: `file://${publicKey}`,
    signPackages: async (packages) => {
      const defines = [
        '__gpg /usr/bin/gpg',
        `_gpg_path ${home}`,
        `_gpg_name ${name}`,
        '_gpg_sign_cmd_extra_args --batch',
      ];
      const words = defines.flatMap((define) => ['--define', define]);
      const files = await shell('find "$1" -name "*.rpm" | sort', packages);
      await run('rpmsign', ['--addsign', ...words, ...files.split('\n')]);
    },
    signMetadata: async (packages) => {
      const file = join(packages, 'repodata/repomd.xml');
      await run('gpg', [...gpg, '--yes', '--detach-sign', '--armor', '--output', `${file}.asc`, file]);
    },
  };
}

/** Serves a folder as it is at the time of each request. */
export async function serveFolder(folder: string, faults: readonly Fault[] = []): Promise<WebServer> {
  return startServer(
    (asked) => {
      const file = join(folder, decodeURIComponent(asked.path.split('?', 1)[0] ?? ''));
      if (!file.startsWith(folder) || !(statSync(file, { throwIfNoEntry: false })?.isFile() ?? false)) {
        return { status: 404, body: 'no such file' };
      }
      return ranged(asked, { status: 200, body: readFileSync(file) });
    },
    { faults },
  );
}

/** The names in repository metadata that `createrepo_c` wrote. */
export async function namesInMetadata(folder: string): Promise<readonly string[]> {
  const text = await shell('gzip -dc "$1"', join(folder, 'repodata/primary.xml.gz'));
  return [...text.matchAll(/<name>([^<]*)<\/name>/g)].map(([, name = '']) => name);
}

export async function metadataPart(folder: string, name: string): Promise<string> {
  return name.endsWith('.gz')
    ? shell('gzip -dc "$1"', join(folder, 'repodata', name))
    : readFile(join(folder, 'repodata', name), 'utf8');
}
