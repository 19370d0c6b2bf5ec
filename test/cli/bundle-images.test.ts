/** Images that come into a bundle beside those of its packages. */
import { readdir, writeFile } from 'node:fs/promises';
import { findEntry, openFileSource, readFile, readIndex } from '../../src/formats/archive/read.ts';
import { command } from '../../src/cli/commands/bundle.ts';
import { bundleSource } from '../../src/steps/sources/install-source.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf } from '../support/bundles.ts';
import { noReport } from '../support/context.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli: images of a bundle', { timeoutMs: 120_000 });
const ALPHA = [{ name: 'alpha', version: '1.0.0', files: [{ path: 'install.sh', data: 'alpha() { :; }\n' }] }];

type Result = Awaited<ReturnType<typeof command.run>>;

/** Runs in this process: threads of a child could not run the sources. */
function make(box: Tree, signal: AbortSignal, ...words: readonly string[]): Promise<Result> {
  const env = { XDG_CACHE_HOME: box.at('cache'), HOME: box.path };
  const args = readArguments(command, ['spec.yaml', '--from', 'store', ...words]);
  return command.run(args, { cwd: box.path, env, report: noReport, signal });
}

test('an image of a registry comes into a package of its own, which nodes are offered; a saved plan cannot have it', async ({
  signal,
}) => {
  await using registry = await startRegistry({ 'app:1': makeImage([makeLayer({ a: 'a' })]) });
  await using box = await tree({ 'spec.yaml': specOf({ alpha: 'latest' }) });
  await publishTestPackages(box, ALPHA, signal);
  const image = `${registry.host}/app:1`;

  const { beside } = await make(box, signal, '--image', image, '-o', 'b.tar.gz', '--verify');

  assert.equal(
    beside.map(({ name, role, because }) => [name, role, because]),
    [['extra-images', 'machine', 'requested images: 1']],
  );
  const common = { cwd: box.path, arch: 'amd64', trust: undefined, report: noReport, signal } as const;
  await using source = await bundleSource('b.tar.gz', { ...common, directory: box.at('node') });
  const [offered] = await source.offered([]);
  assert.is(offered?.role, 'machine');
  assert.equal(
    offered?.source.addon.images.map(({ reference }) => reference),
    [image],
  );
  await using archive = await openFileSource(box.at('b.tar.gz'));
  const index = await readIndex(archive, { signal });
  const entry = findEntry(index, `packages/extra-images/${offered?.source.ref.version}/images/index.json`);
  const text =
    entry === undefined ? '' : Buffer.from(await readFile(archive, entry, { limit: 1e6, signal })).toString();
  assert.match(text, image);
  const asked = registry.blobRequests().length;
  await make(box, signal, '--image', image, '--dry-run');
  assert.is(registry.blobRequests().length, asked, 'what is in the cache is not fetched again');

  const saved = make(box, signal, '--image', image, '--dry-run', '--out', 'plan.json');
  await assert.rejectsWith(saved, 'UNSUPPORTED', /is not in the store/);
  assert.not((await readdir(box.path)).includes('plan.json'));
});

test('an override to a registry that may not be named is refused before anything is fetched', async ({ signal }) => {
  const ekco = '  ekco: {version: latest, podImageOverrides: ["a:1=quay.io/evil/a:1"]}\n';
  await using box = await tree({ 'spec.yaml': specOf({ alpha: 'latest' }) + ekco });
  await publishTestPackages(box, ALPHA, signal);
  await assert.rejectsWith(make(box, signal, '--dry-run'), 'SPEC_INVALID', /quay\.io is not an allowed registry/);
});

test('images of helm.additionalImages come along, and are judged with the plan', async ({ signal }) => {
  await using box = await tree({ 'spec.yaml': specOf({ alpha: 'latest' }) });
  await publishTestPackages(box, ALPHA, signal);
  for (const [image, said] of [
    ['UPPER', /helm\.additionalImages: "UPPER"/],
    ['quay.io/evil/a:1', /quay\.io is not an allowed registry/],
  ] as const) {
    await writeFile(box.at('spec.yaml'), `${specOf({ alpha: 'latest' })}  helm: {additionalImages: ["${image}"]}\n`);
    await assert.rejectsWith(make(box, signal, '--dry-run'), 'SPEC_INVALID', said);
  }
});

test('what is no reference is refused', async ({ signal }) => {
  await using box = await tree({ 'spec.yaml': specOf({ alpha: 'latest' }) });
  await publishTestPackages(box, ALPHA, signal);
  await assert.rejectsWith(make(box, signal, '--dry-run', '--image', 'UPPER'), 'USAGE', /--image "UPPER"/);
});

test.run();
