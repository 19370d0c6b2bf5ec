/**
 * Measures curlew beside other tools in one run, alternating, and prints Markdown.
 * usage: npm run bench -- [--only NAME]… [--rounds N] [--skip-kurl] [--upload-mb N] [--write]
 *   NAME: images, layer, bundle, delta, images-load, start, lint, packages, publish, node, preflight, library, channel, fleet,
 *   machines, serve, flood; and grid, which only runs when it is named.
 *   --write puts the result into docs/benchmarks.md.
 */
import { execa } from 'execa';
import { cpus, totalmem } from 'node:os';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startDockerd, startRegistry } from '../components/support/services.ts';
import { oracle, ROOT } from '../components/support/programs.ts';
import { benchBundle } from './bundle.ts';
import { benchChannel } from './channel.ts';
import { benchChannelCluster } from './channel-cluster.ts';
import { benchDelta } from './delta.ts';
import { benchBundleOfTwenty } from './bundle-twenty.ts';
import { benchImages, benchLayer } from './images.ts';
import { benchImagesLoad } from './images-load.ts';
import { benchFleet } from './fleet.ts';
import { benchDiff } from './fleet-diff.ts';
import { benchFlood } from './flood.ts';
import { benchGrid } from './grid.ts';
import { benchHub } from './hub.ts';
import { blobsOf, fillRegistry, setFolder } from './image-set.ts';
import { benchLibrary } from './library.ts';
import { benchMachines } from './machines.ts';
import { benchNode } from './node.ts';
import { benchOsPackages } from './os-packages.ts';
import { benchLayers } from './layers.ts';
import { benchPreflight } from './preflight.ts';
import { benchPublish, benchRelease } from './publish.ts';
import { benchReleases } from './releases.ts';
import { benchServe } from './serve.ts';
import { benchLargeLint, benchLint, benchStart } from './start.ts';
import { TOOLS } from './tools.ts';
import { benchUpload } from './upload.ts';
import { markdownSection, type Section } from './report.ts';
import { CURLEW, type Place } from './ways.ts';

const SECTIONS = [
  'images',
  'layer',
  'bundle',
  'delta',
  'images-load',
  'start',
  'lint',
  'packages',
  'publish',
  'node',
  'layers',
  'preflight',
  'library',
  'channel',
  'fleet',
  'machines',
  'serve',
  'flood',
] as const;
/** Takes 20 minutes, and root: only if it is named. */
const GRID = 'grid';

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [...SECTIONS] },
    rounds: { type: 'string', default: '5' },
    'upload-mb': { type: 'string', default: '2000' },
    'skip-kurl': { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const unknown = values.only.filter((name) => ![...SECTIONS, GRID].some((known) => known === name));
if (unknown.length > 0) throw new Error(`--only ${unknown.join(', ')}: known are ${[...SECTIONS, GRID].join(', ')}`);
const wants = (...names: readonly string[]): boolean => names.some((name) => values.only.includes(name));
const rounds = Number(values.rounds);
const home = join(ROOT, '.curlew/bench');
const work = join(home, 'work');
const say = (text: string): void => console.error(text);

async function setUp(): Promise<void> {
  const packages = [
    'containerd',
    'curl',
    'time',
    'docker-registry',
    'skopeo',
    ...(values['skip-kurl'] ? [] : ['docker.io']),
  ];
  await execa('scripts/tools', ['apt', ...packages], { cwd: ROOT, stdout: 'ignore' });
  if (wants('packages')) await setUpPackages();
  if (wants('serve')) await execa('scripts/tools', ['apt', 'nginx-light'], { cwd: ROOT, stdout: 'ignore' });
  const tools = new Set(Object.entries(TOOLS).flatMap(([name, names]) => (wants(name) ? names : [])));
  if (tools.size > 0) await execa('scripts/tools', [...tools], { cwd: ROOT, stdout: 'ignore' });
  await execa('npm', ['run', '--silent', 'build'], { cwd: ROOT });
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
}

async function setUpPackages(): Promise<void> {
  const tools = ['rpm', 'dnf', 'createrepo-c', 'gpg', 'gpg-agent', 'dpkg-dev', 'debootstrap', 'busybox-static'];
  await execa('scripts/tools', ['apt', 'docker.io', ...tools], { cwd: ROOT, stdout: 'ignore' });
}

async function withRegistry(found: Section[]): Promise<void> {
  const { folder, fresh } = await setFolder(home);
  await using registry = await startRegistry(folder);
  if (fresh) {
    say('making the images, once');
    await fillRegistry(registry.host, folder);
  }
  const place: Place = { host: registry.host, storage: folder, blobs: await blobsOf(registry.host), work };
  if (wants('images')) {
    const kurl = values['skip-kurl'] ? undefined : startDockerd;
    found.push(await benchImages(place, home, { rounds, startDockerd: kurl, say }));
  }
  if (wants('layer')) found.push(await benchLayer(place, home, { rounds, say }));
  if (wants('bundle')) found.push(await benchBundle(place, home, { rounds, say }));
  if (wants('images-load')) found.push(await benchImagesLoad(place, home, { rounds, say }));
}

async function machine(): Promise<string> {
  const version = async (command: string, ...args: readonly string[]): Promise<string> => {
    const { stdout } = await execa(command, args, { reject: false });
    return (stdout ?? '').split('\n')[0] ?? '';
  };
  const [processor] = cpus();
  const lines = [
    `${cpus().length} × ${processor?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 1e9)} GB memory`,
    `Node ${process.version}, ${await version('skopeo', '--version')}, crane ${await version(oracle('crane'), 'version')}`,
  ];
  return `${lines.join('; ')}.`;
}

await setUp();
const found: Section[] = [];
if (wants('images', 'layer', 'bundle', 'images-load')) await withRegistry(found);
if (wants('delta')) found.push(await benchDelta(home, { rounds, say }));
if (wants('bundle')) found.push(await benchBundleOfTwenty(work, home, { rounds, say }));
if (wants('start')) found.push(await benchStart({ rounds, say }));
if (wants('lint')) {
  found.push(await benchLint(home, { rounds, say }));
  found.push(await benchLargeLint(home, { rounds, say }));
}
if (wants('packages')) found.push(await benchOsPackages(home, { rounds, say }));
if (wants('publish')) {
  found.push(await benchPublish(home, { rounds, say }));
  found.push(await benchRelease(home, { rounds, say }));
  found.push(await benchUpload(home, { rounds, say, megabytes: Number(values['upload-mb']) }));
}
if (wants('node')) found.push(await benchNode(home, { rounds, say }));
if (wants('layers')) found.push(await benchLayers({ rounds, say }));
if (wants('preflight')) found.push(await benchPreflight({ rounds, say }));
if (wants('library')) found.push(await benchLibrary({ rounds, say }));
if (wants('channel')) {
  found.push(benchChannel({ rounds, say }));
  found.push(await benchChannelCluster(home, { rounds, say }));
}
if (wants('fleet')) {
  found.push(
    benchFleet({ rounds, say }),
    await benchHub({ work, say, main: CURLEW }),
    await benchDiff({ say, main: CURLEW }),
  );
  found.push(await benchReleases({ folder: join(work, 'releases'), say, main: CURLEW }));
}
if (wants('machines')) found.push(benchMachines({ rounds, say }));
if (wants('serve')) found.push(await benchServe(home, { rounds, say }));
if (wants('flood')) found.push(await benchFlood(home, { say }));
if (wants(GRID)) found.push(await benchGrid(say));
await rm(work, { recursive: true, force: true });

const { version: tool } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const head = `# Benchmarks

Made by \`npm run bench -- --write\` with curlew ${tool}. ${await machine()} Each figure is the median of ${rounds} rounds with
minimum and maximum. The programs in a table take turns in every round, and ratios compare runs of the same round. The registry
is Debian's, on loopback. The page cache is never emptied between runs. Memory is that of the largest process; for Docker it
does not include the daemon.`;
const text = `${[head, ...found.map(markdownSection)].join('\n\n')}\n`;
console.log(text);

/** What people wrote below the tables stays. */
async function writePage(page: string): Promise<void> {
  const path = join(ROOT, 'docs/benchmarks.md');
  const before = await readFile(path, 'utf8').catch(() => '');
  const at = before.indexOf('\n## Where a target is missed\n');
  await writeFile(path, `${page.trimEnd()}\n${at === -1 ? '' : before.slice(at)}`);
}

if (values.write) await writePage(text);
