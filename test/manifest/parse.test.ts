import * as fc from 'fast-check';
import type { Diagnostic } from '../../src/core/diagnostic.ts';
import { MANIFEST_TEXT_LIMIT, parseManifest } from '../../src/manifest/parse.ts';
import { planManifest } from '../../src/manifest/directives.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { cases } from '../support/sweep.ts';

// soak: random cases
const test = suite('manifest/parse');
const HEX = 'ab'.repeat(32);

function codes(text: string): readonly string[] {
  return parseManifest('Manifest', text).diagnostics.map(({ code }) => code);
}

/** The words that a finding points at. */
function marked(text: string, { place }: Diagnostic): string {
  const line = text.split('\n')[place.line - 1] ?? '';
  return line.slice(place.column - 1, place.column - 1 + place.length);
}

for (const [title, text, code, points] of [
  ['an unknown directive', 'imag x y', 'manifest/unknown-directive', 'imag'],
  ['a directive in capitals', 'Image a b:1', 'manifest/unknown-directive', 'Image'],
  ['image without a reference', 'image ekco', 'manifest/missing-column', 'image ekco'],
  ['image without anything', '\timage', 'manifest/missing-column', 'image'],
  ['asset without a source', 'asset f', 'manifest/missing-column', 'asset f'],
  ['an asset that is a path alone', 'asset ./a/b.txt', 'asset/one-word', './a/b.txt'],
  ['an asset that is the URL of a folder', 'asset https://h/x/', 'manifest/missing-column', 'asset https://h/x/'],
  ['an asset that is a host', 'asset https://h', 'manifest/missing-column', 'asset https://h'],
  ['a build argument', 'dockerout rhel-8 D --build-arg=A_B=1.2', 'dockerout/build-arg', '--build-arg=A_B=1.2'],
  ['a build argument without a value', 'dockerout rhel-8 D --build-arg=A', 'dockerout/version', '--build-arg=A'],
  ['apt without a package', 'apt', 'manifest/missing-column', 'apt'],
  ['dockerout without a version', 'dockerout rhel-8 D', 'manifest/missing-column', 'dockerout rhel-8 D'],
  ['a word too many behind an image', 'image a b:1 c', 'manifest/extra-column', 'c'],
  ['a word behind no_remote_load', 'image a b:1 no_remote_load x', 'manifest/extra-column', 'x'],
  ['two names for an archive', 'image a ./b.tar b:1 c:1', 'manifest/extra-column', 'c:1'],
  ['no_remote_load twice', 'image a ./b.tar no_remote_load no_remote_load', 'manifest/extra-column', 'no_remote_load'],
  ['a name of an archive that is none', 'image a ./b.tar B:1', 'image/reference', 'B:1'],
  [
    'a digest of an archive',
    `image a ./b.tar b@sha256:${'0'.repeat(64)}`,
    'image/reference',
    `b@sha256:${'0'.repeat(64)}`,
  ],
  ['no_remote_load for an asset', 'asset a ./b no_remote_load', 'manifest/extra-column', 'no_remote_load'],
  ['two packages in a line', 'yum a b', 'manifest/extra-column', 'b'],
  ['a comment behind a directive', 'image a b:1 # why', 'manifest/inline-comment', '# why'],
  ['a line that ends in CR LF', 'image a b:1\r\n', 'manifest/crlf', '\r'],
  ['an empty line that ends in CR LF', '\r\n', 'manifest/crlf', '\r'],
  ['a byte order mark', '\u{FEFF}image a b:1', 'manifest/byte-order-mark', '\u{FEFF}'],
  ['a line that is not UTF-8', 'image \u{FFFD} b:1', 'manifest/encoding', '\u{FFFD}'],
  ['NUL in an id', 'image a\0b b:1', 'manifest/control-character', '\0'],
  ['an escape sequence in a comment', '# \u001b[2J', 'manifest/control-character', '\u001b'],
  ['a second image under one id', 'image a b:1\nimage a c:1', 'image/duplicate-id', 'a'],
  ['the same image line twice', 'image a b:1\nimage a b:1', 'image/duplicate-id', 'a'],
  [
    'one image under two ids',
    'image a b:1\nimage c docker.io/library/b:1',
    'image/duplicate-image',
    'docker.io/library/b:1',
  ],
  ['an id with ..', 'image a..b b:1', 'image/id', 'a..b'],
  ['an id that is ..', 'image .. b:1', 'image/id', '..'],
  ['an id with /', 'image a/b b:1', 'image/id', 'a/b'],
  ['an id of 300 characters', `image ${'a'.repeat(300)} b:1`, 'image/id', 'a'.repeat(300)],
  ['a reference in capitals', 'image a Nginx:1', 'image/reference', 'Nginx:1'],
  ['a reference with a bad digest', 'image a b:1@sha256:12', 'image/reference', 'b:1@sha256:12'],
  ['an untagged image', 'image a quay.io/b', 'image/untagged', 'quay.io/b'],
  ['the tag latest', 'image a b:latest', 'image/latest', 'b:latest'],
  ['a file name with ..', 'asset .. https://h/x', 'asset/file-name', '..'],
  ['a file name with /', 'asset ../../x https://h/x', 'asset/file-name', '../../x'],
  ['a file name of 300 characters', `asset ${'f'.repeat(300)} https://h/x`, 'asset/file-name', 'f'.repeat(300)],
  ['the wrong order of columns', 'asset https://h/x f', 'asset/file-name', 'https://h/x'],
  ['a URL that does not parse', 'asset f https://', 'asset/source', 'https://'],
  ['a scheme that is not for assets', 'asset f ftp://h/x', 'asset/source', 'ftp'],
  ['a folder as source', 'asset f ./x/', 'asset/source', './x/'],
  ['credentials in a URL', 'asset f https://u:p@h/x', 'asset/credentials', 'https://u:p@h/x'],
  ['a short digest', 'asset f https://h/x#sha256=12', 'asset/digest', '#sha256=12'],
  ['plain http from elsewhere', 'asset f http://h/x', 'asset/plain-http', 'http://'],
  ['an absolute path', 'asset f /etc/hosts', 'asset/absolute-path', '/etc/hosts'],
  ['two assets of one name', 'asset f ./a\nasset f ./b', 'asset/duplicate-name', 'f'],
  ['two assets of one file', 'asset f ./a\nasset g a', 'asset/packed-twice', 'a'],
  ['two assets of one address', 'asset f https://h/x\nasset g https://h/x', 'asset/packed-twice', 'https://h/x'],
  ['a package name like an option', 'apt -o', 'packages/name', '-o'],
  ['a package name with shell in it', 'yum a;reboot', 'packages/name', 'a;reboot'],
  ['a package twice', 'apt a\napt a', 'packages/duplicate', 'a'],
  ['a destination that is no system', 'dockerout ubuntu-22.4 D 1', 'dockerout/destination', 'ubuntu-22.4'],
  ['.. as a destination', 'dockerout .. D 1', 'dockerout/destination', '..'],
  ['.. in the path of a Dockerfile', 'dockerout rhel-8 a/../../D 1', 'dockerout/dockerfile', 'a/../../D'],
  ['an absolute Dockerfile', 'dockerout rhel-8 /D 1', 'dockerout/dockerfile', '/D'],
  ['a version with shell in it', 'dockerout rhel-8 D $(x)', 'dockerout/version', '$(x)'],
  ['one destination twice', 'dockerout rhel-8 D 1\ndockerout rhel-8 E 1', 'dockerout/duplicate', 'rhel-8'],
] as const) {
  test(`${title} is pointed at`, () => {
    const { diagnostics } = parseManifest('Manifest', text);
    assert.equal(
      diagnostics.map((found) => [found.code, marked(text, found)]),
      [[code, points]],
    );
  });
}

for (const [title, line] of [
  ['a digest in a reference', `image a quay.io/b/c:1@sha256:${HEX}`],
  ['a digest without a tag', `image a b@sha256:${HEX}`],
  ['a local image archive', 'image a ./images/a.tar'],
  ['a digest behind a URL', `asset f https://h/x?raw=1#sha256=${HEX.toUpperCase()}`],
  ['http from the loopback host', 'asset f http://127.0.0.1:5000/x'],
  ['a file below the folder', 'asset f ./f'],
  ['a file beside the folder', 'asset f ../shared/f'],
  ['tabs and blanks around words', ' \timage \t a   b:1\t '],
  ['apt and apt24 of one package', 'apt a\napt24 a'],
  ['a package name with a plus', 'apt libstdc++6'],
  ['nothing at all', ''],
] as const) {
  test(`${title}: no finding`, () => assert.equal(codes(line), []));
}

test('a keyword that is nearly right gets the right one in its hint', () => {
  const [found] = parseManifest('Manifest', 'dockerotu x').diagnostics;
  assert.match(found?.hint ?? '', /did you mean "dockerout"/);
});

test('all mistakes are told in one run, and the good lines between them count', () => {
  const { manifest, diagnostics } = parseManifest('M', 'imag x\nimage a b:1\nasset f\n\nyum ok\nyum -bad\n');
  assert.equal(
    diagnostics.map(({ code, place }) => [code, place.line]),
    [
      ['manifest/unknown-directive', 1],
      ['manifest/missing-column', 3],
      ['packages/name', 6],
    ],
  );
  assert.equal(
    manifest.requests.map(({ keyword }) => keyword.text),
    ['image', 'yum'],
  );
});

test('every line with CR LF is told once, and read without it', () => {
  const { manifest, diagnostics } = parseManifest('M', 'image a b:1\r\nyum x\r\n');
  assert.equal(
    diagnostics.map(({ code, place }) => [code, place.line]),
    [
      ['manifest/crlf', 1],
      ['manifest/crlf', 2],
    ],
  );
  assert.is(manifest.requests.length, 2);
});

test('an oversized Manifest is one finding and nothing else', () => {
  const { manifest, diagnostics } = parseManifest('M', 'x\n'.repeat(MANIFEST_TEXT_LIMIT));
  assert.equal(
    diagnostics.map(({ code }) => code),
    ['manifest/too-large'],
  );
  assert.is(manifest.requests.length, 0);
});

test('a file of nothing but mistakes stops being read at some point', () => {
  const found = codes('x\n'.repeat(5000));
  assert.is(found.length, 1001);
  assert.ok(found.includes('manifest/too-many'));
});

test('a comment behind a directive hides nothing else that is wrong', () => {
  const lines = [
    'image a..b b:1 # one',
    'asset f http://example.com/f # two',
    'image c d:1 # three',
    'image c e:1',
    'image # four',
  ];
  const { diagnostics } = parseManifest('M', lines.join('\n'));
  assert.equal(
    diagnostics.map(({ code, place }) => `${place.line}:${place.column} ${code}`),
    [
      '1:7 image/id',
      '1:16 manifest/inline-comment',
      '2:9 asset/plain-http',
      '2:30 manifest/inline-comment',
      '3:13 manifest/inline-comment',
      '4:7 image/duplicate-id',
      '5:1 manifest/missing-column',
      '5:7 manifest/inline-comment',
    ],
  );
});

test('conformance 11.1: last line without newline, blanks, comments, unknown kind', () => {
  const { manifest, diagnostics } = parseManifest('M', '   \n  # image x y:1\n\timage a b:1\n\n#\nfoo bar\nyum lvm2');
  assert.equal(
    manifest.requests.map(({ keyword }) => keyword.text),
    ['image', 'yum'],
  );
  assert.equal(
    diagnostics.map(({ message, place }) => [message, place.line]),
    [['unknown directive "foo"', 6]],
  );
});

test('conformance 11.2: no_remote_load, assets by URL and path, apt24, the empty Manifest', () => {
  const text = 'image a repo/x:1 no_remote_load\nasset kubeadm https://h/k\nasset f ./f\napt24 containerd\n';
  const { manifest, diagnostics } = parseManifest('M', text);
  assert.equal(diagnostics, []);
  const none = { digest: undefined };
  assert.equal(planManifest(manifest), [
    { kind: 'image', id: 'a', reference: 'docker.io/repo/x:1', archive: undefined, remoteLoad: false },
    { kind: 'asset', fileName: 'kubeadm', source: 'https://h/k', local: false, ...none },
    { kind: 'asset', fileName: 'f', source: './f', local: true, ...none },
    { kind: 'os-packages', os: 'ubuntu-24.04', output: 'deps', packages: ['containerd'] },
  ]);
  assert.equal(planManifest(parseManifest('M', '').manifest), []);
});

test('whatever the text, reading does not throw and places lie inside it', () => {
  const words = [
    'image',
    'asset',
    'apt',
    'yum9',
    'dockerout',
    'imag',
    '#',
    'a',
    '..',
    'a/b',
    'b:1',
    'https://h/x',
    'rhel-8',
  ];
  const blanks = [' ', '\t', '\n', '\r\n', '\r', '\0', '\u{FEFF}', '\u{FFFD}'];
  const piece = fc.oneof(fc.constantFrom(...words), fc.constantFrom(...blanks), fc.string({ unit: 'grapheme' }));
  const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(text, (manifest) => {
      const lines = manifest.split('\n');
      for (const { place } of parseManifest('M', manifest).diagnostics) {
        const line = lines[place.line - 1];
        assert.ok(line !== undefined && place.column >= 1 && place.length >= 1, JSON.stringify(place));
        assert.ok(place.column - 1 + place.length <= (line?.length ?? 0), JSON.stringify(place));
      }
    }),
    cases(2000),
  );
});

test.run();
