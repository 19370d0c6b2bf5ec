/**
 * Makes the deb, the rpm and the container image of curlew from its npm package: the same files, the pinned Node to run them, and
 * the executable for nodes of the same architecture. Same inputs and SOURCE_DATE_EPOCH, same bytes.
 * usage: tsx scripts/build-linux-packages.ts NPM-PACKAGE FOLDER [ARCH…]   (default: all architectures)
 * environment: CURLEW_MAINTAINER, who answers for the packages, as `NAME <MAIL>`, which both forms show;
 *   SOURCE_DATE_EPOCH, the time of all files in seconds (default: the time of the commit);
 *   CURLEW_GZIP_LEVEL, 1 to 9, how hard nfpm compresses (default: its own)
 */
import { execa } from 'execa';
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { constants, gzipSync } from 'node:zlib';
import { extract } from 'tar';
import { packedExecutableName } from '../src/core/layout.ts';
import { ARCHES, type Arch } from '../src/core/ref.ts';
import { toolVersion } from '../src/own/version.ts';
import { manPages } from './docs/man-pages.ts';
import { CURLEW, debianEntries, SYSTEM } from './helper-image/debian.ts';
import { readMaintainer } from './linux-packages/maintainer.ts';
import { pinnedNode } from './node-tool/node-packages.ts';
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
const RECIPE = join(import.meta.dirname, 'linux-packages');
const OWN = 'usr/lib/curlew';
const RPM_ARCHES: Readonly<Record<Arch, string>> = { amd64: 'x86_64', arm64: 'aarch64' };
/** Programs of busybox that the launcher, and scripts of add-on repositories, use. */
const APPLETS = `
  awk basename cat chmod cp cut date dirname env find grep head id ln ls mkdir mktemp mv printf pwd readlink rm rmdir sed sh
  sha256sum sleep sort stat tail tar tee test touch tr uname uniq wc xargs
`
  .trim()
  .split(/\s+/);

const signal = new AbortController().signal;

/** Says on standard error what begins, and how long it took: compressing takes minutes. */
async function step<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  console.error(`${what} …`);
  const since = performance.now();
  const result = await work();
  console.error(`${what}: ${((performance.now() - since) / 1000).toFixed(0)} s`);
  return result;
}

function maintainer(): string {
  return readMaintainer(process.env['CURLEW_MAINTAINER']);
}

/** What both packages and the image have, below `tree`. Man pages are in packages only: the image has no man. */
async function writeTree(tree: string, npmPackage: string, arch: Arch): Promise<void> {
  const own = join(tree, OWN);
  await mkdir(join(own, 'bin'), { recursive: true });
  await extract({ file: npmPackage, cwd: own, strip: 1 });
  const { node, license } = await pinnedNode(join(ROOT, '.curlew/node'), arch, { signal });
  await writeFile(join(own, 'bin/node'), node, { mode: 0o755 });
  await writeFile(join(own, 'bin/node-license.txt'), license);
  const executable = packedExecutableName(arch);
  await copyFile(join(ROOT, 'dist/node', executable), join(own, 'dist/node', executable));
  await mkdir(join(tree, 'usr/bin'), { recursive: true });
  await copyFile(join(RECIPE, 'curlew'), join(tree, 'usr/bin/curlew'));
  for (const [folder, from, name] of [
    ['usr/share/bash-completion/completions', 'curlew.bash', 'curlew'],
    ['usr/share/fish/vendor_completions.d', 'curlew.fish', 'curlew.fish'],
  ] as const) {
    await mkdir(join(tree, folder), { recursive: true });
    await copyFile(join(own, 'scripts/completion', from), join(tree, folder, name));
  }
}

/** Returns the lines of the recipe for them: rpm marks them as documentation, which it can leave out, and nfpm only file by file. */
async function writeManPages(folder: string): Promise<string> {
  await mkdir(folder);
  const pages = await manPages();
  for (const [name, text] of pages) await writeFile(join(folder, `${name}.gz`), gzip(text));
  const lines = [...pages.keys()].map((name) => {
    const place = `src: man/${name}.gz, dst: /usr/share/man/man1/${name}.gz`;
    return `  - { ${place}, packager: rpm, type: doc, file_info: { mode: 0o644 } }\n`;
  });
  return lines.join('');
}

/** Without a name or a time. */
function gzip(text: string): Buffer {
  return gzipSync(text, { level: constants.Z_BEST_COMPRESSION });
}

/** Gives everything below a folder the same time, and modes that do not depend on this process. */
async function settle(folder: string, epoch: number): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const isOpen = entry.isDirectory() || ((await stat(path)).mode & 0o100) !== 0;
    await chmod(path, isOpen ? 0o755 : 0o644);
    await utimes(path, epoch, epoch);
  }
}

async function treeEntries(tree: string): Promise<readonly MadeEntry[]> {
  const entries: MadeEntry[] = [];
  for (const entry of await readdir(tree, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile())
      entries.push(madeFile(relative(tree, path), (await stat(path)).mode & 0o777, await readFile(path)));
  }
  return entries;
}

/** The system and Node, which seldom change, are a layer of their own. */
async function image(tree: string, version: string, arch: Arch): Promise<MadeImage> {
  const system = [
    ...(await debianEntries(arch, join(ROOT, '.curlew/helper-image/debs'), CURLEW)),
    ...APPLETS.map((name) => madeLink(`usr/bin/${name}`, 'busybox')),
    ...SYSTEM,
  ];
  const isNode = ({ path }: MadeEntry): boolean => path.startsWith(`${OWN}/bin/`);
  const own = await treeEntries(tree);
  const config = {
    Entrypoint: ['/usr/bin/curlew'],
    Env: ['PATH=/usr/bin', 'HOME=/root'],
    WorkingDir: '/work',
    Labels: { 'org.opencontainers.image.title': 'curlew', 'org.opencontainers.image.version': version },
  };
  return makeImage(arch, config, [
    withFolders([...system, ...own.filter(isNode)], ['root/', 'usr/lib64/', 'usr/sbin/', 'work/']),
    withFolders(own.filter((entry) => !isNode(entry))),
  ]);
}

interface Packed {
  readonly version: string;
  readonly arch: Arch;
  readonly epoch: number;
  /** More lines of the recipe's contents. */
  readonly pages: string;
}

/** Runs nfpm in a folder with what its recipe names, once for each form: most of the time it compresses. */
async function packages(work: string, to: string, { version, arch, epoch, pages }: Packed): Promise<void> {
  const forms = [
    ['deb', `curlew_${version}_${arch}.deb`],
    ['rpm', `curlew-${version}.${RPM_ARCHES[arch]}.rpm`],
  ] as const;
  const env = { ARCH: arch, VERSION: version, MAINTAINER: maintainer(), SOURCE_DATE_EPOCH: String(epoch) };
  const level = process.env['CURLEW_GZIP_LEVEL'];
  const recipe = await readFile(join(RECIPE, 'nfpm.yaml'), 'utf8');
  const own = level === undefined ? recipe : recipe.replaceAll(/(?<=compression: gzip)$/gm, `:${level}`);
  await writeFile(join(work, 'nfpm.yaml'), own.replace(/(?<=^contents:\n)/m, pages));
  await Promise.all(
    forms.map(async ([packager, name]) => {
      const words = ['--config', 'nfpm.yaml', '--packager', packager, '--target', join(to, name)];
      const nfpm = join(ROOT, '.curlew/tools/bin/nfpm');
      await step(`compress ${name}`, async () => execa(nfpm, ['package', ...words], { cwd: work, env }));
    }),
  );
}

async function sourceDate(): Promise<number> {
  const given = process.env['SOURCE_DATE_EPOCH'];
  if (given !== undefined && /^\d{1,10}$/.test(given)) return Number(given);
  const { stdout } = await execa('git', ['log', '-1', '--format=%ct'], { cwd: ROOT });
  return Number(stdout);
}

/** Debian's form of a list of changes. */
function changelog(version: string, epoch: number): string {
  const date = new Date(epoch * 1000).toUTCString().replace('GMT', '+0000');
  return `curlew (${version}) stable; urgency=medium\n\n  * See CHANGELOG.md of curlew.\n\n -- ${maintainer()}  ${date}\n`;
}

async function main(): Promise<void> {
  const [npmPackage, folder, ...words] = process.argv.slice(2);
  if (npmPackage === undefined || folder === undefined) throw new Error('build-linux-packages.ts NPM-PACKAGE FOLDER');
  maintainer();
  const version = toolVersion();
  const epoch = await sourceDate();
  const to = resolve(folder);
  const images = new Map<Arch, MadeImage>();
  for (const arch of ARCHES.filter((one) => words.length === 0 || words.includes(one))) {
    const work = await mkdtemp(join(ROOT, '.curlew/linux-package-'));
    try {
      await step(`collect the files for ${arch}`, async () => writeTree(join(work, 'tree'), resolve(npmPackage), arch));
      const pages = await writeManPages(join(work, 'man'));
      for (const name of ['copyright', 'lintian-overrides']) await copyFile(join(RECIPE, name), join(work, name));
      await copyFile(join(ROOT, 'LICENSE'), join(work, 'LICENSE'));
      await copyFile(join(ROOT, 'scripts/completion/curlew.zsh'), join(work, '_curlew'));
      await writeFile(join(work, 'changelog.gz'), gzip(changelog(version, epoch)));
      await settle(work, epoch);
      const made = await Promise.all([
        step(`make the layers of the image for ${arch}`, async () => image(join(work, 'tree'), version, arch)),
        packages(work, to, { version, arch, epoch, pages }),
      ]);
      images.set(arch, made[0]);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }
  const name = `localhost/curlew:${version}`;
  const file = `curlew-${version}-image.tar`;
  await step(`write ${file}`, async () => writeFile(join(to, file), imageArchive(name, version, images)));
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
