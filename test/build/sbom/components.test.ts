import { digestOf } from '../../../src/core/digest.ts';
import type { ManifestLock } from '../../../src/manifest/lock.ts';
import { componentsOf } from '../../../src/build/sbom/components.ts';
import * as assert from '../../support/assert.ts';
import { describedPackage, LOCK } from '../../support/described.ts';
import { suite } from '../../support/suite.ts';

const test = suite('sbom/components');

test('images, host packages of this architecture, assets and built files, by what scanners know them', () => {
  const found = componentsOf(describedPackage());
  assert.equal(
    found.map(({ kind, name, version }) => [kind, name, version].join(' ').slice(0, 60)),
    [
      'image registry.example:5000/team/app 1.0',
      'host package libc6 1:2.35+x~1',
      'host package git 1:2.4-1.el9',
      'asset tool ',
      'asset a b/../c?d=e&f#g@h%2F\u0001\u00fc ',
      'built file rhel-8/built.rpm ',
    ],
  );
  const [image, deb, rpm, asset] = found;
  assert.match(
    image?.purl ?? '',
    /^pkg:oci\/app@sha256:[0-9a-f]{64}\?arch=amd64&repository_url=registry\.example:5000%2Fteam%2Fapp&tag=1\.0$/,
  );
  assert.match(
    deb?.purl ?? '',
    /^pkg:deb\/ubuntu\/libc6@1:2\.35%2Bx~1\?arch=amd64&checksum=sha256:.{64}&distro=ubuntu-22\.04$/,
  );
  assert.match(
    rpm?.purl ?? '',
    /^pkg:rpm\/rocky\/git@2\.4-1\.el9\?arch=x86_64&checksum=sha256:.{64}&distro=rocky-9&epoch=1$/,
  );
  assert.is(rpm?.url, undefined, 'the id of a repository is no address');
  assert.is(asset?.url, 'https://example.com/tool');
  assert.not.match(JSON.stringify(found), 'hush');
});

test('a folder of a system that is not known is named as it is', () => {
  const [host] = LOCK.hostPackages;
  const lock = { ...LOCK, hostPackages: host === undefined ? [] : [{ ...host, os: 'plan-9' }] };
  const [, deb] = componentsOf(describedPackage(lock));
  assert.match(deb?.purl ?? '', /^pkg:deb\/libc6@.*&distro=plan-9$/);
});

test('images in the form of docker save are known by the names of their archives', () => {
  const image = { ...LOCK.images[0], platforms: { 'linux/amd64': { digest: digestOf('elsewhere'), size: 1 } } };
  const { addon, files, lock } = describedPackage({ ...LOCK, images: [image] } as ManifestLock);
  const saved = { addon: { ...addon, imageFormat: 'docker-archive' } as const, omitted: [], lock };
  const archive = { path: 'images/app.tar.gz', mode: 0o644, size: 1, digest: digestOf('x') } as const;
  const [found] = componentsOf({ ...saved, files: [...files, archive] });
  assert.is(found?.digest, digestOf('elsewhere'));
  const missing = /team\/app is not in the package/;
  assert.throwsWith(() => componentsOf({ ...saved, files }), 'PACKAGE_INVALID', missing);
  assert.throwsWith(
    () => componentsOf({ addon, omitted: [], lock, files: [...files, archive] }),
    'PACKAGE_INVALID',
    missing,
  );
});

test('host packages of systems that a bundle left out are no components, and none that should be there lacks', () => {
  const { files, ...whole } = describedPackage();
  const there = files.filter(({ path }) => !path.startsWith('rhel-'));
  const found = componentsOf({ ...whole, files: there, omitted: ['rhel-8', 'rhel-9'] });
  assert.equal(
    found.map(({ kind }) => kind),
    ['image', 'host package', 'asset', 'asset'],
  );
  const other = /git is not in the package/;
  assert.throwsWith(() => componentsOf({ ...whole, files: there, omitted: ['rhel-8'] }), 'PACKAGE_INVALID', other);
});

const [IMAGE] = LOCK.images;
const [ASSET] = LOCK.assets;
for (const [title, changes, message] of [
  ['an asset that is not in the package', { assets: [{ ...ASSET, digest: digestOf('other') }] }, /tool is not in the/],
  ['half a character', { assets: [{ ...ASSET, name: 'a\ud800' }] }, /not valid Unicode/],
  ['an asset without a name', { assets: [{ ...ASSET, name: '' }] }, /kind asset has no name/],
  ['an image for another platform', { images: [{ ...IMAGE, platforms: {} }] }, /the image app is missing for amd64/],
  ['an image that no registry has', { images: [{ ...IMAGE, reference: 'a b' }] }, /the image app: "a b" is not a repo/],
] as const) {
  test(`a lock is refused that names ${title}`, () => {
    const lock = { ...LOCK, ...changes } as ManifestLock;
    assert.throwsWith(() => componentsOf(describedPackage(lock)), 'PACKAGE_INVALID', message);
  });
}

test.run();
