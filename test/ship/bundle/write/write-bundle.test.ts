import { writeFileSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { copyFile, open, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { findEntry, openFileSource, readFile as readEntry, readIndex } from '../../../../src/formats/archive/read.ts';
import { verifyArchive } from '../../../../src/formats/archive/verify.ts';
import { writeBundleFile } from '../../../../src/ship/bundle/write/write-bundle.ts';
import { planBundle, summarize } from '../../../../src/ship/bundle/bundle-plan.ts';
import { parseBundleJson } from '../../../../src/core/bundle.ts';
import { digestOf } from '../../../../src/core/digest.ts';
import { CurlewError } from '../../../../src/core/errors.ts';
import { partialName } from '../../../../src/platform/files/partial.ts';
import * as assert from '../../../support/assert.ts';
import {
  planTestBundle,
  publishTestPackages,
  specOf,
  TOOL,
  type PlannedBundle,
  type TestPackage,
} from '../../../support/bundles.ts';
import { noReport } from '../../../support/context.ts';
import { archiveOf, noise } from '../../../support/packages.ts';
import { deadPartialName } from '../../../support/partials.ts';
import { suite } from '../../../support/suite.ts';
import { tree } from '../../../support/tree.ts';

const test = suite('ship/bundle/assemble');
const run = promisify(execFile);

const shared = noise(100_000, 7);
const PACKAGES: readonly TestPackage[] = [
  {
    name: 'alpha',
    version: '1.0.0',
    files: [
      { path: 'install.sh', data: 'alpha() { :; }\n' },
      { path: 'assets/empty', data: '' },
      { path: 'images/blobs/sha256/a', data: shared },
      { path: 'images/blobs/sha256/b', data: noise(50_000, 8) },
    ],
  },
  {
    name: 'beta',
    version: '2.0.0',
    files: [
      { path: 'install.sh', data: 'beta() { :; }\n', mode: 0o755 },
      { path: 'images/blobs/sha256/a', data: shared },
      { path: 'text', data: 'word '.repeat(5000) },
    ],
  },
];
const SPEC = specOf({ alpha: 'latest', beta: '2.0.x' });

function write({ plan, sources }: PlannedBundle, path: string, signal: AbortSignal, options = {}): Promise<void> {
  const defaults = { force: false, verify: false, report: noReport, signal };
  return writeBundleFile(plan, sources, path, { ...defaults, ...options });
}

test('a bundle is a valid archive of the length that was known before the first byte', async ({ signal }) => {
  await using box = await tree();
  const store = await publishTestPackages(box, PACKAGES, signal);
  const planned = await planTestBundle(store, SPEC, signal);

  await write(planned, box.at('b.tar.gz'), signal);

  assert.is((await stat(box.at('b.tar.gz'))).size, planned.plan.splice.size);
  await using source = await openFileSource(box.at('b.tar.gz'));
  const index = await verifyArchive(source, { signal });
  assert.is(index.tocDigest, planned.plan.splice.index.tocDigest);
  const entry = findEntry(index, 'bundle.json');
  const text =
    entry === undefined ? '' : Buffer.from(await readEntry(source, entry, { limit: 1e6, signal })).toString();
  const bundle = parseBundleJson(text, 'b.tar.gz');
  assert.is(bundle.installer, digestOf(SPEC));
  assert.equal(
    bundle.packages.map(({ name, version, requested }) => `${name} ${version} ${requested}`),
    ['alpha 1.0.0 latest', 'beta 2.0.0 2.0.x'],
  );
});

test('GNU tar lists and unpacks it, hard links included', async ({ signal }) => {
  await using box = await tree({ 'out/.keep': '' });
  const store = await publishTestPackages(box, PACKAGES, signal);
  const planned = await planTestBundle(store, SPEC, signal);
  await write(planned, box.at('b.tar.gz'), signal, { verify: true });

  const { stdout } = await run('tar', ['tzvf', box.at('b.tar.gz')]);
  assert.match(stdout, /^-rwxr-xr-x .* install\.sh$/m);
  assert.match(
    stdout,
    /^hrw-r--r-- .* addons\/beta\/2\.0\.0\/images\/blobs\/sha256\/a link to addons\/alpha\/1\.0\.0\/images\/blobs\/sha256\/a$/m,
  );
  await run('tar', ['xzf', box.at('b.tar.gz'), '-C', box.at('out')]);
  for (const { name, version, files } of PACKAGES) {
    for (const { path, data } of files) {
      const found = await readFile(box.at('out', `addons/${name}/${version}/${path}`));
      assert.ok(found.equals(Buffer.from(data)), path);
    }
  }
  assert.is(await readFile(box.at('out/installer.yaml'), 'utf8'), SPEC);
});

test('equal plans give equal bytes, from another store too', async ({ signal }) => {
  await using box = await tree();
  await using other = await tree();
  const bundles = [];
  for (const [place, packages] of [
    [box, PACKAGES],
    [other, PACKAGES.toReversed()],
  ] as const) {
    const planned = await planTestBundle(await publishTestPackages(place, packages, signal), SPEC, signal);
    await write(planned, place.at('b.tar.gz'), signal, { verify: place === other });
    bundles.push(await readFile(place.at('b.tar.gz')));
  }
  assert.ok(bundles[0]?.equals(bundles[1] ?? Buffer.alloc(0)));
});

test('all but root files, changed headers and the end is copied in long ranges; a shared payload once', async ({
  signal,
}) => {
  await using box = await tree();
  const { plan } = await planTestBundle(await publishTestPackages(box, PACKAGES, signal), SPEC, signal);
  const { ranges, linked, contents, fresh, size } = summarize(plan);
  const { images, files, executable } = contents;
  assert.ok(executable > 0 && files > 0 && images + files + executable < size, JSON.stringify(contents));
  assert.is(linked, shared.byteLength);
  assert.ok(ranges.length <= 4, JSON.stringify(ranges));
  assert.ok(fresh < 20_000, String(fresh));
  assert.ok(size < 210_000);
});

test('an output that is there is refused and kept, and replaced when asked', async ({ signal }) => {
  await using box = await tree({ 'b.tar.gz': 'mine' });
  const planned = await planTestBundle(await publishTestPackages(box, PACKAGES, signal), SPEC, signal);
  await assert.rejectsWith(write(planned, box.at('b.tar.gz'), signal), 'FILE_EXISTS');
  assert.is(await readFile(box.at('b.tar.gz'), 'utf8'), 'mine');
  await write(planned, box.at('b.tar.gz'), signal, { force: true });
  assert.is((await stat(box.at('b.tar.gz'))).size, planned.plan.splice.size);
  await assert.rejectsWith(write(planned, box.at('store'), signal, { force: true }), 'FILE_UNUSABLE');
  await assert.rejectsWith(write(planned, box.at('none/b.tar.gz'), signal), 'FILE_UNUSABLE');
});

test('a file that appears meanwhile is not replaced, and the step is not reported as done', async ({ signal }) => {
  await using box = await tree();
  const planned = await planTestBundle(await publishTestPackages(box, PACKAGES, signal), SPEC, signal);
  const types: string[] = [];
  const report = ({ type }: { readonly type: string }): void => {
    types.push(type);
    if (type === 'step-progress') writeFileSync(box.at('b.tar.gz'), 'mine');
  };
  await assert.rejectsWith(
    writeBundleFile(planned.plan, planned.sources, box.at('b.tar.gz'), { force: false, verify: false, report, signal }),
    'FILE_EXISTS',
  );
  assert.equal([types.includes('step-done'), types.at(-1)], [false, 'step-failed']);
  assert.is(await readFile(box.at('b.tar.gz'), 'utf8'), 'mine');
  assert.equal((await readdir(box.path)).toSorted(), ['b.tar.gz', 'out', 'store']);
});

test('what a killed run left beside the bundle is removed, what a running one writes stays', async ({ signal }) => {
  await using box = await tree();
  const planned = await planTestBundle(await publishTestPackages(box, PACKAGES, signal), SPEC, signal);
  const [dead, living] = [deadPartialName(), partialName()];
  await writeFile(box.at(dead), 'half');
  await writeFile(box.at(living), 'half');
  await write(planned, box.at('b.tar.gz'), signal);
  assert.equal((await readdir(box.path)).toSorted(), [living, 'b.tar.gz', 'out', 'store']);
});

test('a bundle may have the longest name that the file system takes', async ({ signal }) => {
  await using box = await tree();
  const planned = await planTestBundle(await publishTestPackages(box, PACKAGES, signal), SPEC, signal);
  const name = `${'b'.repeat(248)}.tar.gz`;
  await write(planned, box.at(name), signal);
  assert.is((await stat(box.at(name))).size, planned.plan.splice.size);
});

test('cancelled half way it leaves nothing', async ({ signal }) => {
  await using box = await tree();
  const planned = await planTestBundle(await publishTestPackages(box, PACKAGES, signal), SPEC, signal);
  const stop = new AbortController();
  const [first, second, tool] = planned.sources;
  const cutting = {
    ...(second ?? { name: '', size: 0 }),
    async *read() {
      stop.abort(new CurlewError('CANCELLED', 'cancelled'));
      stop.signal.throwIfAborted();
      yield new Uint8Array(1);
    },
  };
  await assert.rejectsWith(
    writeBundleFile(planned.plan, [first ?? cutting, cutting, tool ?? cutting], box.at('b.tar.gz'), {
      force: false,
      verify: true,
      report: noReport,
      signal: stop.signal,
    }),
    'CANCELLED',
  );
  assert.equal((await readdir(box.path)).toSorted(), ['out', 'store']);
});

test('an object that changes between plan and execution stops it', async ({ signal }) => {
  await using box = await tree();
  const store = await publishTestPackages(box, PACKAGES, signal);
  const planned = await planTestBundle(store, SPEC, signal);
  await store.put('r1/beta-2.0.0.tar.gz', await readFile(box.at('out/alpha-1.0.0.tar.gz')), { signal });
  await assert.rejectsWith(write(planned, box.at('b.tar.gz'), signal), 'STORE_CONFLICT', /has changed/);
  assert.equal((await readdir(box.path)).toSorted(), ['out', 'store']);
});

test('a package that is not the one of the catalog is refused before anything is written', async ({ signal }) => {
  await using box = await tree();
  const store = await publishTestPackages(box, PACKAGES, signal);
  await copyFile(box.at('out/alpha-1.0.0.tar.gz'), box.at('store/r1/beta-2.0.0.tar.gz'));
  await assert.rejectsWith(planTestBundle(store, SPEC, signal), 'DIGEST_MISMATCH', /bytes instead of/);
  await truncate(box.at('store/r1/alpha-1.0.0.tar.gz'), 1000);
  await assert.rejectsWith(planTestBundle(store, SPEC, signal), 'DIGEST_MISMATCH');
});

test('attack: entries outside the package’s own folder are refused', async ({ signal }) => {
  await using box = await tree();
  const { plan, packages } = await planTestBundle(await publishTestPackages(box, PACKAGES, signal), SPEC, signal);
  const { index } = archiveOf([{ path: 'install.sh', data: 'evil' }]).plan;
  const resolved = packages[0]?.resolved;
  if (resolved === undefined) throw new Error('no package');
  const inputs = {
    release: 'r1',
    arch: 'amd64',
    installer: Buffer.from(SPEC),
    rootFiles: [],
    executable: TOOL.plan.index,
    tool: 'x',
  } as const;
  assert.throwsWith(() => planBundle({ ...inputs, packages: [{ resolved, index }] }), 'PACKAGE_INVALID', /install\.sh/);
  const other = archiveOf([{ path: 'addons/alpha/1.0.0/install.sh', data: 'evil' }]).plan.index;
  assert.throwsWith(() => planBundle({ ...inputs, packages: [{ resolved, index: other }] }), 'DIGEST_MISMATCH');
  assert.ok(plan.bundle.packages.length === 2);
});

test('--verify finds a flipped byte in a header or a padding too, and leaves nothing', async ({ signal }) => {
  await using box = await tree();
  const store = await publishTestPackages(box, PACKAGES, signal);
  const path = box.at('store/r1/beta-2.0.0.tar.gz');
  const good = await readFile(path);
  await using source = await openFileSource(path);
  const { entries, tocOffset } = await readIndex(source, { signal });
  // Nothing of a payload that alpha has, too, is copied from here.
  const copied = entries.filter(({ path: name, packed }) => packed > 0 && !name.endsWith('sha256/a'));
  const around = copied.flatMap(({ offset, packed }) => [offset - 9, offset + packed + 20]);
  for (const at of [0, 40, ...around, tocOffset - 1]) {
    const damaged = Buffer.from(good);
    damaged[at] = (damaged[at] ?? 0) ^ 1;
    await writeFile(path, damaged);
    const planned = await planTestBundle(store, SPEC, signal);
    await assert.rejectsWith(
      write(planned, box.at('b.tar.gz'), signal, { verify: true }),
      'PACKAGE_INVALID',
      /^\S*store\/r1\/beta-2\.0\.0\.tar\.gz: addons\/beta\//,
    );
    assert.equal((await readdir(box.path)).toSorted(), ['out', 'store']);
  }
});

test('--verify names the payload with a flipped byte, wherever it is, and leaves nothing', async ({ signal }) => {
  await using box = await tree();
  const store = await publishTestPackages(box, PACKAGES, signal);
  const path = box.at('store/r1/alpha-1.0.0.tar.gz');
  const good = await readFile(path);
  await using source = await openFileSource(path);
  const { entries } = await readIndex(source, { signal });
  for (const { offset, packed, path: name } of entries.filter((entry) => entry.packed > 0)) {
    for (const at of [offset, offset + Math.floor(packed / 2), offset + packed - 1]) {
      await writeFile(path, good);
      const file = await open(path, 'r+');
      await file.write(Buffer.of((good[at] ?? 0) ^ 0x10), 0, 1, at);
      await file.close();
      const planned = await planTestBundle(store, SPEC, signal);
      const error = await assert.rejectsWith(
        write(planned, box.at('b.tar.gz'), signal, { verify: true }),
        'DIGEST_MISMATCH',
      );
      assert.match(error.message, `store/r1/alpha-1.0.0.tar.gz: ${name}`);
      assert.equal((await readdir(box.path)).toSorted(), ['out', 'store']);
    }
  }
});

test.run();
