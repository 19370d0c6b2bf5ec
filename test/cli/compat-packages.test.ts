/** Packages, bundles, stores, locks and plans that an older version made. */
import { readFile, writeFile } from 'node:fs/promises';
import { openFileSource, readIndex } from '../../src/formats/archive/read.ts';
import { ADDON_JSON } from '../../src/core/layout.ts';
import * as assert from '../support/assert.ts';
import { done, eachOlder, FIRST, refused, registryOfImages } from '../support/compat.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { writeTree, type Tree } from '../support/tree.ts';

const test = suite('cli: packages of an older version');
const older = eachOlder(test);

/** What a signature of the first version says less than one of today: docs/signing.md. */
const BARE = 'its signature covers no name, version or time';

async function areSame(box: Tree, one: string, other: string): Promise<void> {
  assert.ok((await readFile(box.at(one))).equals(await readFile(box.at(other))), `${one} and ${other}`);
}

/** Every file with its digests as it is and as it is packed, but for addon.json, which says what made it. */
async function contentsOf(path: string): Promise<readonly string[]> {
  await using source = await openFileSource(path);
  const { entries } = await readIndex(source, { signal: never });
  const own = entries.filter((entry) => !entry.path.endsWith(`/${ADDON_JSON}`));
  return own.map(({ path: file, mode, digest, packedDigest }) => [file, mode, digest, packedDigest].join(' '));
}

older('packages, bundles, parts and deltas that it made are verified', async (boxOf) => {
  await using box = await boxOf('packages', 'bundles');
  const packages = 'out/web-1.0.0.tar.gz out/web-1.1.0.tar.gz out/tools-1.0.0.tar.gz archives/web-1.0.0.tar.gz';
  const files = `${packages} old.tar.gz new.tar.gz ubuntu.tar.gz delta.tar.gz parts/old.tar.gz.parts.json`;
  const { stdout } = await done(box, `verify ${files}`);
  for (const file of files.split(' ')) assert.match(stdout, `${file}: ok, `);
});

older('what it signed is verified, with a warning if it names nothing', async (boxOf, made) => {
  await using box = await boxOf('packages', 'bundles');
  for (const file of ['out/web-1.0.0.tar.gz', 'old.tar.gz', 'delta.tar.gz', 'parts/old.tar.gz.parts.json']) {
    const { stdout, stderr } = await done(box, `verify ${file} --key release.pub`);
    assert.match(stdout, /^signed with \S+release\.pub$/m);
    assert.is(stderr.includes(BARE), made === FIRST, stderr);
  }
  await refused(box, 30, 'there is no signature', 'verify out/web-1.1.0.tar.gz --key release.pub');
  const install = 'install --bundle old.tar.gz --key release.pub --root root --unconfined --dry-run';
  const { stderr } = await done(box, install);
  assert.is(stderr.replaceAll(/\s+/g, ' ').includes(BARE), made === FIRST, stderr);
  await refused(box, 30, /./, `${install} --signed-as other`);
});

older('what is in them is shown', async (boxOf) => {
  await using box = await boxOf('packages', 'bundles');
  const { stdout } = await done(box, 'inspect old.tar.gz');
  assert.match(stdout, /^hooks {4}web_pre_init web web_already_applied web_post_init web_outro web_uninstall$/m);
  assert.match(stdout, /^image {4}web images\.example\/web:1$/m);
  assert.match(stdout, /^systems {2}ubuntu-16\.04 ubuntu-18\.04 ubuntu-20\.04 ubuntu-22\.04 ubuntu-24\.04$/m);
  const sbom = (await done(box, 'sbom out/tools-1.0.0.tar.gz')).stdout;
  assert.match(sbom, 'pkg:deb/ubuntu/zebra-early@1.0');
});

older('the bundle of a delta that it made comes out bit for bit, and so does one of parts', async (boxOf) => {
  await using box = await boxOf('bundles');
  await done(box, 'apply delta.tar.gz --base old.tar.gz -o whole.tar.gz --key release.pub');
  await areSame(box, 'whole.tar.gz', 'new.tar.gz');
  await done(box, 'join-parts parts/old.tar.gz.parts.json -o joined.tar.gz --key release.pub');
  await areSame(box, 'joined.tar.gz', 'old.tar.gz');
});

older('packages of its release are bundled, whole and for an inventory that it made', async (boxOf) => {
  await using box = await boxOf('store', 'bundles');
  await done(box, 'bundle new.yaml --from store --key release.pub --verify -o mine.tar.gz');
  await done(box, 'bundle new.yaml --from store --since inventory.json -o since.tar.gz');
  await done(box, 'apply since.tar.gz --base old.tar.gz -o applied.tar.gz');
  await areSame(box, 'applied.tar.gz', 'mine.tar.gz');
  const ofPackages = (files: readonly string[]): readonly string[] =>
    files.filter((file) => file.startsWith('addons/'));
  assert.equal(ofPackages(await contentsOf(box.at('mine.tar.gz'))), ofPackages(await contentsOf(box.at('new.tar.gz'))));
});

older(
  'a plan of a bundle that it saved is shown and compared, and not carried out with another tool',
  async (boxOf) => {
    await using box = await boxOf('store');
    const shown = (await done(box, 'bundle --from-plan bundle-plan.json --dry-run')).stdout;
    assert.match(shown, /^copy \S+ [kM]?B of v1\.1\.0\/web-1\.1\.0\.tar\.gz$/m);
    const compared = (await done(box, 'bundle new.yaml --from store --dry-run --against bundle-plan.json')).stdout;
    assert.match(compared, /^ {2}bin\/curlew: different bytes$/m);
    assert.not.match(compared, /^ {2}addons\//m);
    // The scripts and the tool of a bundle are those of the curlew that writes it: docs/bundle-plans.md.
    const carry = 'bundle --from-plan bundle-plan.json --from store -o b.tar.gz';
    await refused(box, 32, 'this curlew has a different', carry);
  },
);

older('its locks are kept, and its packages are what is built by them', async (boxOf) => {
  await using box = await boxOf('packages');
  await using registry = await registryOfImages();
  const network = `--registry-mirror images.example=${registry.host}`;
  const lock = await readFile(box.at('addons/web/1.0.0/Manifest.lock'), 'utf8');
  await done(box, `build web --locked --out built ${network}`);
  for (const name of ['web-1.0.0.tar.gz', 'web-1.1.0.tar.gz']) {
    assert.equal(await contentsOf(box.at('built', name)), await contentsOf(box.at('out', name)));
  }
  const kept = (await done(box, `build web ${network}`)).stdout;
  assert.match(kept, /^web 1\.0\.0: unchanged/m);
  assert.match((await done(box, `outdated web ${network}`)).stdout, 'web 1.0.0: matches its committed lock');
  await done(box, `build web --update-lock ${network}`);
  assert.is(await readFile(box.at('addons/web/1.0.0/Manifest.lock'), 'utf8'), lock);
  await writeFile(box.at('addons/web/1.0.0/notes.txt'), 'other notes\n');
  await refused(box, 23, 'notes.txt', `build web --locked --out built ${network}`);
});

older('a plan of a build that it printed is carried out', async (boxOf) => {
  await using box = await boxOf('packages');
  await using registry = await registryOfImages();
  await done(box, `build --from-plan build-plan.json --out planned --registry-mirror images.example=${registry.host}`);
  assert.equal(await contentsOf(box.at('planned/web-1.0.0.tar.gz')), await contentsOf(box.at('out/web-1.0.0.tar.gz')));
});

older('a release is published to its store, of which only what has changed is built', async (boxOf) => {
  await using box = await boxOf('store');
  await using registry = await registryOfImages();
  const network = `--registry-mirror images.example=${registry.host}`;
  const differing = (await done(box, `changed web --from store --json ${network}`)).stdout;
  assert.equal((JSON.parse(differing) as { readonly changed: readonly unknown[] }).changed, []);
  await writeTree(box.path, {
    'addons/web/1.2.0/Manifest': 'image web images.example/web:2\n',
    'addons/web/1.2.0/install.sh': 'web() { :; }\n',
  });
  const { stdout } = await done(box, `publish web --to store --release v1.2.0 --sign release.key ${network}`);
  assert.match(stdout, /^web 1\.2\.0: uploaded/m);
  assert.match(stdout, /^web 1\.1\.0: unchanged, copied within the store/m);
  assert.match(stdout, /^tools 1\.0\.0: unchanged, copied within the store/m);
  assert.match((await done(box, 'versions --from store')).stdout, /^web: 1\.2\.0 1\.1\.0 1\.0\.0$/m);
  await done(box, 'bundle new.yaml --from store --key release.pub -o b.tar.gz');
  // What was published last is not to be taken back without a word.
  await refused(box, 34, 'v1.1.0', 'bundle new.yaml --from store --release v1.1.0 --key release.pub -o c.tar.gz');
  assert.match((await done(box, 'prune --from store --keep 1')).stdout, 'v1.0.0');
  await done(box, 'bundle new.yaml --from store --key release.pub -o d.tar.gz');
});

older('a release that it signed is promoted, and its rebuilt catalog is the same', async (boxOf) => {
  await using box = await boxOf('store');
  const index = await readFile(box.at('store/v1.1.0/index.json'), 'utf8');
  assert.match((await done(box, 'promote --from store@v1.1.0 --to dist --key release.pub')).stdout, 'is signed with');
  assert.is(await readFile(box.at('dist/v1.1.0/index.json'), 'utf8'), index);
  await writeFile(box.at('dist/v1.1.0/index.json'), 'damaged');
  await done(box, 'reindex dist');
  assert.is(await readFile(box.at('dist/v1.1.0/index.json'), 'utf8'), index);
});

test.run();
