import * as fc from 'fast-check';
import { PackageURL } from 'packageurl-js';
import { formatPurl, type PurlParts } from '../../../src/build/sbom/purl.ts';
import * as assert from '../../support/assert.ts';
import { HOSTILE } from '../../support/described.ts';
import { suite } from '../../support/suite.ts';

const test = suite('sbom/purl');

const HEX = 'a'.repeat(64);

for (const [title, parts, text] of [
  [
    'an image',
    {
      type: 'oci',
      name: 'Nginx',
      version: `sha256:${HEX}`,
      qualifiers: { tag: '1.27', arch: 'amd64', repository_url: 'docker.io/library/nginx' },
    },
    `pkg:oci/nginx@sha256:${HEX}?arch=amd64&repository_url=docker.io%2Flibrary%2Fnginx&tag=1.27`,
  ],
  [
    'a Debian package with an epoch',
    {
      type: 'deb',
      namespace: 'ubuntu',
      name: 'libstdc++6',
      version: '1:2+x~1',
      qualifiers: { distro: 'ubuntu-22.04' },
    },
    'pkg:deb/ubuntu/libstdc%2B%2B6@1:2%2Bx~1?distro=ubuntu-22.04',
  ],
  [
    'an rpm, whose name keeps its case',
    { type: 'rpm', namespace: 'rocky', name: 'NetworkManager', version: '5-2.el9', qualifiers: { epoch: '1' } },
    'pkg:rpm/rocky/NetworkManager@5-2.el9?epoch=1',
  ],
  [
    'nothing of what is not known',
    { type: 'generic', name: 'x', version: undefined, qualifiers: { a: undefined, b: '' } },
    'pkg:generic/x',
  ],
] as const) {
  test(`it names ${title}`, () => assert.is(formatPurl(parts), text));
}

test('no name leaves its place, whatever is in it', () => {
  const text = formatPurl({
    type: 'generic',
    name: `${HOSTILE}\ud800`,
    version: HOSTILE,
    qualifiers: { checksum: HOSTILE },
  });
  assert.match(text, /^pkg:generic\/[A-Za-z0-9%.~_:-]+@[A-Za-z0-9%.~_:-]+\?checksum=[A-Za-z0-9%.~_:-]+$/);
});

test("the reader of purl's own project reads back what was written", () => {
  const word = fc
    .string({ minLength: 1, unit: 'grapheme' })
    .filter((text) => text.trim() === text && !/^[./]+$/.test(text));
  // That reader decodes qualifiers twice.
  const plain = word.filter((text) => !text.includes('%'));
  const arbitrary = fc.record({ type: fc.constant('generic' as const), name: word, version: word, checksum: plain });
  fc.assert(
    fc.property(arbitrary, ({ type, name, version, checksum }) => {
      const parts: PurlParts = { type, name, version, qualifiers: { checksum } };
      const read = PackageURL.fromString(formatPurl(parts));
      const whole = (text: string): string => Buffer.from(text).toString();
      assert.equal([read.name, read.version, read.qualifiers?.['checksum']], [name, version, checksum].map(whole));
    }),
  );
});

test.run();
