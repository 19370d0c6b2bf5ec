import * as fc from 'fast-check';
import { decodeText, isCleanText } from '../../src/manifest/text-file.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { cases } from '../support/sweep.ts';

// soak: random cases
const test = suite('manifest/text-file');

const BAD = /[\uFFFD\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

test('a text is clean when an expression over what it decodes to finds nothing', () => {
  const parts = ['a', 'plain text: ', '\n', '\t', '\r\n', 'é', '“…”', '😀', '\u007f', '\u0000', '\u001f', '\u{FFFD}'];
  const part = fc.oneof(
    fc.constantFrom(...parts).map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 1 }).map((bytes) => Buffer.from(bytes)),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (found) => {
      const bytes = Buffer.concat(found);
      // Not where memory is read by words, too.
      for (const shift of [0, 1]) {
        const moved = Buffer.concat([Buffer.alloc(shift), bytes]).subarray(shift);
        assert.is(isCleanText(moved), !BAD.test(bytes.toString('utf8')), bytes.toString('hex'));
        assert.is(decodeText(moved), bytes.toString('utf8'));
      }
    }),
    cases(2000),
  );
});

test('each byte that no text holds is found, wherever it is', () => {
  for (let code = 0; code < 256; code += 1) {
    for (let at = 0; at < 9; at += 1) {
      const bytes = Buffer.alloc(9, 'x');
      bytes[at] = code;
      assert.is(isCleanText(bytes), !BAD.test(bytes.toString('utf8')), `${code} at ${at}`);
    }
  }
});

test.run();
