import { readFile, rm, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { command } from '../../src/cli/commands/import-external.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { digestOf, hexOf } from '../../src/core/digest.ts';
import { ERROR_CODES } from '../../src/core/errors.ts';
import type { ImportResult } from '../../src/ship/release/import-external.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf } from '../support/bundles.ts';
import { noReport } from '../support/context.ts';
import { resetsAtHalf } from '../support/faults.ts';
import { noise, writePackage } from '../support/packages.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';

const test = suite('cli/import-external');

const [one, two] = [gzipSync('one'), gzipSync(noise(300_000))];
const bodies = { 'one.tar.gz': one, 'two.tar.gz': two };

async function bring(
  box: Tree,
  content: unknown,
  signal: AbortSignal,
  words: readonly string[] = ['--name', 'acme'],
): Promise<ImportResult> {
  await writeFile(box.at('versions.json'), typeof content === 'string' ? content : JSON.stringify(content));
  const args = readArguments(command, ['versions.json', '--to', 'store', '--cache', 'cache', ...words]);
  return command.run(args, { cwd: box.path, env: { HOME: box.path }, report: noReport, signal });
}

async function registryOf(box: Tree): Promise<Record<string, readonly Record<string, unknown>[]>> {
  return JSON.parse(await readFile(box.at('store/external/addon-registry.json'), 'utf8')) as never;
}

function outcomes({ versions }: ImportResult): readonly string[] {
  return versions.map(({ version, outcome }) => `${version} ${outcome}`);
}

test('packages are fetched, measured and named in the registry, newest first, and not fetched again', async ({
  signal,
}) => {
  await using web = await serveFiles(bodies);
  await using box = await tree({});
  const rows = [
    { version: '1.2.0+1', url: `${web.url}/one.tar.gz`, kurlVersionCompatibilityRange: '>=v2022.01.01-0' },
    {
      version: '1.10.0',
      url: `${web.url}/two.tar.gz?token=secret`,
      isPrerelease: true,
      sha256Sum: hexOf(digestOf(two)),
    },
  ];
  assert.equal(outcomes(await bring(box, rows, signal)), ['1.2.0+1 imported', '1.10.0 imported']);
  assert.equal(await registryOf(box), {
    acme: [
      {
        version: '1.10.0',
        kurlVersionCompatibilityRange: '*',
        origin: `${web.url}/two.tar.gz`,
        isPrerelease: true,
        sha256Sum: hexOf(digestOf(two)),
      },
      {
        version: '1.2.0+1',
        kurlVersionCompatibilityRange: '>=v2022.01.01-0',
        origin: `${web.url}/one.tar.gz`,
        isPrerelease: false,
        sha256Sum: hexOf(digestOf(one)),
      },
    ],
  });
  assert.is(digestOf(await readFile(box.at('store/external/acme-1.2.0-1.tar.gz'))), digestOf(one));
  const asked = web.log.length;
  assert.equal(outcomes(await bring(box, rows, signal)), ['1.2.0+1 present', '1.10.0 present']);
  assert.is(web.log.length, asked);
  const released = rows.map((row) => ({ ...row, isPrerelease: false }));
  assert.equal(outcomes(await bring(box, released, signal)), ['1.2.0+1 present', '1.10.0 released']);
  assert.is((await registryOf(box))['acme']?.[0]?.['isPrerelease'], false);
  await assert.rejectsWith(bring(box, rows, signal), 'STORE_CONFLICT', /acme-1\.10\.0 is already released/);
});

test('bytes of another sha256 than the publisher gives leave nothing', async ({ signal }) => {
  await using web = await serveFiles(bodies);
  await using box = await tree({});
  const row = { version: '1', url: `${web.url}/one.tar.gz`, sha256Sum: hexOf(digestOf(two)) };
  await assert.rejectsWith(bring(box, [row], signal), 'DIGEST_MISMATCH', /acme-1\.tar\.gz/);
  const store = createFolderStore(box.at('store'));
  for await (const { key } of store.list('', { signal })) assert.unreachable(key);
});

for (const [what, change, reason] of [
  ['address', { url: 'https://example.org/x.tar.gz' }, /has a different address/],
  ['range', { kurlVersionCompatibilityRange: '>1' }, /is for different versions of kURL/],
  ['sha256', { sha256Sum: 'a'.repeat(64) }, /has a different SHA-256/],
] as const) {
  test(`a version that was imported keeps its ${what}`, async ({ signal }) => {
    await using web = await serveFiles(bodies);
    await using box = await tree({});
    const row = { version: '1', url: `${web.url}/one.tar.gz` };
    await bring(box, { acme: [row] }, signal, []);
    const before = await registryOf(box);
    const fresh = { version: '2', url: `${web.url}/two.tar.gz` };
    await assert.rejectsWith(
      bring(box, { acme: [fresh, { ...row, ...change }] }, signal, []),
      'STORE_CONFLICT',
      reason,
    );
    assert.equal(await registryOf(box), before);
  });
}

test('a package that vanished comes back only with the bytes that the registry knows', async ({ signal }) => {
  const files: Record<string, Uint8Array> = { 'one.tar.gz': one };
  await using web = await serveFiles(files);
  await using changed = await serveFiles({ 'one.tar.gz': two });
  await using box = await tree({});
  const row = { version: '1', url: `${web.url}/one.tar.gz` };
  await bring(box, [row], signal);
  await rm(box.at('store/external/acme-1.tar.gz'));
  assert.equal(outcomes(await bring(box, [row], signal)), ['1 restored']);
  await rm(box.at('store/external/acme-1.tar.gz'));
  const path = box.at('store/external/addon-registry.json');
  await writeFile(path, (await readFile(path, 'utf8')).replaceAll(web.url, changed.url));
  const moved = bring(box, [{ version: '1', url: `${changed.url}/one.tar.gz` }], signal);
  await assert.rejectsWith(moved, 'DIGEST_MISMATCH');
});

test('a package that was replaced in the store is found out', async ({ signal }) => {
  await using web = await serveFiles(bodies);
  await using box = await tree({});
  const row = { version: '1', url: `${web.url}/one.tar.gz` };
  await bring(box, [row], signal);
  await writeFile(box.at('store/external/acme-1.tar.gz'), 'mine');
  await assert.rejectsWith(bring(box, [row], signal), 'STORE_CONFLICT', /with different content/);
});

test('an import that was stopped before the registry was written goes on', async ({ signal }) => {
  let failing = true;
  const resets = resetsAtHalf({ path: /two/ });
  await using web = await serveFiles(bodies, {
    faults: [(asked, regular) => (failing && asked.method === 'GET' ? resets(asked, regular) : undefined)],
  });
  await using box = await tree({});
  const rows = ['one', 'two'].map((name, at) => ({ version: String(at), url: `${web.url}/${name}.tar.gz` }));
  await assert.rejectsWith(bring(box, rows, signal, ['--name', 'acme', '-j', '1']), 'FETCH_FAILED');
  failing = false;
  assert.equal(outcomes(await bring(box, rows, signal)), ['0 imported', '1 imported']);
  assert.is((await registryOf(box))['acme']?.length, 2);
});

for (const [what, content, words] of [
  ['no JSON', '{', undefined],
  ['a list without a name', '[]', []],
  ['nothing', '{}', []],
  ['a name that leads out', { '../x': [{ version: '1', url: 'https://x/y' }] }, []],
  ['a version that leads out', [{ version: '../1', url: 'https://x/y' }], undefined],
  ['an address of a file', [{ version: '1', url: 'file:///etc/passwd' }], undefined],
  ['a sha256 that is none', [{ version: '1', url: 'https://x/y', sha256Sum: 'x' }], undefined],
  ['two versions of one file', ['1+0', '1-0'].map((version) => ({ version, url: 'https://x/y' })), undefined],
] as const) {
  test(`a versions.json with ${what} is refused`, async ({ signal }) => {
    await using box = await tree({});
    await assert.rejectsWith(bring(box, content, signal, words), 'SPEC_INVALID');
  });
}

test('what is no .tar.gz, and a damaged registry, are refused', async ({ signal }) => {
  await using web = await serveFiles({ page: '<html>' });
  await using box = await tree({});
  const rows = [{ version: '1', url: `${web.url}/page` }];
  await assert.rejectsWith(bring(box, rows, signal), 'PACKAGE_INVALID', /did not return a \.tar\.gz/);
  const store = createFolderStore(box.at('store'));
  await store.put('external/addon-registry.json', Buffer.from('{"acme":[1]}'), { signal });
  await assert.rejectsWith(bring(box, rows, signal), 'PACKAGE_INVALID', /not an add-on registry/);
});

test('external add-ons count as others do: in versions, in the lists of versions, for a spec and in bundles', async ({
  signal,
}) => {
  const files = [{ path: 'install.sh', data: 'acme() { :; }\n' }];
  await using box = await tree({ 'spec.yaml': specOf({ acme: 'latest', alpha: 'latest' }) });
  await publishTestPackages(box, [{ name: 'alpha', version: '1.0.0', files }], signal);
  await writePackage(box.at('acme-2.tar.gz'), 'acme', '2.0.0', files);
  await writePackage(box.at('acme-3.tar.gz'), 'acme', '3.0.0', files);
  const made = {
    'two.tar.gz': await readFile(box.at('acme-2.tar.gz')),
    'three.tar.gz': await readFile(box.at('acme-3.tar.gz')),
  };
  await using web = await serveFiles({ ...made, 'one.tar.gz': one });
  const rows = [
    { version: '4.0.0', url: `${web.url}/one.tar.gz` },
    { version: '3.0.0', url: `${web.url}/three.tar.gz`, isPrerelease: true },
    { version: '2.0.0', url: `${web.url}/two.tar.gz` },
    { version: '1.0.0', url: `${web.url}/one.tar.gz`, kurlVersionCompatibilityRange: '>=v2022.01.01-0' },
  ];
  await bring(box, rows, signal);

  const ask = async (...words: readonly string[]): Promise<string> => (await runCommand(words, box.path)).stdout;
  assert.is(
    (await ask('versions', '--from', 'store')).replace(/, published \S+ \S+ UTC$/, ''),
    `acme: 4.0.0 2.0.0\nalpha: 1.0.0\nrelease r1 of ${box.at('store')}`,
  );
  assert.match(await ask('versions', '--from', 'store', 'acme@latest'), 'acme 2.0.0 (latest)');
  for (const file of ['r1/supported-versions-gen.json', 'supported-versions-gen.json']) {
    const { supportedVersions } = JSON.parse(await readFile(box.at('store', file), 'utf8')) as Record<string, unknown>;
    assert.equal(supportedVersions, { acme: ['latest', '4.0.0', '2.0.0'], alpha: ['latest', '1.0.0'] });
  }
  assert.match(await ask('installer', 'resolve', 'spec.yaml', '--from', 'store'), /^acme {3}2\.0\.0 {2}latest\nalpha/);

  const words = ['bundle', 'spec.yaml', '--from', 'store', '--verify', '-o', 'b.tar.gz'];
  const bundled = await runCommand(words, box.path);
  assert.is(bundled.exitCode, 0, bundled.stderr);
  assert.match(await ask('installer', 'resolve', 'spec.yaml', '--bundle', 'b.tar.gz'), /^acme {3}2\.0\.0/);

  await writeFile(box.at('spec.yaml'), specOf({ acme: '4.0.0' }));
  const foreign = await runCommand(['bundle', 'spec.yaml', '--from', 'store', '--dry-run'], box.path);
  assert.is(foreign.exitCode, 22, foreign.stderr);
  assert.match(foreign.stderr, 'acme: the external package 4.0.0 was not built with curlew');

  // A release that is published later names them too, and what it has itself is not replaced.
  const own = { name: 'acme', version: '2.0.0', files };
  await publishTestPackages(box, [own], signal, undefined, 'v2026.11.20-0');
  assert.match(await ask('versions', '--from', 'store'), /^acme: 4\.0\.0 1\.0\.0 2\.0\.0\nrelease \S+ of /);
  const lists = await readFile(box.at('store/v2026.11.20-0/supported-versions-gen.json'), 'utf8');
  assert.match(lists, '"acme":["latest","4.0.0","1.0.0","2.0.0"]');
});

test('an external package of another add-on is refused, and its registry stays as it was', async ({ signal }) => {
  await using box = await tree({});
  await writePackage(box.at('p.tar.gz'), 'other', '1.0.0', [{ path: 'install.sh', data: '' }]);
  await using web = await serveFiles({ 'p.tar.gz': await readFile(box.at('p.tar.gz')) });
  const rows = [{ version: '1.0.0', url: `${web.url}/p.tar.gz` }];
  await assert.rejectsWith(bring(box, rows, signal), 'PACKAGE_INVALID', /acme-1\.0\.0: .* returned other-1\.0\.0/);
  assert.is(await registryOf(box).catch(() => 'none'), 'none');
});

test('a list of versions that never ends is not read to its end', async () => {
  await using box = await tree({});
  const { exitCode, stderr } = await runCommand(['import-external', '/dev/zero', '--to', 'store'], box.path);
  assert.is(exitCode, ERROR_CODES.FILE_UNUSABLE);
  assert.match(stderr, /read \/dev\/zero: larger than 4194304 bytes/);
});

test.run();
