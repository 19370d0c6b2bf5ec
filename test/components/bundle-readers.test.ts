/** Bundles, whole and in parts, in the hands of other readers; and the reader of docs/examples, which is one of them. */
import { execa } from 'execa';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { paddingOf, TAR_END, tarHeader } from '../../src/formats/archive/header.ts';
import { storedMember } from '../../src/formats/archive/member.ts';
import { openFileSource, readIndex, readTocText } from '../../src/formats/archive/read.ts';
import { FOOTER_SIZE, formatFooter } from '../../src/formats/archive/toc.ts';
import { writeBundleFile } from '../../src/ship/bundle/write/write-bundle.ts';
import { planSource } from '../../src/ship/bundle/write/plan-source.ts';
import { writeParts } from '../../src/ship/bundle/parts/split-write.ts';
import { TOC_NAME } from '../../src/core/layout.ts';
import * as assert from '../support/assert.ts';
import { planTestBundle, publishTestPackages, specOf } from '../support/bundles.ts';
import { noReport } from '../support/context.ts';
import { noise } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { cannotRun, oracle, ROOT, run, shell } from './support/programs.ts';

const test = suite('bundles in other readers', { timeoutMs: 180_000 });

const READER = join(ROOT, 'docs/examples/read-bundle.py');
const SHARED = noise(300_000, 7);
const LONG = `assets/${'long/'.repeat(40)}name-ä`;

interface Listed {
  readonly name: string;
  readonly mode: number;
  readonly size: number;
  readonly sha256: string;
}

let box: Tree;
/** What is in the bundle, by its own table of contents. */
let expected: readonly Listed[];
let digest: string;
/** Hard links, and what they lead to. */
let links: ReadonlyMap<string, string>;
const bundle = (): string => box.at('b.tar.gz');

function sorted(rows: readonly Listed[]): readonly Listed[] {
  return rows
    .filter(({ name }) => name !== TOC_NAME)
    .map(({ name, mode, size, sha256 }) => ({ name, mode, size, sha256 }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function fromJsonLines(text: string): readonly Listed[] {
  return sorted(text.split('\n').map((line) => JSON.parse(line) as Listed));
}

function fromReader(text: string): readonly Listed[] {
  const rows = text.split('\n').flatMap((line) => {
    const [, mode = '', size = '', sha256 = '', name = ''] = /^(\d{4}) +(\d+) sha256:(\w+) (.+)$/.exec(line) ?? [];
    return name === '' ? [] : [{ name, mode: Number.parseInt(mode, 8), size: Number(size), sha256 }];
  });
  return sorted(rows);
}

async function fromFolder(folder: string): Promise<readonly Listed[]> {
  const rows: Listed[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue;
    const path = join(entry.parentPath, entry.name);
    const data = await readFile(path);
    const sha256 = createHash('sha256').update(data).digest('hex');
    rows.push({ name: relative(folder, path), mode: (await stat(path)).mode & 0o7777, size: data.byteLength, sha256 });
  }
  return sorted(rows);
}

async function extracted(program: string, file: string, into: string): Promise<readonly Listed[]> {
  await mkdir(box.at(into));
  await run(program, ['-xpzf', file, '-C', box.at(into)], { env: { LC_ALL: 'C.UTF-8' } });
  return fromFolder(box.at(into));
}

/** What the reader of the examples says of a file that it must refuse. */
async function refusal(file: string): Promise<string> {
  const { exitCode, stderr } = await execa('python3', [READER, file], { reject: false, stdin: 'ignore' });
  assert.is(exitCode, 1, stderr);
  assert.not.match(stderr, 'Traceback');
  return stderr;
}

/** The bundle with another table of contents. */
async function withToc(edit: (rows: Record<string, unknown>[]) => void): Promise<string> {
  const signal = new AbortController().signal;
  await using source = await openFileSource(bundle());
  const toc = JSON.parse(Buffer.from(await readTocText(source, { signal })).toString()) as {
    entries: Record<string, unknown>[];
  };
  const { tocOffset } = await readIndex(source, { signal });
  edit(toc.entries);
  const json = Buffer.from(JSON.stringify(toc));
  const header = tarHeader({ path: TOC_NAME, mode: 0o644, size: json.byteLength, linkTo: undefined });
  const member = storedMember(Buffer.concat([header, json, new Uint8Array(paddingOf(json.byteLength) + TAR_END)]));
  const path = box.at('hostile.tar.gz');
  const before = (await readFile(bundle())).subarray(0, tocOffset);
  await writeFile(path, Buffer.concat([before, member, formatFooter(tocOffset)]));
  return path;
}

const reason = cannotRun('tar', 'bsdtar', 'gzip', 'python3', 'sha256sum', oracle('estargz'));

if (reason === undefined) {
  test.before(async () => {
    const signal = new AbortController().signal;
    box = await tree({ 'parts/.keep': '' });
    const files = [
      { path: 'install.sh', data: '#!/bin/sh\n', mode: 0o755 },
      { path: 'assets/empty', data: '' },
      { path: 'images/blobs/sha256/a', data: SHARED },
      { path: LONG, data: 'deflated '.repeat(9000) },
    ] as const;
    const packages = ['one', 'two'].map((name) => ({ name, version: '1.0.0', files }));
    const store = await publishTestPackages(box, packages, signal);
    const { plan, sources } = await planTestBundle(store, specOf({ one: '1.0.0', two: 'latest' }), signal);
    const common = { force: false, verify: true, report: noReport, signal };
    await writeBundleFile(plan, sources, bundle(), common);
    const { index, size } = plan.splice;
    const source = planSource('b.tar.gz', plan.splice, sources);
    const whole = { name: 'b.tar.gz', source, index };
    await writeParts(whole, { ...common, folders: [box.at('parts')], limit: Math.ceil(size / 7) });
    links = new Map(index.entries.flatMap(({ path, linkTo }) => (linkTo === undefined ? [] : [[path, linkTo]])));
    assert.is(links.size, 2);
    digest = index.tocDigest;
    expected = sorted(
      index.entries.map((entry) => ({ ...entry, name: entry.path, sha256: entry.digest.slice('sha256:'.length) })),
    );
  });
  test.after(async () => box[Symbol.asyncDispose]());

  test('GNU tar unpacks it, hard links and all', async () => {
    assert.equal(await extracted('tar', bundle(), 'gnu'), expected);
    const [one, two] = ['one', 'two'].map((name) => box.at(`gnu/addons/${name}/1.0.0/images/blobs/sha256/a`));
    assert.is((await stat(one ?? '')).ino, (await stat(two ?? '')).ino);
  });

  test('bsdtar unpacks the same', async () => {
    assert.equal(await extracted('bsdtar', bundle(), 'bsd'), expected);
  });

  test('Python’s tarfile reads the same', async () => {
    assert.equal(fromJsonLines(await run('python3', [join(ROOT, 'test/oracles/list.py'), bundle()])), expected);
  });

  test('the eStargz reader of containerd verifies every chunk, by the digest of the contents', async () => {
    // It shows a hard link as the entry that it leads to.
    const leading = expected.map((row) => ({ ...row, name: links.get(row.name) ?? row.name }));
    assert.equal(fromJsonLines(await run(oracle('estargz'), [bundle(), digest])), sorted(leading));
  });

  test('gzip finds nothing wrong', async () => {
    await run('gzip', ['-t', bundle()]);
  });

  test('the reader of the examples lists and verifies the same in forty lines', async () => {
    const lines = (await readFile(READER, 'utf8')).trimEnd().split('\n');
    assert.ok(lines.length <= 40, `${lines.length} lines`);
    const text = await run('python3', [READER, bundle()]);
    assert.equal(fromReader(text), expected);
    assert.match(text, new RegExp(`^contents ${digest}$`, 'm'));
    const package_ = box.at('out/one-1.0.0.tar.gz');
    assert.equal(
      fromReader(await run('python3', [READER, package_])).map(({ name }) => name),
      expected.flatMap(({ name }) => (name.startsWith('addons/one/') ? [name] : [])),
    );
  });

  test('it extracts one entry alone, a hard link and an empty one too', async () => {
    for (const [path, content] of [
      ['addons/two/1.0.0/images/blobs/sha256/a', SHARED],
      [`addons/one/1.0.0/${LONG}`, Buffer.from('deflated '.repeat(9000))],
      ['addons/two/1.0.0/assets/empty', Buffer.alloc(0)],
    ] as const) {
      const sum = await shell('python3 "$1" "$2" "$3" | sha256sum', READER, bundle(), path);
      assert.is(sum.slice(0, 64), createHash('sha256').update(content).digest('hex'), path);
    }
    const { exitCode } = await execa('python3', [READER, bundle(), 'none'], { reject: false });
    assert.is(exitCode, 1);
  });

  test('parts that cat joins are the bundle, and sha256sum proves them', async () => {
    await shell('cd "$1" && sha256sum --check --strict --quiet b.tar.gz.parts.sha256', box.at('parts'));
    await shell('cat "$1"/b.tar.gz.part-* | cmp - "$2"', box.at('parts'), bundle());
    await shell('cat "$1"/b.tar.gz.part-* | tar -tzf - >/dev/null', box.at('parts'));
  });

  test('it refuses what is damaged, wherever a payload or the end is hit', async () => {
    const good = await readFile(bundle());
    const signal = new AbortController().signal;
    await using source = await openFileSource(bundle());
    const { entries, tocOffset } = await readIndex(source, { signal });
    const payloads = entries.filter(({ packed }) => packed > 0);
    const places = [
      ...payloads.slice(-4).flatMap(({ offset, packed }) => [offset, offset + (packed >> 1), offset + packed - 1]),
      tocOffset,
      tocOffset + 700,
      good.byteLength - FOOTER_SIZE - 1,
      good.byteLength - FOOTER_SIZE,
      good.byteLength - 30,
      good.byteLength - 1,
    ];
    const path = box.at('damaged.tar.gz');
    for (const at of places) {
      const bad = Buffer.from(good);
      bad[at] = (bad[at] ?? 0) ^ 1;
      await writeFile(path, bad);
      await refusal(path);
    }
    for (const bad of [good.subarray(0, -1), good.subarray(1), Buffer.concat([good, Buffer.of(0)]), Buffer.alloc(0)]) {
      await writeFile(path, bad);
      assert.match(await refusal(path), /no footer|not one whole|incorrect/);
    }
  });

  test('it refuses tables of contents that lie', async () => {
    const last = (rows: Record<string, unknown>[]): Record<string, unknown> =>
      rows.findLast(({ packed }) => packed !== undefined) ?? {};
    for (const [message, edit] of [
      ['no proper entry', (rows) => (last(rows)['name'] = '../../etc/cron.d/x')],
      ['no proper entry', (rows) => (last(rows)['name'] = '/etc/passwd')],
      ['no proper entry', (rows) => (last(rows)['name'] = 'a\u001b[2J')],
      ['no proper entry', (rows) => rows.push({ ...rows[0] })],
      ['no proper entry', (rows) => (last(rows)['offset'] = 2 ** 40)],
      ['no proper entry', (rows) => (last(rows)['offset'] = 0)],
      ['link', (rows) => Object.assign(last(rows), { type: 'hardlink', linkName: 'later' })],
      ['link', (rows) => (last(rows)['type'] = 'symlink')],
      ['larger than its size', (rows) => (last(rows)['size'] = 1)],
      ['damaged', (rows) => (last(rows)['size'] = 2 ** 40)],
      ['damaged', (rows) => (last(rows)['digest'] = `sha256:${'0'.repeat(64)}`)],
      ['not one whole', (rows) => (last(rows)['packed'] = 30)],
      ['', (rows) => delete last(rows)['packed']],
    ] as readonly (readonly [string, (rows: Record<string, unknown>[]) => unknown])[]) {
      const path = await withToc((rows) => void edit(rows));
      assert.match(await refusal(path), message, String(edit));
    }
  });

  test('it refuses a table of contents that would fill its memory', async () => {
    const path = box.at('bomb.tar.gz');
    await writeFile(path, Buffer.concat([gzipSync(Buffer.alloc(100 << 20)), formatFooter(0)]));
    assert.match(await refusal(path), 'table of contents: larger than its size');
  });
} else {
  test.skip('all of them', reason);
}

test.run();
