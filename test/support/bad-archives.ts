/** Packages and bundles that nobody may take: each lies about what it is, or is hostile. Payloads are undamaged. */
import { paddingOf, TAR_END, tarHeader } from '../../src/formats/archive/header.ts';
import { storedMember } from '../../src/formats/archive/member.ts';
import { placeArchive } from '../../src/formats/archive/place.ts';
import { storedPacking } from '../../src/formats/archive/pack.ts';
import { formatFooter, tocJson } from '../../src/formats/archive/toc.ts';
import { formatBundleJson, type BundleJson } from '../../src/core/bundle.ts';
import { digestOf } from '../../src/core/digest.ts';
import { TOC_NAME } from '../../src/core/layout.ts';
import { formatAddonJson } from '../../src/core/package.ts';
import { specOf } from './node-bundles.ts';
import { tracerPackage } from './node-install.ts';
import { hostileBytes, OMITTED_LIES } from './omitted.ts';
import { archiveOf, noise, packageOf, type TestFile } from './packages.ts';

/** Names that no entry may have. */
export const BAD_PATHS: readonly string[] = [
  '../x',
  '/etc/x',
  'a/../../x',
  'a//b',
  './a',
  'a/./b',
  'a\\b',
  'a\u0000b',
  'a\nb',
  'x'.repeat(300),
];

/** Names that no archive may have together. */
export const BAD_SETS: readonly (readonly [string, readonly string[]])[] = [
  ['two entries of one name', ['a', 'a']],
  ['a file that is a folder too', ['a', 'a/b']],
  ['a folder that is a file too', ['a/b', 'a']],
  ['an entry named like the table of contents', ['stargz.index.json']],
];

const SPEC = specOf([{ name: 'aaa', version: '1.0.0' }]);
const FILES: readonly TestFile[] = tracerPackage('aaa').files;
const { addon } = packageOf('aaa', '1.0.0', FILES);
const JSON_TEXT = formatAddonJson(addon);
const BOM = '\ufeff';

interface Parts {
  readonly prefix?: string;
  readonly json?: Uint8Array | string | undefined;
  readonly files?: readonly TestFile[];
  readonly root?: readonly TestFile[];
}

/** A package with a spec, in which something of this is not as it should be. */
function made(parts: Parts): ReturnType<typeof archiveOf> {
  const { prefix = 'addons/aaa/1.0.0/', json = JSON_TEXT, files = FILES, root } = parts;
  const own = files.map((file) => ({ ...file, path: prefix + file.path }));
  const first = root ?? [{ path: 'installer.yaml', data: SPEC }];
  return archiveOf([...first, { path: `${prefix}addon.json`, data: json }, ...own]);
}

/** The same archive with another text as its table of contents. */
function withToc(change: (text: string) => string | Uint8Array): Buffer {
  const { bytes, plan } = made({});
  const { entries, tocOffset } = plan.index;
  const text = Buffer.from(change(Buffer.from(tocJson(entries)).toString()));
  const header = tarHeader({ path: TOC_NAME, mode: 0o644, size: text.byteLength, linkTo: undefined });
  const tar = Buffer.concat([header, text, new Uint8Array(paddingOf(text.byteLength) + TAR_END)]);
  return Buffer.concat([bytes.subarray(0, tocOffset), storedMember(tar), formatFooter(tocOffset)]);
}

/** A package with a bundle.json that says something of it. */
function withBundleJson(change: (json: BundleJson) => BundleJson | string): Buffer {
  const { name, version, tree, arch, digest } = addon;
  const described = { name, version, tree, arch, digest, requested: version, sha256: digestOf(''), size: 1 };
  const installer = digestOf(SPEC);
  const json = { format: 1, release: 'r1', arch, installer, packages: [described], tool: '1.2.3' } as const;
  const changed = change(json);
  const data = typeof changed === 'string' ? changed : formatBundleJson(changed);
  const root = [
    { path: 'bundle.json', data },
    { path: 'installer.yaml', data: SPEC },
  ];
  return made({ root }).bytes;
}

function emptyWithOtherDigest(): Buffer {
  const entry = {
    path: 'addons/aaa/1.0.0/a',
    mode: 0o644,
    size: 0,
    digest: digestOf('x'),
    ...storedPacking(0),
  } as const;
  const { index, pieces } = placeArchive([entry]);
  const bytes = Buffer.alloc(index.size);
  for (const { offset, data } of pieces) bytes.set(data, offset);
  return bytes;
}

function twice(text: string, key: string): string {
  const at = text.indexOf(`"${key}":`);
  return `${text.slice(0, at)}"${key}":null,${text.slice(at)}`;
}

interface NamedArchive {
  readonly title: string;
  readonly bytes: Buffer;
}

/** What every command must take. */
export function goodArchives(): readonly NamedArchive[] {
  const all: Readonly<Record<string, Buffer>> = {
    'a package with a spec': made({}).bytes,
    'a table of contents with a field that nobody knows': withToc((text) =>
      text.replace('{', '{"later":{"a":1,"b":[]},'),
    ),
    'a bundle with its bundle.json': withBundleJson((json) => json),
    'a file that deflates well, and is small': made(withFile(Buffer.alloc(1 << 20))).bytes,
  };
  return Object.entries(all).map(([title, bytes]) => ({ title, bytes }));
}

/** The parts of a package with one more file, which fits its addon.json. */
function withFile(data: Buffer): Parts {
  const files = [...FILES, { path: 'data/large', data, deflated: true }];
  return { files, json: formatAddonJson(packageOf('aaa', '1.0.0', files).addon) };
}

/** What no command may take. */
export function badArchives(): readonly NamedArchive[] {
  const whole = made({}).bytes;
  const [script] = FILES;
  const all: Readonly<Record<string, Buffer>> = {
    'an addon.json of another version': made({ prefix: 'addons/aaa/2.0.0/' }).bytes,
    'an addon.json of another name': made({ prefix: 'addons/bbb/1.0.0/' }).bytes,
    'an addon.json of the other tree': made({ prefix: 'packages/aaa/1.0.0/' }).bytes,
    'an addon.json of other files': made({ files: FILES.map((file) => ({ ...file, data: 'evil' })) }).bytes,
    'a file that addon.json does not know': made({ files: [...FILES, { path: 'evil.sh', data: 'evil' }] }).bytes,
    'a file of another mode': made({ files: FILES.map((file) => ({ ...file, mode: 0o755 })) }).bytes,
    'a file that is missing': made({ files: FILES.filter((file) => file !== script) }).bytes,
    'an addon.json that is no JSON': made({ json: '{' }).bytes,
    'an addon.json behind a byte order mark': made({ json: BOM + JSON_TEXT }).bytes,
    'an addon.json with a key twice': made({ json: twice(JSON_TEXT, 'digest') }).bytes,
    'an addon.json that is no UTF-8': made({ json: Buffer.from(JSON_TEXT.replace('0.0.0', '0.0.\u00ff'), 'latin1') })
      .bytes,
    'an addon.json of another format': made({ json: JSON_TEXT.replace('"format":1', '"format":2') }).bytes,
    'an addon.json with fields of other types': made({ json: JSON_TEXT.replace('"hooks":[]', '"hooks":{}') }).bytes,
    'an addon.json that is too large': made({
      json: `${JSON_TEXT}${noise(9 << 20)
        .toString('hex')
        .slice(0, 9 << 20)}`,
    }).bytes,
    'a package without addon.json': archiveOf(FILES.map((file) => ({ ...file, path: `addons/aaa/1.0.0/${file.path}` })))
      .bytes,
    'a compression bomb': made(withFile(Buffer.alloc(4 << 20))).bytes,
    'an empty file with the digest of another content': emptyWithOtherDigest(),
    'a table of contents behind a byte order mark': withToc((text) => BOM + text),
    'a table of contents with a key of its own twice': withToc((text) => twice(text, 'entries')),
    'a table of contents with a key of an entry twice': withToc((text) => twice(text, 'digest')),
    'a table of contents that is no UTF-8': withToc((text) => Buffer.from(text.replace('aaa', '\u00e4aa'), 'latin1')),
    'a table of contents of another version': withToc((text) => text.replace('"version":1', '"version":2')),
    'a table of contents that is no JSON': withToc((text) => text.slice(1)),
    'an archive that is cut off': whole.subarray(0, whole.byteLength - 1),
    'bytes behind the end': Buffer.concat([whole, Buffer.alloc(512)]),
    'a bundle.json with another digest': withBundleJson((json) => {
      return { ...json, packages: json.packages.map((one) => ({ ...one, digest: digestOf('other') })) };
    }),
    'a bundle.json that names a package which is not there': withBundleJson((json) => {
      return { ...json, packages: json.packages.flatMap((one) => [one, { ...one, name: 'bbb' }]) };
    }),
    'a bundle.json that does not name a package which is there': withBundleJson((json) => ({ ...json, packages: [] })),
    'a bundle.json that is no JSON': withBundleJson(() => '{'),
    'a bundle.json with a key twice': withBundleJson((json) => twice(formatBundleJson(json), 'release')),
    'a bundle.json behind a byte order mark': withBundleJson((json) => BOM + formatBundleJson(json)),
    'a bundle.json of another format': withBundleJson((json) =>
      formatBundleJson(json).replace('"format":1', '"format":9'),
    ),
    'a bundle.json with a package twice': withBundleJson((json) => {
      return { ...json, packages: [...json.packages, ...json.packages] };
    }),
    'a spec that is none': made({ root: [{ path: 'installer.yaml', data: 'kind: Nothing' }] }).bytes,
    'a spec that is too large': made({
      root: [{ path: 'installer.yaml', data: `${SPEC}#${noise(3 << 20).toString('hex')}` }],
    }).bytes,
  };
  return [
    ...Object.entries(all).map(([title, bytes]) => ({ title, bytes })),
    ...BAD_PATHS.map((path) => {
      const title = `an entry named ${JSON.stringify(path.slice(0, 20))}`;
      return { title, bytes: archiveOf([{ path, data: 'x' }]).bytes };
    }),
    ...BAD_SETS.map(([title, paths]) => {
      return { title, bytes: archiveOf(paths.map((path) => ({ path, data: 'x' }))).bytes };
    }),
    ...OMITTED_LIES.map(({ title, given, note }) => {
      return { title: `left out, by its own word: ${title}`, bytes: hostileBytes(given, note) };
    }),
  ];
}
