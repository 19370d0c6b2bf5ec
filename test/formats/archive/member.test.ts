import { crc32 } from 'node:zlib';
import {
  BLOCK,
  FRAMED_BLOCK,
  MEMBER_HEADER,
  memberTrailer,
  storedMember,
  unframeMember,
  writeBlockHeader,
} from '../../../src/formats/archive/member.ts';
import * as assert from '../../support/assert.ts';
import { noise } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';

// own process: measures memory
const test = suite('archive/member');

test('a stored member of any size is unframed to the bytes that were framed', () => {
  for (const size of [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 7]) {
    const raw = noise(size, size);
    assert.ok(raw.equals(unframeMember(storedMember(raw)) ?? Buffer.alloc(0)), String(size));
  }
});

test('no bytes can hide between the last block and the checksum', () => {
  for (let hidden = 1; hidden <= 12; hidden += 1) {
    for (const size of [1, 100, BLOCK - 2, BLOCK]) {
      const raw = noise(size);
      const member = storedMember(raw);
      const altered = Buffer.concat([member.subarray(0, -8), Buffer.alloc(hidden), member.subarray(-8)]);
      assert.is(unframeMember(altered), undefined, `${hidden} bytes after ${size}`);
    }
  }
});

test('only full blocks but the last one are framed as ours: one content has one form', () => {
  const raw = noise(1000);
  const member = Buffer.alloc(MEMBER_HEADER.length + 2 * 5 + 1000 + 8);
  member.set(MEMBER_HEADER);
  let at = MEMBER_HEADER.length;
  for (const [part, final] of [
    [raw.subarray(0, 400), false],
    [raw.subarray(400), true],
  ] as const) {
    writeBlockHeader(member, at, part.byteLength, final);
    member.set(part, at + 5);
    at += 5 + part.byteLength;
  }
  member.set(memberTrailer(crc32(raw), raw.byteLength), at);
  assert.is(unframeMember(member), undefined);
});

test('attack: a member of nothing but empty blocks costs no memory', () => {
  const member = Buffer.alloc(16 << 20);
  member.set(MEMBER_HEADER);
  for (let at = MEMBER_HEADER.length; at + FRAMED_BLOCK < member.byteLength; at += 5) {
    writeBlockHeader(member, at, 0, false);
  }
  const before = process.memoryUsage().rss;
  assert.is(unframeMember(member), undefined);
  assert.ok(process.memoryUsage().rss - before < 100 << 20);
});

test.run();
