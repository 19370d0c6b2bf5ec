import { Readable } from 'node:stream';
import {
  containerLines,
  keepLastLines,
  linesOf,
  plainLine,
  quoteLines,
} from '../../../src/platform/process/program-lines.ts';
import { proxyVariables } from '../../../src/build/containers/containers.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('build/program-lines');

function frame(stream: number, text: string): Buffer {
  const data = Buffer.from(text);
  const head = Buffer.alloc(8);
  head.writeUInt8(stream, 0);
  head.writeUInt32BE(data.byteLength, 4);
  return Buffer.concat([head, data]);
}

function pieces(data: Buffer, size: number): Readable {
  return Readable.from(
    Array.from({ length: Math.ceil(data.byteLength / size) }, (_, at) => data.subarray(at * size, (at + 1) * size)),
  );
}

for (const size of [1, 3, 7, 1000]) {
  test(`lines of both outputs are put together from pieces of ${size} bytes, and never mixed`, async () => {
    const data = Buffer.concat([
      frame(1, 'one\ntw'),
      frame(2, 'er'),
      frame(1, 'ö\n\nlast'),
      frame(2, ''),
      frame(2, 'ror\n'),
    ]);
    assert.equal(await Readable.from(containerLines(pieces(data, size))).toArray(), [
      'one',
      'twö',
      '',
      'error',
      'last',
    ]);
  });
}

test('a line without end is cut, and the next one is whole', async () => {
  const data = Buffer.from(`${'x'.repeat(5000)}\nnext\n`);
  const lines = await Readable.from(linesOf(pieces(data, 64), { limit: 100 })).toArray();
  assert.equal(lines, ['x'.repeat(100), 'next']);
});

test('colours and what a return has overwritten are left out', () => {
  assert.is(plainLine('\u001b[91mred\u001b[0m and \u001b[1;32mgreen\u001b[K'), 'red and green');
  assert.is(plainLine(' 10 %\r 50 %\r100 %\r'), '100 %');
  assert.is(plainLine(`${'\r'.repeat(1_000_000)}x`), 'x');
});

test('the last twenty lines that say something are kept', () => {
  const last = keepLastLines();
  for (let at = 0; at < 30; at += 1) last.add(at % 3 === 0 ? '  ' : `line ${at}   `);
  last.add(`cannot write ${'y'.repeat(900)}: no space left on device`);
  assert.is(last.lines().length, 20);
  assert.match(last.lines().at(-1) ?? '', /^cannot write y+…y+: no space left on device$/);
  assert.is(last.lines().at(-1)?.length, 500);
  assert.is(last.lines().at(-2), 'line 29');
  last.clear();
  assert.is(quoteLines(last.lines()), '');
});

test('containers get the proxies that they can reach', () => {
  const env = {
    HTTPS_PROXY: 'http://proxy.example:3128',
    http_proxy: 'http://127.0.0.1:3128',
    NO_PROXY: 'a',
    no_proxy: '',
  };
  assert.equal(proxyVariables(env, undefined), { HTTPS_PROXY: 'http://proxy.example:3128', NO_PROXY: 'a' });
  assert.is(proxyVariables(env, 'host')['http_proxy'], 'http://127.0.0.1:3128');
});

test.run();
