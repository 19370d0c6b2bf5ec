/** The parts of an executable for nodes; whole ones are run by test/components/executable.test.ts. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib';
import { deflatePart, keptPart } from '../../scripts/node-tool/deflate.ts';
import { injectBlob } from '../../scripts/node-tool/inject.ts';
import { pinnedNode, type NodePins } from '../../scripts/node-tool/node-packages.ts';
import { digestOf, hexOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { noise } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('scripts/node-tool');

const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:0';
const LOAD = 1;
const INTERPRETER = 3;
const NOTE = 4;
const TABLE = 6;
const LOADER = '/lib64/ld-linux-x86-64.so.2\0';

interface Shape {
  /** Bytes of the build's notes, behind the interpreter's name. */
  readonly notes?: number;
  readonly types?: readonly number[];
  readonly fuse?: string;
}

/** An executable of nothing but headers, laid out as Node's are. */
function executable({ notes = 68, types = [TABLE, INTERPRETER, LOAD, LOAD, NOTE], fuse = FUSE }: Shape = {}): Buffer {
  const file = Buffer.alloc(70_000);
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  file.writeBigUInt64LE(64n, 32);
  file.writeUInt16LE(types.length, 56);
  const end = 64 + types.length * 56;
  const places: Readonly<Record<number, readonly [number, number]>> = {
    [TABLE]: [64, end - 64],
    [INTERPRETER]: [end, LOADER.length],
    [NOTE]: [end + LOADER.length, notes],
  };
  for (const [index, type] of types.entries()) {
    const at = 64 + index * 56;
    const [offset, size] = places[type] ?? [0, file.byteLength];
    file.writeUInt32LE(type, at);
    for (const [field, value] of [offset, 0x40_0000 + offset, 0, size, size, 8].entries()) {
      file.writeBigUInt64LE(BigInt(value), at + 8 + field * 8);
    }
  }
  file.write(LOADER, end);
  file.write(fuse, 50_000);
  return file;
}

interface Header {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

function headersOf(file: Buffer): readonly Header[] {
  return Array.from({ length: file.readUInt16LE(56) }, (_, index) => {
    const at = 64 + index * 56;
    const long = (offset: number): number => Number(file.readBigUInt64LE(at + offset));
    return { type: file.readUInt32LE(at), offset: long(8), address: long(16), size: long(32) };
  });
}

function failureOf(body: () => unknown): string {
  try {
    body();
  } catch (error) {
    return String(error);
  }
  return 'no failure';
}

test('a blob becomes a note in a segment behind the last one, and nothing else moves', () => {
  const node = executable();
  const { head, body, tail } = injectBlob(node, Buffer.from('the blob'));
  const file = Buffer.concat([head, body, tail]);
  const headers = headersOf(file);
  assert.equal(
    headers.map(({ type }) => type),
    [TABLE, INTERPRETER, LOAD, LOAD, LOAD, NOTE],
  );
  const note = headers.at(-1);
  const segment = headers.at(-2);
  assert.equal({ ...note, type: LOAD }, segment);
  if (note === undefined) return;
  assert.is(note.offset % 0x10000, 0);
  assert.is(note.address % 0x10000, 0);
  assert.ok(note.address >= 0x40_0000 + node.byteLength);
  const bytes = file.subarray(note.offset, note.offset + note.size);
  assert.is(bytes.toString('latin1', 12, 26), 'NODE_SEA_BLOB\0');
  assert.is(bytes.toString('latin1', 28, 28 + bytes.readUInt32LE(4)), 'the blob');
  const loader = headers[1];
  assert.is(file.toString('latin1', loader?.offset, (loader?.offset ?? 0) + (loader?.size ?? 0)), LOADER);
  assert.is(file.toString('latin1', 50_000, 50_000 + FUSE.length), FUSE.replace(/0$/, '1'));
  assert.is(file.subarray(4096, 50_000).equals(node.subarray(4096, 50_000)), true);
});

test('only the first and the last part depend on the blob', () => {
  const node = executable();
  const one = injectBlob(node, noise(10));
  const other = injectBlob(node, noise(10_000));
  assert.is(one.body.equals(other.body), true);
  assert.is(one.head.equals(other.head), false);
});

for (const [title, node, said] of [
  ['that is none', Buffer.alloc(5000, '#!/bin/sh\n'), /not an ELF executable/],
  ['without room for a header', executable({ notes: 20 }), /no room/],
  ['without notes', executable({ types: [TABLE, INTERPRETER, LOAD] }), /not one program header of type 4/],
  ['that takes no blob', executable({ fuse: '' }), /does not take a blob/],
  ['that has one', executable({ fuse: FUSE.replace(/0$/, '1') }), /does not take a blob, or has one/],
] as const) {
  test(`an executable ${title} is refused`, () => {
    assert.match(
      failureOf(() => injectBlob(node, noise(10))),
      said,
    );
  });
}

test('parts that were deflated apart make one stream, wherever in a byte their last bit lies', () => {
  const texts = Array.from({ length: 40 }, (_, index) => Buffer.from(`${index} `.repeat(index * 10 + 1)));
  const parts = [...texts, noise(3_000_000), Buffer.alloc(1 << 20), Buffer.from('end')];
  const deflated = parts.map((part, index) => deflatePart(part, { final: index === parts.length - 1 }));
  assert.is(inflateRawSync(Buffer.concat(deflated)).equals(Buffer.concat(parts)), true);
});

test('a part is deflated once', async () => {
  await using box = await tree();
  const part = Buffer.from('word '.repeat(100_000));
  const made = await keptPart(part, box.path);
  assert.is(made.equals(deflatePart(part, { final: false })), true);
  const [name = ''] = await readdir(box.path);
  const other = deflateRawSync(part, { level: 1, finishFlush: constants.Z_SYNC_FLUSH });
  await writeFile(box.at(name), other);
  assert.is((await keptPart(part, box.path)).equals(other), true);
});

for (const [title, kept] of [
  ['is damaged', Buffer.from('kept')],
  ['is of something else', deflatePart(Buffer.from('other '.repeat(100_000)), { final: false })],
] as const) {
  test(`a kept part that ${title} is made anew`, async () => {
    await using box = await tree();
    const part = Buffer.from('word '.repeat(100_000));
    const made = await keptPart(part, box.path);
    const [name = ''] = await readdir(box.path);
    await writeFile(box.at(name), kept);
    assert.is((await keptPart(part, box.path)).equals(made), true);
    assert.is((await readFile(box.at(name))).equals(made), true);
  });
}

const [NODE, LICENSE] = ['a Node', 'its license'];
const PINS: NodePins = {
  version: '1.2.3',
  license: hexOf(digestOf(Buffer.from(LICENSE))),
  arches: {
    amd64: { package: 'none', integrity: '', node: hexOf(digestOf(Buffer.from(NODE))) },
    arm64: { package: 'none', integrity: '', node: hexOf(digestOf(Buffer.from('of another machine'))) },
  },
};

test('a kept Node is taken while it is the pinned one', async ({ signal }) => {
  await using box = await tree({ '1.2.3-amd64/bin/node': NODE, '1.2.3-amd64/LICENSE': LICENSE });
  const { node, license } = await pinnedNode(box.path, 'amd64', { signal, pins: PINS });
  assert.is(node.toString(), NODE);
  assert.is(license.toString(), LICENSE);
});

for (const [title, arch, files] of [
  ['Node', 'amd64', { 'bin/node': `${NODE} `, LICENSE }],
  ['Node of another machine', 'arm64', { 'bin/node': NODE, LICENSE }],
  ['license', 'amd64', { 'bin/node': NODE, LICENSE: 'another' }],
] as const) {
  test(`a kept ${title} that is not the pinned one is refused, and left for whoever wants to know`, async ({
    signal,
  }) => {
    const folder = `1.2.3-${arch}`;
    const kept = Object.entries(files).map(([path, text]) => [`${folder}/${path}`, text] as const);
    await using box = await tree(Object.fromEntries(kept));
    const failure = await pinnedNode(box.path, arch, { signal, pins: PINS }).then(() => 'no failure', String);
    assert.match(failure, /is sha256:[0-9a-f]{64}, not the pinned sha256:[0-9a-f]{64}/);
    assert.match(failure, `remove ${box.at(folder)} and run again`);
    assert.equal((await readdir(box.at(folder))).toSorted(), ['LICENSE', 'bin']);
  });
}

test.run();
