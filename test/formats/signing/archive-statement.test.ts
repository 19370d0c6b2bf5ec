import { sign } from 'node:crypto';
import { digestOf } from '../../../src/core/digest.ts';
import {
  archiveOf,
  requireBareAcceptable,
  requireAcceptable,
  signArchive,
  verifyArchiveStatement,
  type ArchiveStatement,
  type SignatureRequirements,
} from '../../../src/formats/signing/archive-statement.ts';
import { makeKeyPair, publicPart, readPrivateKey } from '../../../src/formats/signing/keys.ts';
import { signStatement, type Statement } from '../../../src/formats/signing/statement.ts';
import * as assert from '../../support/assert.ts';
import { DAY, later, NOW } from '../../support/signing.ts';
import { suite } from '../../support/suite.ts';

const test = suite('statements about archives');

const key = readPrivateKey(makeKeyPair(undefined).privateKey, 'our.key', undefined);
const trusted = [publicPart(key, 'our.pub')];
const CONTENTS = digestOf('contents');

const BUNDLE: ArchiveStatement = {
  role: 'bundle',
  name: 'edge',
  version: 5,
  signed: NOW,
  expires: later(30),
  file: digestOf('file'),
  contents: CONTENTS,
  makes: undefined,
};

function read(text: string): ArchiveStatement {
  return verifyArchiveStatement({ text, from: 's.json', about: 'b.tar.gz' }, CONTENTS, trusted).statement;
}

test('come back as they were signed, by whoever is trusted', () => {
  const forever = { ...BUNDLE, expires: undefined, makes: digestOf('whole') };
  const ofPackage = { ...BUNDLE, role: 'package', name: 'addons/web/1.0.0' } as const;
  for (const statement of [BUNDLE, forever, ofPackage]) assert.equal(read(signArchive(statement, key)), statement);
});

test('about other contents are of another file', () => {
  const other = signArchive({ ...BUNDLE, contents: digestOf('others'), makes: CONTENTS }, key);
  assert.throwsWith(
    () => read(other),
    'SIGNATURE_INVALID',
    /verify b\.tar\.gz: the signature s\.json belongs to another file/,
  );
});

const SUBJECTS: Statement['subjects'] = [
  { name: 'bundle.tar.gz', digest: BUNDLE.file },
  { name: 'stargz.index.json', digest: CONTENTS },
];
const PREDICATE = { role: 'bundle', name: 'edge', version: 5, signed: '2026-11-20T12:00:00Z' };

for (const [what, change] of [
  ['releases', { predicateType: 'urn:curlew:release:v1' }],
  ['an unknown kind', { predicate: { ...PREDICATE, role: 'release' } }],
  ['no kind', { predicate: { ...PREDICATE, role: undefined } }],
  ['a package under the name of a bundle', { predicate: { ...PREDICATE, role: 'package' } }],
  ['a bundle under the name of a package', { predicate: { ...PREDICATE, name: 'addons/web/1.0.0' } }],
  ['a name with an escape sequence', { predicate: { ...PREDICATE, name: 'edge\u001b[2J' } }],
  ['a name that is no text', { predicate: { ...PREDICATE, name: ['edge'] } }],
  ['a name of the language', { predicate: { ...PREDICATE, name: '__proto__' } }],
  ['a negative version', { predicate: { ...PREDICATE, version: -5 } }],
  ['version 0', { predicate: { ...PREDICATE, version: 0 } }],
  ['a broken version', { predicate: { ...PREDICATE, version: 5.5 } }],
  ['a version as text', { predicate: { ...PREDICATE, version: '5' } }],
  ['a version that numbers cannot count', { predicate: { ...PREDICATE, version: 2 ** 53 } }],
  ['no time', { predicate: { ...PREDICATE, signed: undefined } }],
  ['a day that does not exist', { predicate: { ...PREDICATE, signed: '2026-13-40T12:00:00Z' } }],
  ['an end that cannot be read', { predicate: { ...PREDICATE, expires: 'never' } }],
  ['no end, said as null', { predicate: { ...PREDICATE, expires: null } }],
  ['two contents', { subjects: [...SUBJECTS, { name: 'stargz.index.json', digest: digestOf('others') }] }],
  ['no contents', { subjects: SUBJECTS.slice(0, 1) }],
  ['no file', { subjects: SUBJECTS.slice(1) }],
  ['the file of another kind', { subjects: [{ name: 'package.tar.gz', digest: BUNDLE.file }, ...SUBJECTS.slice(1)] }],
  [
    'ten thousand other things',
    { subjects: Array.from({ length: 10_000 }, (_, at) => ({ name: `${at}`, digest: CONTENTS })) },
  ],
] as const) {
  test(`that speak of ${what} say something else`, () => {
    const statement = { subjects: SUBJECTS, predicateType: 'urn:curlew:archive:v1', predicate: PREDICATE, ...change };
    assert.throwsWith(
      () => read(signStatement(statement, key)),
      'SIGNATURE_INVALID',
      /verify b\.tar\.gz: s\.json has a valid signature, but is not a statement about it/,
    );
  });
}

test('of an envelope that is not whole, holds too many signatures or a second kind of them are refused', () => {
  const right = JSON.parse(signArchive(BUNDLE, key)) as {
    dsseEnvelope: { payload: string; signatures: { sig: string }[] };
  };
  const { dsseEnvelope } = right;
  const [signature] = dsseEnvelope.signatures;
  assert.ok(signature !== undefined);
  const others = Array.from({ length: 15 }, () => ({ sig: 'AAAA' }));
  assert.is(
    read(JSON.stringify({ ...right, dsseEnvelope: { ...dsseEnvelope, signatures: [...others, signature] } })).name,
    'edge',
  );
  const payload = Buffer.from(dsseEnvelope.payload, 'base64').toString().replace('"edge"', '"core"');
  for (const change of [
    { dsseEnvelope: { ...dsseEnvelope, signatures: [...others, { sig: 'AAAA' }, signature] } },
    { dsseEnvelope: { ...dsseEnvelope, signatures: [] } },
    { dsseEnvelope: { ...dsseEnvelope, signatures: { sig: signature.sig } } },
    { dsseEnvelope: { ...dsseEnvelope, payload: Buffer.from(payload).toString('base64') } },
    { dsseEnvelope: { ...dsseEnvelope, payloadType: 'application/json' } },
    { messageSignature: {} },
  ]) {
    assert.throwsWith(() => read(JSON.stringify({ ...right, ...change })), 'SIGNATURE_INVALID');
  }
  const deep = `${'['.repeat(400_000)}${']'.repeat(400_000)}`;
  for (const text of [deep, '', 'null', '{}', `{"dsseEnvelope":${deep}}`]) {
    assert.throwsWith(() => read(text), 'SIGNATURE_INVALID');
  }
});

test('of a text that readers understand in different ways are refused, whoever signed it', () => {
  const right = JSON.parse(signArchive(BUNDLE, key)) as { dsseEnvelope: { payload: string } };
  const text = Buffer.from(right.dsseEnvelope.payload, 'base64').toString();
  for (const payload of [
    Buffer.from(text.replace('"version":5', '"version":9,"version":5')),
    Buffer.from(`\ufeff${text}`),
    Buffer.from(text.replace('urn:curlew', 'urn:\u00ff'), 'latin1'),
  ]) {
    const head = `DSSEv1 28 application/vnd.in-toto+json ${payload.byteLength} `;
    const sig = sign('sha256', Buffer.concat([Buffer.from(head), payload]), key).toString('base64');
    const dsseEnvelope = { ...right.dsseEnvelope, payload: payload.toString('base64'), signatures: [{ sig }] };
    assert.throwsWith(
      () => read(JSON.stringify({ ...right, dsseEnvelope })),
      'SIGNATURE_INVALID',
      /its payload: (?:not JSON|an object has a key twice)/,
    );
  }
});

const WANTED: SignatureRequirements = {
  role: undefined,
  name: undefined,
  allowDowngrade: false,
  statement: false,
  seen: new Map(),
  now: NOW,
};

function judged(over: Partial<SignatureRequirements>, statement: Partial<ArchiveStatement> = {}): void {
  requireAcceptable({ ...BUNDLE, ...statement }, 'b.tar.gz', { ...WANTED, ...over });
}

test('are taken for the kind and the name that are wanted, and no others', () => {
  judged({ role: 'bundle', name: 'edge' });
  assert.throwsWith(
    () => judged({ role: 'bundle' }, { role: 'package', name: 'addons/web/1.0.0' }),
    'SIGNATURE_INVALID',
    /it is signed as the package addons\/web\/1\.0\.0, but a bundle is required/,
  );
  assert.throwsWith(() => judged({ role: 'package' }), 'SIGNATURE_INVALID', /but a package is required/);
  assert.throwsWith(() => judged({ name: 'core' }), 'SIGNATURE_INVALID', /signed as the bundle edge, not as core/);
});

test('hold from a day before they were signed until they are over', () => {
  judged({ now: later(-1) });
  judged({ now: new Date(later(30).getTime() - 1) });
  judged({ now: later(4000) }, { expires: undefined });
  assert.throwsWith(
    () => judged({ now: new Date(NOW.getTime() - DAY - 1) }),
    'SIGNATURE_INVALID',
    /at 2026-11-20T12:00:00Z, but the clock of this machine shows 2026-11-19T11:59:59Z/,
  );
  assert.throwsWith(() => judged({ now: new Date(0) }, { expires: undefined }), 'SIGNATURE_INVALID', /shows 1970/);
  for (const allowDowngrade of [false, true]) {
    assert.throwsWith(
      () => judged({ now: later(30), allowDowngrade }),
      'SIGNATURE_INVALID',
      /until 2026-12-20T12:00:00Z, but the clock of this machine shows 2026-12-20T12:00:00Z/,
    );
  }
});

test('of a bundle that was seen in a higher version are a downgrade, unless it is the same bundle', () => {
  const seen = new Map([['edge', { version: 6, contents: digestOf('newer') }]]);
  assert.throwsWith(() => judged({ seen }), 'DOWNGRADE', /edge, version 5, but this node has already seen version 6/);
  assert.throwsWith(() => judged({ seen, name: 'edge' }), 'DOWNGRADE');
  judged({ seen, allowDowngrade: true });
  judged({ seen }, { version: 6 });
  judged({ seen }, { contents: digestOf('newer') });
  judged({ seen }, { makes: digestOf('newer') });
  assert.throwsWith(() => judged({ seen }, { contents: digestOf('newer'), makes: digestOf('older') }), 'DOWNGRADE');
  judged({ seen }, { role: 'package', name: 'addons/edge/1' });
});

test('of a bundle that was never seen, where others were, want it to be named', () => {
  const seen = new Map([['core', { version: 6, contents: CONTENTS }]]);
  assert.throwsWith(
    () => judged({ seen, allowDowngrade: true }),
    'SIGNATURE_INVALID',
    /signed as the bundle edge; this node has bundles of this key named core/,
  );
  judged({ seen, name: 'edge' });
});

test('are wanted from whoever has had one, and for a name: a signature over contents alone will not do', () => {
  const seen = new Map([['edge', { version: 6, contents: CONTENTS }]]);
  requireBareAcceptable('b.tar.gz', WANTED);
  requireBareAcceptable('b.tar.gz', { ...WANTED, seen, allowDowngrade: true });
  assert.throwsWith(
    () => requireBareAcceptable('b.tar.gz', { ...WANTED, seen }),
    'DOWNGRADE',
    /covers no name, version or time/,
  );
  assert.throwsWith(
    () => requireBareAcceptable('b.tar.gz', { ...WANTED, statement: true, allowDowngrade: true }),
    'SIGNATURE_INVALID',
    /--require-statement refuses such signatures/,
  );
  assert.throwsWith(
    () => requireBareAcceptable('b.tar.gz', { ...WANTED, name: 'edge' }),
    'SIGNATURE_INVALID',
    /the name edge is required/,
  );
});

test('call an archive the package that it is, or a bundle', () => {
  const web = ['addons/web/1.0.0/addon.json', 'addons/web/1.0.0/install.sh'];
  assert.equal(archiveOf(web), { role: 'package', name: 'addons/web/1.0.0' });
  const bundle = { role: 'bundle', name: undefined };
  assert.equal(archiveOf(['bundle.json', ...web]), bundle);
  assert.equal(archiveOf([...web, 'addons/web/1.0.1/addon.json']), bundle);
  assert.equal(archiveOf([]), bundle);
});

test.run();
