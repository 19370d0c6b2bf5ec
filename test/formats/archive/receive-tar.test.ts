import { mkdir, readFile, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { anyHeader, paddingOf, type TarEntry } from '../../../src/formats/archive/header.ts';
import { receiveTar } from '../../../src/formats/archive/receive-tar.ts';
import { sendTar, sentBytes, type SentEntry } from '../../../src/formats/archive/send-tar.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { digestOf } from '../../../src/core/digest.ts';
import type { PackageFile } from '../../../src/core/package.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('archive/receive-tar');
const END = Buffer.alloc(1024);

function entry(header: TarEntry, data = ''): Buffer {
  const body = Buffer.from(data);
  return Buffer.concat([anyHeader(header), body, Buffer.alloc(paddingOf(body.byteLength))]);
}

function file(path: string, data = 'x', mode = 0o644): Buffer {
  return entry({ type: 'File', path, mode, size: Buffer.byteLength(data) }, data);
}

/** A header of any type: one that no honest program would write. */
function typed(path: string, flag: string, size = 0): Buffer {
  const block = Buffer.from(anyHeader({ type: 'File', path, mode: 0o644, size }));
  block.write(flag, 156);
  block.write('        ', 148);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function pax(records: Readonly<Record<string, string>>): Buffer {
  const text = Object.entries(records)
    .map(([key, value]) => {
      const rest = Buffer.byteLength(` ${key}=${value}\n`);
      const length = rest + String(rest + String(rest).length).length;
      return `${length} ${key}=${value}\n`;
    })
    .join('');
  return Buffer.concat([typed('pax', 'x', text.length), Buffer.from(text), Buffer.alloc(paddingOf(text.length))]);
}

interface Received {
  readonly files: readonly PackageFile[];
  readonly read: (path: string) => Promise<string>;
}

interface Receiving {
  readonly into: string;
  readonly chunk?: number;
  readonly limits?: { readonly bytes: number; readonly files: number };
  readonly signal: AbortSignal;
}

async function receive(
  tar: Uint8Array,
  { into, chunk = 100, limits = { bytes: 1000, files: 5 }, signal }: Receiving,
): Promise<Received> {
  const pieces = Array.from({ length: Math.ceil(tar.byteLength / chunk) }, (_, at) =>
    tar.subarray(at * chunk, (at + 1) * chunk),
  );
  const refuse = (what: string, hint?: string): CurlewError => new CurlewError('CONTAINER_FAILED', what, { hint });
  const files = await receiveTar(Readable.from(pieces), { top: 'out', into, limits, refuse, signal });
  return { files, read: async (path) => readFile(`${into}/${path}`, 'utf8') };
}

test('files come out whole, in any chunks, sorted, with plain modes', async ({ signal }) => {
  await using box = await tree();
  const long = `out/${'d'.repeat(120)}/${'f'.repeat(120)}`;
  const tar = Buffer.concat([
    entry({ type: 'Directory', path: 'out/', mode: 0o777 }),
    file('out/z', 'last', 0o4711),
    file('./out/a/b', 'b'.repeat(600), 0o600),
    file(long, 'long'),
    entry({ type: 'Link', path: 'out/link', mode: 0o777, linkpath: 'out/a/b' }),
    entry({ type: 'Link', path: 'out/long', mode: 0o777, linkpath: long }),
    END,
  ]);
  for (const chunk of [1, 511, 10_000]) {
    const into = box.at(`into${chunk}`);
    await mkdir(into);
    const { files, read } = await receive(tar, { into, chunk, limits: { bytes: 1212, files: 5 }, signal });
    assert.equal(
      files.map(({ path, mode, size }) => [path, mode, size]),
      [
        ['a/b', 0o644, 600],
        [long.slice(4), 0o644, 4],
        ['link', 0o644, 600],
        ['long', 0o644, 4],
        ['z', 0o755, 4],
      ],
    );
    assert.is(files.at(-1)?.digest, digestOf('last'));
    assert.is(await read('link'), 'b'.repeat(600));
  }
});

for (const [attack, tar, message] of [
  ['an absolute path', file('/etc/passwd'), /"\/etc\/passwd" is absolute/],
  ['a path that climbs', file('out/../../x'), /is a folder reference/],
  ['a path beside the folder', file('outside/x'), /"outside\/x" is outside out/],
  ['a long path in a pax header', Buffer.concat([pax({ path: '/tmp/x' }), file('out/a')]), /"\/tmp\/x" is absolute/],
  [
    'a path with a bell in a pax header',
    Buffer.concat([pax({ path: 'out/a\u0007b' }), file('out/a')]),
    /control character/,
  ],
  [
    'a hard link to a file outside',
    entry({ type: 'Link', path: 'out/x', mode: 0, linkpath: '/etc/shadow' }),
    /is absolute/,
  ],
  ['a hard link to itself', entry({ type: 'Link', path: 'out/x', mode: 0, linkpath: 'out/x' }), /not an earlier file/],
  [
    'a symbolic link',
    entry({ type: 'SymbolicLink', path: 'out/x', mode: 0, linkpath: '..' }),
    /a symbolic link to "\.\."/,
  ],
  [
    'a file through a symbolic link',
    Buffer.concat([entry({ type: 'SymbolicLink', path: 'out/x', mode: 0, linkpath: '/tmp' }), file('out/x/y')]),
    /symbolic link/,
  ],
  ['a block device', typed('out/x', '4'), /of type BlockDevice/],
  ['an unknown type', typed('out/x', 'Z'), /not a regular file/],
  ['a file twice', Buffer.concat([file('out/a'), file('out/a')]), /two files named "a"/],
  ['a file where a folder is', Buffer.concat([file('out/a/b'), file('out/a')]), /two entries at "a"/],
  ['a folder where a file is', Buffer.concat([file('out/a'), file('out/a/b')]), /two entries at "a\/b"/],
  ['more bytes than allowed', file('out/a', 'x'.repeat(1001)), /more than 1000 bytes/],
  [
    'a size that is announced in a pax header',
    Buffer.concat([pax({ size: '5000000000' }), file('out/a')]),
    /more than 1000 bytes/,
  ],
  [
    'hard links that multiply a file',
    Buffer.concat([
      file('out/a', 'x'.repeat(600)),
      entry({ type: 'Link', path: 'out/b', mode: 0o644, linkpath: 'out/a' }),
    ]),
    /more than 1000 bytes/,
  ],
  [
    'more files than allowed',
    Buffer.concat(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => file(`out/${name}`))),
    /more than 5 files/,
  ],
  [
    'folders without end',
    Buffer.concat(
      Array.from({ length: 1002 }, (_, at) => entry({ type: 'Directory', path: `out/${at}/`, mode: 0o755 })),
    ),
    /more than 1000 entries/,
  ],
  ['a name of megabytes', typed('x', 'L', 2 << 20), /extension header of 2097152 bytes/],
  ['a tar that ends in a file', file('out/a', 'x'.repeat(600)).subarray(0, 700), /is truncated/],
  ['a tar that ends between files', file('out/a'), /is truncated/],
  ['something that is no tar', Buffer.alloc(2048, 'no tar'), /it is damaged/],
] as const) {
  test(`refuses ${attack}`, async ({ signal }) => {
    const ends = message.source.includes('is truncated');
    await using box = await tree();
    const received = receive(ends ? tar : Buffer.concat([tar, END]), { into: box.path, signal });
    await assert.rejectsWith(received, 'CONTAINER_FAILED', message);
  });
}

test('a source that fails, fails the work', async ({ signal }) => {
  await using box = await tree();
  const source = (async function* () {
    yield file('out/a', 'x'.repeat(600)).subarray(0, 600);
    throw new Error('gone');
  })();
  const options = {
    top: 'out',
    into: box.path,
    limits: { bytes: 1000, files: 5 },
    refuse: () => new Error('no'),
    signal,
  };
  assert.is(await receiveTar(source, options).catch((error) => error.message), 'gone');
});

test('what is sent is received: files of disk and memory, folders, names of any length', async ({ signal }) => {
  await using box = await tree({ source: 'from disk' });
  const into = box.at('into');
  await mkdir(into);
  const entries: SentEntry[] = [
    { kind: 'folder', path: 'out/empty', mode: 0o755 },
    sentBytes('out/run', '#!/bin/sh\n', 0o755),
    {
      kind: 'file',
      path: `out/${'ü'.repeat(100)}`,
      mode: 0o644,
      size: 9,
      content: { kind: 'path', path: box.at('source') },
    },
  ];
  const parts: Uint8Array[] = [];
  for await (const part of sendTar(entries, { signal })) parts.push(part);
  const { files, read } = await receive(Buffer.concat(parts), { into, signal });
  assert.equal(
    files.map(({ path, mode }) => [path, mode]),
    [
      ['run', 0o755],
      ['ü'.repeat(100), 0o644],
    ],
  );
  assert.is(await read('ü'.repeat(100)), 'from disk');
});

test('a file that is not as long as it was is not sent as if nothing were', async ({ signal }) => {
  await using box = await tree({ source: '12345' });
  const { size } = await stat(box.at('source'));
  for (const wrong of [size - 1, size + 1]) {
    const content = { kind: 'path', path: box.at('source') } as const;
    const tar = sendTar([{ kind: 'file', path: 'a', mode: 0o644, size: wrong, content }], { signal });
    await assert.rejectsWith(Readable.from(tar).toArray(), 'FILE_UNUSABLE', /changed while it was being read/);
  }
});

test.run();
