/** Packages and bundles as docs/format.md has them, checked by a reader that knows that page only. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { deflateRawSync } from 'node:zlib';
import { tarHeader } from '../../../src/formats/archive/header.ts';
import { writeBundleFile } from '../../../src/ship/bundle/write/write-bundle.ts';
import { publishPackages } from '../../../src/ship/release/publish.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import * as assert from '../../support/assert.ts';
import { addon, buildAll } from '../../support/builds.ts';
import { planTestBundle, specOf } from '../../support/bundles.ts';
import { noReport } from '../../support/context.ts';
import { readByThePage, type FormatEntry } from '../../support/format.ts';
import { makeImage, makeLayer } from '../../support/images.ts';
import { noise } from '../../support/packages.ts';
import { startRegistry } from '../../support/registry-server.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('docs/format.md');

const PAGE = await readFile(new URL('../../../docs/format.md', import.meta.url), 'utf8');
const image = makeImage([makeLayer({ 'bin/x': noise(200_000, 2) }), makeLayer({ etc: 'plain '.repeat(9000) })]);
const LONG = 'long-name-'.repeat(15);

/** Two add-ons with the same image, and every kind of file. */
async function buildBoth(box: Tree) {
  await using registry = await startRegistry({ 'team/x:1': image });
  return await buildAll({ root: box.path, registry: registry.host });
}

const MANIFEST = 'image x images.example/team/x:1\nasset page ./page\nasset tool.tgz ./tool.tgz\napt24 jq\n';
const FILES = {
  page: 'text '.repeat(400_000),
  'tool.tgz': 'text '.repeat(1000),
  empty: '',
  'noise.bin': noise(70_000),
  'ümlaut.yaml': 'a: 1\n',
  [LONG]: 'x',
  'run.sh': '#!/bin/bash\n',
};

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  const sorted = fields.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(',')}}`;
}

const digest = (data: Uint8Array | string): string => `sha256:${createHash('sha256').update(data).digest('hex')}`;

function rankOf(path: string): number {
  const named = ['addon.json', 'Manifest', 'Manifest.lock', 'install.sh'].indexOf(path);
  if (named !== -1) return named;
  const [folder = ''] = path.split('/', 1);
  return 5 + ['assets', 'ubuntu-24.04', 'images'].indexOf(folder);
}

test('a package is what the page says, byte for byte', async () => {
  await using box = await tree(addon('a', MANIFEST, FILES));
  const [built] = await buildBoth(box);
  const entries = readByThePage(await readFile(built?.path ?? ''));
  const prefix = 'addons/a/1.0/';
  assert.ok(entries.every(({ path, linkTo }) => path.startsWith(prefix) && linkTo === undefined));
  const below = entries.map((entry) => ({ ...entry, path: entry.path.slice(prefix.length) }));
  const order = below.map(({ path }) => path);
  const expected = order.toSorted((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
  assert.equal(order, expected);
  checkPacking(below);
  checkIdentity(below);
  assert.equal(
    below.filter(({ pax }) => pax).map(({ path }) => path),
    [LONG, 'ümlaut.yaml'],
  );
});

/** Stored by name, as a blob, or because deflating saves little; everything else is deflated. */
function checkPacking(entries: readonly FormatEntry[]): void {
  for (const { path, data, stored } of entries) {
    if (data.byteLength === 0) {
      assert.is(stored, undefined, path);
      continue;
    }
    const byName = path.endsWith('.tgz') || path.startsWith('images/blobs/');
    const sample = data.subarray(0, 64 << 10);
    const saved = 1 - deflateRawSync(sample).byteLength / sample.byteLength;
    // Deflaters differ a little: near the border this reader does not know.
    const bomb = data.byteLength > 1 << 20 && data.byteLength > 500 * deflateRawSync(data).byteLength;
    if (byName || bomb || saved < 0.03) assert.is(stored, true, path);
    else if (saved > 0.07) assert.is(stored, false, path);
  }
  assert.ok(entries.some(({ stored }) => stored === true) && entries.some(({ stored }) => stored === false));
}

function checkIdentity(entries: readonly FormatEntry[]): void {
  const [first, ...rest] = entries;
  const text = first?.data.toString('utf8') ?? '';
  const about = JSON.parse(text) as Record<string, unknown>;
  assert.is(text, `${canonical(about)}\n`);
  const rows = rest.map(({ path, mode, data }) => [path, mode, data.byteLength, digest(data)]);
  assert.is(about['digest'], digest(canonical(rows.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)))));
  const listed = /`addon\.json` is RFC 8785 JSON[^]*?\n\n/.exec(PAGE)?.[0] ?? '';
  for (const field of Object.keys(about)) assert.ok(listed.includes(`\`${field}\``), `the page does not name ${field}`);
}

test('a bundle is what the page says, its links lead to earlier files', async ({ signal }) => {
  const [first, second] = ['one-of-a-long-name', 'two-of-a-long-name'];
  await using box = await tree({ ...addon(first, MANIFEST, FILES), ...addon(second, MANIFEST, FILES) });
  const built = await buildBoth(box);
  const store = createFolderStore(box.path);
  const options = { now: new Date(0), carry: false, commit: undefined, jobs: 1, report: noReport, signal };
  await publishPackages(built, { store, release: 'r1', ...options });
  const { plan, sources } = await planTestBundle(store, specOf({ [first]: 'latest', [second]: 'latest' }), signal);
  const written = { force: false, verify: true, report: noReport, signal };
  await writeBundleFile(plan, sources, box.at('bundle.tar.gz'), written);
  const entries = readByThePage(await readFile(box.at('bundle.tar.gz')));
  const links = entries.filter(({ linkTo }) => linkTo !== undefined);
  assert.ok(
    links.some(({ path, linkTo }) => path.startsWith(`addons/${second}/`) && linkTo?.startsWith(`addons/${first}/`)),
  );
  for (const { path, linkTo = '', pax } of links) assert.is(pax, linkTo.length > 100, path);
  assert.ok(links.some(({ pax }) => pax) && links.some(({ pax }) => !pax));
});

test('a size of 8 GiB or more stands in a pax header', () => {
  const header = (size: number) => tarHeader({ path: 'a', mode: 0o644, size, linkTo: undefined });
  assert.is(header(8 * 2 ** 30 - 1).byteLength, 512);
  assert.is(header(8 * 2 ** 30).byteLength, 512 * 3);
});

test.run();
