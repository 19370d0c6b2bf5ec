/** Packages with a lock and everything that it names, and readers of what SBOMs are made of. */
import { Ajv, type ValidateFunction } from 'ajv';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { digestOf, hexOf } from '../../src/core/digest.ts';
import { parseAddonJson } from '../../src/core/package.ts';
import { formatLock, type ManifestLock } from '../../src/manifest/lock.ts';
import type { DescribedPackage } from '../../src/build/sbom/components.ts';
import type { TestPackage } from './bundles.ts';
import { packageOf, type TestFile } from './packages.ts';

const MANIFEST = '{"schemaVersion":2}';
const IMAGE = digestOf(MANIFEST);

/** Names that would break out of a package URL. */
export const HOSTILE = 'a b/../c?d=e&f#g@h%2F\u0001\u00fc';

function fileOf(file: string, name: string, version: string, arch: string, repository: string) {
  const data = `contents of ${file}`;
  return { file, name, version, arch, repository, size: data.length, digest: digestOf(data), data };
}

const DEB = fileOf('libc6_2.35_amd64.deb', 'libc6', '1:2.35+x~1', 'amd64', 'http://archive.ubuntu.com/ubuntu/');
const RPM = fileOf('git-2.rpm', 'git', '1:2.4-1.el9', 'x86_64', 'appstream');

/** The lock of a package with one of everything. */
export const LOCK: ManifestLock = {
  format: 1,
  images: [
    {
      id: 'app',
      reference: 'registry.example:5000/team/App'.toLowerCase() + ':1.0',
      digest: digestOf('index'),
      platforms: { 'linux/amd64': { digest: IMAGE, size: MANIFEST.length } },
    },
  ],
  assets: [
    { name: 'tool', source: 'https://user:hush@example.com/tool?token=hush', size: 4, digest: digestOf('tool') },
    { name: HOSTILE, source: './beside', size: 6, digest: digestOf('beside') },
  ],
  hostPackages: [
    { os: 'ubuntu-22.04', arch: 'amd64', archives: ['libc6'], deps: [], inputs: 'x', files: [DEB], required: [] },
    { os: 'rhel-9', arch: 'amd64', archives: ['git'], deps: [], inputs: 'x', files: [RPM], required: ['glibc'] },
    { os: 'rhel-9', arch: 'arm64', archives: ['git'], deps: [], inputs: 'x', files: [RPM], required: [] },
  ].map(({ files, ...row }) => ({ ...row, files: files.map(({ data: _data, ...file }) => file) })),
  containerBuilds: [
    {
      folder: 'rhel-8',
      arch: 'amd64',
      dockerfile: 'Dockerfile',
      version: '1.0',
      inputs: digestOf('inputs'),
      requires: [],
    },
  ],
};

const FILES: readonly TestFile[] = [
  { path: 'Manifest', data: '' },
  { path: 'install.sh', data: 'web() { :; }\n' },
  { path: 'assets/beside', data: 'beside' },
  { path: 'assets/tool', data: 'tool' },
  { path: 'rhel-8/Deps', data: 'bash\n' },
  { path: 'rhel-8/built.rpm', data: 'built' },
  { path: `rhel-9/archives/${RPM.file}`, data: RPM.data },
  { path: `ubuntu-22.04/archives/${DEB.file}`, data: DEB.data },
  { path: `images/blobs/sha256/${hexOf(IMAGE)}`, data: MANIFEST },
];

/** A package with this text for a lock. */
export function lockedPackage(name = 'web', lock = formatLock(LOCK)): TestPackage {
  const files = [{ path: 'Manifest.lock', data: lock }, ...FILES];
  return { name, version: '1.0.0', files, extra: { os: ['rhel-8', 'rhel-9', 'ubuntu-22.04'] } };
}

/** The same as it is read. */
export function describedPackage(lock: ManifestLock = LOCK, name = 'web'): DescribedPackage {
  const { files, extra } = lockedPackage(name);
  const { addon, plan } = packageOf(name, '1.0.0', files, extra);
  const prefix = `addons/${name}/1.0.0/`;
  const below = plan.index.entries.map(({ path, ...rest }) => ({ ...rest, path: path.slice(prefix.length) }));
  return { addon: parseAddonJson(JSON.stringify(addon), 'test'), files: below, omitted: [], lock };
}

/** What the schema of CycloneDX 1.6 says against a document; empty when it fits. */
export async function schemaProblems(document: unknown): Promise<readonly string[]> {
  const validate = (made ??= await compileSchema());
  return validate(document)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

let made: ValidateFunction | undefined;

async function compileSchema(): Promise<ValidateFunction> {
  const library = dirname(createRequire(import.meta.url).resolve('@cyclonedx/cyclonedx-library/package.json'));
  const read = async (name: string): Promise<object> =>
    JSON.parse(await readFile(join(library, 'res/schema', name), 'utf8')) as object;
  const ajv = new Ajv({ strict: false, allErrors: true });
  ajv.addFormat('iri-reference', (text: string) => !/[\s"<>\\^`{|}]/.test(text) && URL.canParse(text, 'http://base'));
  ajv.addFormat('uri', (text: string) => URL.canParse(text));
  ajv.addFormat('date-time', (text: string) => !Number.isNaN(Date.parse(text)));
  ajv.addFormat('idn-email', (text: string) => text.includes('@'));
  for (const name of ['spdx.SNAPSHOT.schema.json', 'jsf-0.82.SNAPSHOT.schema.json'])
    ajv.addSchema({ ...(await read(name)), $id: `http://cyclonedx.org/schema/${name}` });
  return ajv.compile(await read('bom-1.6.SNAPSHOT.schema.json'));
}
