import { execa } from 'execa';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { parseInventory } from '../../src/ship/bundle/delta/inventory.ts';
import { formatAddonJson } from '../../src/core/package.ts';
import { formatLock } from '../../src/manifest/lock.ts';
import * as assert from '../support/assert.ts';
import { addon, buildAll } from '../support/builds.ts';
import type { TestPackage } from '../support/bundles.ts';
import { bundleOfPackages, deltaOf } from '../support/deltas.ts';
import { HOSTILE, LOCK, lockedPackage, schemaProblems } from '../support/described.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { archiveOf, noise, packageOf, writePackage, type TestFile } from '../support/packages.ts';
import { startRegistry } from '../support/registry-server.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFiles, serveFolder } from '../support/web-server.ts';

// not fast: starts the command again and again
const test = suite('cli/sbom', { timeoutMs: 60_000 });

async function boxWithPackage(): Promise<Tree> {
  const box = await tree();
  const { name, version, files, extra } = lockedPackage();
  await writePackage(box.at('web.tar.gz'), name, version, files, extra);
  return box;
}

test('a package: to standard output, to a file, through a URL, from parts; always the same bytes', async () => {
  await using box = await boxWithPackage();
  const printed = await runCommand(['sbom', 'web.tar.gz'], box.path);
  assert.is(printed.exitCode, 0, printed.stderr);
  assert.equal(await schemaProblems(JSON.parse(printed.stdout)), []);
  assert.not.match(printed.stdout, 'hush');

  const written = await runCommand(['sbom', 'web.tar.gz', '-o', 'web.cdx.json'], box.path);
  assert.match(written.stdout, /web\.cdx\.json: 6 components\nurn:uuid:[0-9a-f-]{36}$/);
  assert.is(await readFile(box.at('web.cdx.json'), 'utf8'), `${printed.stdout}\n`);
  assert.is((await runCommand(['sbom', 'web.tar.gz', '-o', 'web.cdx.json'], box.path)).exitCode, 24);
  assert.is((await runCommand(['sbom', 'web.tar.gz', '-o', 'web.cdx.json', '--force'], box.path)).exitCode, 0);

  const json = await runCommand(['sbom', 'web.tar.gz', '--json'], box.path);
  assert.equal(JSON.parse(json.stdout), JSON.parse(printed.stdout));

  await using server = await serveFolder(box.path);
  const fetched = await runCommand(['sbom', `${server.url}/web.tar.gz`], box.path);
  assert.is(fetched.stdout, printed.stdout, fetched.stderr);

  await mkdir(box.at('parts'));
  const split = await runCommand(['split', 'web.tar.gz', '--size', '2K', '--to', 'parts'], box.path);
  assert.is(split.exitCode, 0, split.stderr);
  assert.is((await runCommand(['sbom', 'parts/web.tar.gz.parts.json'], box.path)).stdout, printed.stdout);
});

test('many files: an SBOM beside each, of an address into the current folder', async () => {
  await using box = await boxWithPackage();
  await mkdir(box.at('parts'));
  await runCommand(['split', 'web.tar.gz', '--size', '2K', '--to', 'parts'], box.path);
  await using server = await serveFolder(box.path);
  const words = ['web.tar.gz', 'parts/web.tar.gz.parts.json', '--beside'];
  const written = await runCommand(['sbom', ...words], box.path);
  assert.is(written.stdout, 'web.tar.gz.cdx.json: 6 components\nparts/web.tar.gz.cdx.json: 6 components');
  const first = await readFile(box.at('web.tar.gz.cdx.json'), 'utf8');
  assert.is(first, `${(await runCommand(['sbom', 'web.tar.gz', '-o', '-'], box.path)).stdout}\n`);
  assert.is(await readFile(box.at('parts/web.tar.gz.cdx.json'), 'utf8'), first);
  assert.is(
    (await runCommand(['sbom', `${server.url}/parts/../web.tar.gz`, '--beside', '--json'], box.path)).exitCode,
    0,
  );
  assert.equal(
    (await readdir(box.path)).filter((name) => name.startsWith('web.tar.gz')),
    ['web.tar.gz', 'web.tar.gz.cdx.json'],
  );

  const twice = await runCommand(
    ['sbom', `${server.url}/web.tar.gz`, `${server.url}/web.tar.gz?r=2`, '--beside'],
    box.path,
  );
  assert.is(twice.exitCode, 64);
  assert.match(twice.stderr, /write web\.tar\.gz\.cdx\.json: .* for another file/);

  const failed = await runCommand(['sbom', 'web.tar.gz', 'nothing.tar.gz', '--beside'], box.path);
  assert.is(failed.exitCode, 14);
  assert.match(failed.stderr, /nothing\.tar\.gz: no such file/);
});

test('words that go together in no way are refused before anything is read', async () => {
  await using box = await tree();
  for (const words of [[], ['a', 'b'], ['a', '--beside', '-o', 'x'], ['a', '--beside', '-o', '-']]) {
    assert.is((await runCommand(['sbom', ...words], box.path)).exitCode, 64, words.join(' '));
  }
});

test('only the ends and small files of a large package are asked for', async () => {
  await using box = await tree();
  const { name, version, files, extra } = lockedPackage();
  const large = [...files, { path: 'images/blobs/sha256/layer', data: noise(2_000_000) }];
  await writePackage(box.at('web.tar.gz'), name, version, large, extra);
  await using server = await serveFolder(box.path);
  const { exitCode, stderr } = await runCommand(['sbom', `${server.url}/web.tar.gz`], box.path);
  assert.is(exitCode, 0, stderr);
  const lengths = server.log.flatMap(({ headers }) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(String(headers['range'] ?? '')) ?? [];
    return first === undefined ? [] : [Number(last) - Number(first) + 1];
  });
  assert.ok(lengths.length > 0);
  assert.ok(lengths.reduce((sum, length) => sum + length, 0) < 200_000, lengths.join(' '));
});

test('a bundle, one for kURL, and a delta with what its place has', async () => {
  await using box = await tree();
  const [web, other, newer] = [
    lockedPackage(),
    lockedPackage('other'),
    { ...lockedPackage('other'), version: '1.1.0' },
  ];
  await writeFile(box.at('1.tar.gz'), (await bundleOfPackages([web, other])).bytes);
  const next = await bundleOfPackages([web, newer]);
  await writeFile(box.at('2.tar.gz'), next.bytes);
  const whole = await runCommand(['sbom', '2.tar.gz'], box.path);
  assert.is(whole.exitCode, 0, whole.stderr);
  assert.equal(await schemaProblems(JSON.parse(whole.stdout)), []);
  assert.match(whole.stdout, '"bin/curlew"');

  const kurl = await bundleOfPackages([web, newer], { kurl: true });
  await writeFile(box.at('kurl.tar.gz'), kurl.bytes);
  const forKurl = await runCommand(['sbom', 'kurl.tar.gz'], box.path);
  assert.is(forKurl.exitCode, 0, forKurl.stderr);
  assert.match(forKurl.stdout, '"addons/other/1.1.0/"');

  await runCommand(['inventory', '1.tar.gz', '-o', 'i.json'], box.path);
  const delta = await deltaOf(next, parseInventory(await readFile(box.at('i.json'), 'utf8'), 'i.json'));
  await writeFile(box.at('d.tar.gz'), delta.bytes);
  await mkdir(box.at('base'));
  const alone = await runCommand(['sbom', 'd.tar.gz', '--install-dir', 'base'], box.path);
  assert.is(alone.exitCode, 14, alone.stderr);
  assert.match(alone.stderr, /which is a delta/);
  await execa('tar', ['-xzf', box.at('1.tar.gz'), '-C', box.at('base')]);
  const full = await runCommand(['sbom', 'd.tar.gz', '--install-dir', 'base'], box.path);
  assert.is(full.stdout, whole.stdout, full.stderr);
});

test('a bundle without some systems lists what it has, also where a delta leaves that to its place', async () => {
  await using box = await tree();
  const made = await bundleOfPackages([lockedPackage()], { os: ['ubuntu-22.04'] });
  await writeFile(box.at('b.tar.gz'), made.bytes);
  const whole = await runCommand(['sbom', 'b.tar.gz'], box.path);
  assert.is(whole.exitCode, 0, whole.stderr);
  assert.match(whole.stdout, 'pkg:deb/ubuntu/libc6');
  assert.not.match(whole.stdout, /pkg:rpm|rhel/);
  await runCommand(['inventory', 'b.tar.gz', '-o', 'i.json'], box.path);
  const delta = await deltaOf(made, parseInventory(await readFile(box.at('i.json'), 'utf8'), 'i.json'));
  await writeFile(box.at('d.tar.gz'), delta.bytes);
  await mkdir(box.at('base'));
  await execa('tar', ['-xzf', box.at('b.tar.gz'), '-C', box.at('base')]);
  const full = await runCommand(['sbom', 'd.tar.gz', '--install-dir', 'base'], box.path);
  assert.is(full.stdout, whole.stdout, full.stderr);
  await rm(box.at('base/addons/web/1.0.0/addon.omitted.json'));
  const lacking = await runCommand(['sbom', 'd.tar.gz', '--install-dir', 'base'], box.path);
  assert.is(lacking.exitCode, 14, lacking.stderr);
  assert.match(lacking.stderr, 'addons/web/1.0.0/addon.omitted.json');
});

for (const imageFormat of ['oci', 'docker-archive'] as const) {
  test(`what a build makes, with its images in the form ${imageFormat}`, async () => {
    const image = makeImage([makeLayer({ a: 'layer' })], 'oci', 'app');
    await using registry = await startRegistry({ 'team/one:1': image });
    const manifest = 'image one images.example/team/one:1\nasset data ./data\napt24 jq\n';
    await using box = await tree(addon('a', manifest, { data: 'x' }));
    await buildAll({ root: box.path, registry: registry.host, imageFormat });
    const { exitCode, stdout, stderr } = await runCommand(['sbom', 'out/a-1.0.tar.gz'], box.path);
    assert.is(exitCode, 0, stderr);
    const document = JSON.parse(stdout) as { readonly components: readonly { readonly purl: string }[] };
    assert.equal(await schemaProblems(document), []);
    const [first, second, more] = document.components;
    assert.match(first?.purl ?? '', `pkg:oci/one@${image.manifest.digest}?`);
    assert.match(second?.purl ?? '', 'pkg:generic/data?checksum=sha256:');
    assert.is(more, undefined);
  });
}

const wrong = formatLock({ ...LOCK, assets: [] });
const BAD: Readonly<Record<string, Uint8Array>> = {
  'no archive': Buffer.from('hello'),
  'another archive': archiveOf([{ path: 'x', data: 'y' }]).bytes,
  'no lock': packed({
    ...lockedPackage(),
    files: lockedPackage().files.filter(({ path }) => path !== 'Manifest.lock'),
  }),
  'a lock that is no JSON': packed(lockedPackage('web', '{')),
  'a lock that is a list': packed(lockedPackage('web', '[]')),
  'a lock of a later format': packed(lockedPackage('web', '{"format":2,"gems":[]}')),
  'a huge lock': packed(lockedPackage('web', lockOf(34))),
  'huge locks together': hugeLocks(),
  'a lock that names more than is there': packed(
    lockedPackage('web', wrong.replace('"assets":[]', `"assets":[${asset()}]`)),
  ),
  'two packages and no bundle.json': archiveOf(['a', 'b'].flatMap((name) => entriesOf(name))).bytes,
};

function lockOf(mebibytes: number): string {
  return `"${'x'.repeat(mebibytes << 20)}"`;
}

/** Each within its limit. */
function hugeLocks(): Buffer {
  const packages = ['a', 'b', 'c'].map((name) => lockedPackage(name, lockOf(30)));
  return archiveOf(packages.flatMap(({ name, files, extra }) => entriesOf(name, files, extra))).bytes;
}

function asset(): string {
  return JSON.stringify({ name: HOSTILE, source: 'x', size: 1, digest: `sha256:${'0'.repeat(64)}` });
}

function packed({ name, version, files, extra }: TestPackage): Buffer {
  return packageOf(name, version, files, extra).bytes;
}

function entriesOf(name: string, files = lockedPackage(name).files, extra = {}): readonly TestFile[] {
  const about = packageOf(name, '1.0.0', files, extra).addon;
  const all = [{ path: 'addon.json', data: formatAddonJson(about) }, ...files];
  return all.map((file) => ({ ...file, path: `addons/${name}/1.0.0/${file.path}` }));
}

for (const [title, exitCode, message] of [
  ['no archive', 16, /too short|not a package or bundle of curlew, or its end is missing/],
  ['another archive', 16, /neither one package nor a bundle/],
  ['no lock', 16, /addons\/web\/1\.0\.0\/Manifest\.lock is missing/],
  ['a lock that is no JSON', 16, /Manifest\.lock: not JSON/],
  ['a lock that is a list', 16, /not a lock of format 1/],
  ['a lock of a later format', 22, /not a lock of format 1, but of 2/],
  ['a huge lock', 16, /Manifest\.lock is larger than 33554432 bytes/],
  ['huge locks together', 16, /its locks are larger than 67108864 bytes/],
  ['a lock that names more than is there', 16, /is not in the package/],
  ['two packages and no bundle.json', 16, /neither one package nor a bundle/],
] as const) {
  test(`a file is refused that is, or has, ${title}`, async () => {
    await using box = await tree({ 'bad.tar.gz': BAD[title] ?? '' });
    const { exitCode: status, stderr, stdout } = await runCommand(['sbom', 'bad.tar.gz', '-o', 'out'], box.path);
    assert.is(status, exitCode, stderr);
    assert.match(stderr, message);
    assert.is(stdout, '');
    assert.equal(await readdir(box.path), ['bad.tar.gz']);
  });
}

test('a bundle is refused whose packages are not those that it names', async () => {
  await using box = await tree();
  const { bytes, plan } = await bundleOfPackages([lockedPackage()]);
  const json = plan.files.find(({ path }) => path === 'bundle.json')?.data ?? new Uint8Array();
  const bundle = { path: 'bundle.json', data: Buffer.from(json) };
  await writeFile(box.at('other.tar.gz'), archiveOf([bundle, ...entriesOf('other')]).bytes);
  await writeFile(box.at('none.tar.gz'), archiveOf([bundle]).bytes);
  assert.ok(bytes.byteLength > 0);
  assert.match(
    (await runCommand(['sbom', 'other.tar.gz'], box.path)).stderr,
    /addons\/other\/1\.0\.0\/ is not the one that bundle/,
  );
  assert.match(
    (await runCommand(['sbom', 'none.tar.gz'], box.path)).stderr,
    /it does not contain all packages that bundle/,
  );
});

test('an object that does not exist is named with its address', async () => {
  await using box = await tree();
  await using server = await serveFiles({});
  const words = ['sbom', `${server.url}/dist/none.tar.gz`, '--allow-http', '127.0.0.1'];
  const { exitCode, stderr } = await runCommand(words, box.path);
  assert.is(exitCode, 14);
  assert.match(stderr, `${server.url}/dist/none.tar.gz does not exist\n  hint: check the path or address`);
});

test('one file is to be named', async () => {
  await using box = await tree();
  for (const words of [[], ['a', 'b']]) assert.is((await runCommand(['sbom', ...words], box.path)).exitCode, 64);
  assert.is((await runCommand(['sbom', 'missing.tar.gz'], box.path)).exitCode, 14);
});

test.run();
