/** What kURL's own builder does with a Manifest, case by case (kurl.md 11). */
import { openFileSource, readIndex } from '../../src/formats/archive/read.ts';
import { parseManifest } from '../../src/manifest/parse.ts';
import * as assert from '../support/assert.ts';
import { addon, buildAll } from '../support/builds.ts';
import { never } from '../support/context.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files } from '../support/tree.ts';
import { startServer } from '../support/web-server.ts';

const test = suite('kurl/manifest-cases');

function kinds(text: string): readonly string[] {
  return parseManifest('Manifest', text).manifest.requests.map(({ keyword }) => keyword.text);
}

/** Paths of the files of a package, those of the format itself left out. */
async function filesOf(files: Files, given: { readonly registry?: string } = {}): Promise<readonly string[]> {
  await using box = await tree(files);
  const [built] = await buildAll({ root: box.path, imageFormat: 'docker-archive', ...given });
  await using source = await openFileSource(built?.path ?? '');
  const { entries } = await readIndex(source, { signal: never });
  const paths = entries.map(({ path }) => path.replace('addons/demo/1.0/', ''));
  return paths.filter((path) => !['', 'addon.json', 'Manifest.lock', 'stargz.index.json'].includes(path)).toSorted();
}

test('case 1: the last line needs no line end; blanks and comments do nothing', () => {
  assert.equal(kinds('image a b:1\n   \n  # apt x\n\napt jq'), ['image', 'apt']);
  assert.equal(parseManifest('Manifest', 'image a b:1\n   \n  # apt x\n\napt jq').diagnostics, []);
});

test('case 1: an unknown directive is an error that names it and its line', () => {
  const [found] = parseManifest('Manifest', 'image a b:1\nfoo bar\n').diagnostics;
  assert.is(found?.severity, 'error');
  assert.match(found?.message ?? '', 'foo');
  assert.equal([found?.place.line, found?.place.column], [2, 1]);
});

test('case 2: an image that remote nodes do not load is packaged as any other', async () => {
  await using registry = await startRegistry({ 'repo/x:1': makeImage([makeLayer({ a: 'a' })]) });
  const files = addon('demo', 'image a images.example/repo/x:1 no_remote_load\n');
  assert.equal(await filesOf(files, { registry: registry.host }), ['Manifest', 'images/a.tar.gz', 'install.sh']);
});

test('case 2: assets come from the web, or from the folder of the Manifest', async () => {
  await using server = await startServer(() => ({ status: 200, body: 'kubeadm' }));
  const files = addon('demo', `asset kubeadm ${server.url}/k\nasset f ./f\n`, { f: 'f' });
  assert.equal(await filesOf(files), ['Manifest', 'assets/f', 'assets/kubeadm', 'f', 'install.sh']);
});

test('case 2: apt24 is a line in Deps and no archive', async () => {
  const paths = await filesOf(addon('demo', 'apt24 containerd\n'));
  assert.equal(paths, ['Manifest', 'install.sh', 'ubuntu-24.04/Deps']);
});

test("case 2: an empty Manifest gives a package with only the folder's own files", async () => {
  const paths = await filesOf(addon('demo', '', { 'yaml/a.yaml': 'a: 1\n' }));
  assert.equal(paths, ['Manifest', 'install.sh', 'yaml/a.yaml']);
});

test.run();
