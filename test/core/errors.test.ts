import { atPath, CurlewError, fileError, machineError, maskSecrets, redact } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/errors');

test('user info and query leave every address of a text', () => {
  for (const [text, clean] of [
    ['get https://me:secret@host/a?key=secret failed', 'get https://host/a failed'],
    ['https://host/a.json?token=secret: no such file', 'https://host/a.json: no such file'],
    ['get HTTPS://me:secret@host:8443#secret', 'get HTTPS://host:8443'],
    ['s3+http://a:secret@b/c, and ftp://secret@d', 's3+http://b/c, and ftp://d'],
    [`${'long-scheme.'.repeat(5)}x://secret@host/a`, `${'long-scheme.'.repeat(5)}x://host/a`],
    ['1http://secret@host', '1http://host'],
    ['no address: a@b?c', 'no address: a@b?c'],
    ["get https://me:sec'ret@host/a failed", 'get https://host/a failed'],
    ['get https://me:sec<ret@[host', 'get https://[host'],
    ['get https://me:sec/r?e#t@host/a', 'get https://host/a'],
    ['open /srv/https:/me:secret@host/a', 'open /srv/https:/host/a'],
    ['get https://host:8080/a@b', 'get https://host:8080/a@b'],
    ['{"a":"https://host","b":"c@d"}', '{"a":"https://host","b":"c@d"}'],
  ] as const) {
    assert.is(redact(text), clean);
  }
});

test('a text made to cost time is read in one go', () => {
  const text = 'a.-'.repeat(300_000);
  assert.is(redact(text), text);
  for (const piece of ['a://', 'a://b:', "a://b:'", 'https:/', 'a://b:c?']) {
    for (const clean of [redact, maskSecrets]) assert.ok(clean(piece.repeat(50_000)).length > 0);
  }
});

test('frames of source text keep their columns without their secrets', () => {
  for (const [text, masked] of [
    ["asset a https://me:s'et@host/a?key=secret#b", 'asset a https://*******@host/a?**********#b'],
    ['asset a https://host/a', 'asset a https://host/a'],
  ] as const) {
    assert.is(maskSecrets(text), masked);
  }
});

test('a file operation that is not permitted is answered with what to check', () => {
  for (const code of ['EACCES', 'EPERM']) {
    const error = fileError('write /etc/x', Object.assign(new Error(`${code}: permission denied`), { code }));
    assert.is(error.code, 'FILE_UNUSABLE');
    assert.match(error.hint ?? '', 'check its owner and permissions');
  }
});

/** An error of a call on an open file, as Node throws it. */
function failed(code: string, syscall: string): Error {
  return Object.assign(new Error(`${code}: i/o error, ${syscall}`), { code, syscall });
}

test('an error of an open file names the file', async () => {
  const error = await Promise.reject(failed('EIO', 'fsync')).catch(atPath('/srv/a')).catch(machineError);
  assert.match(error instanceof CurlewError ? error.message : '', /^cannot fsync \/srv\/a: /);
});

test('an error after which something could not be removed is told itself', () => {
  const removing = failed('EROFS', 'unlink');
  const both = { name: 'SuppressedError', error: removing, suppressed: failed('EIO', 'write') };
  for (const suppressed of [both.suppressed, Object.assign(new Error('two'), both)]) {
    const error = machineError(Object.assign(new Error('one'), { ...both, suppressed }));
    assert.match(error instanceof CurlewError ? error.message : '', /^cannot write: /);
  }
});

test.run();
