/** A bundle whose install.sh is exchanged so that its table of contents, and every place in the file, stay as they were. */
import { crc32, deflateRawSync } from 'node:zlib';
import { memorySource, readIndex } from '../../src/formats/archive/read.ts';
import { never } from './context.ts';
import { archiveOf, noise } from './packages.ts';
import { specOf } from './node-bundles.ts';

/** What the two scripts print. */
export const HONEST = 'the script that was signed';
export const HOSTILE = 'anything that somebody else wants';

/** A bundle with a script at its root; what the script holds beside its line deflates badly. */
export function bundleWithScript(): Buffer {
  const script = `#!/bin/sh\necho ${HONEST}\nexit 0\n# ${noise(6000).toString('base64')}\n`;
  return archiveOf([
    { path: 'install.sh', data: script, mode: 0o755 },
    { path: 'installer.yaml', data: specOf([{ name: 'web', version: '1.0.0' }]) },
    { path: 'assets/blob', data: noise(50_000) },
  ]).bytes;
}

const EXTRA_FIELD = 4;

/** The same file with another script: shorter when packed, and filled up in an extra field of gzip's header. */
export async function exchangeScript(bytes: Uint8Array): Promise<Buffer> {
  const { entries } = await readIndex(memorySource('b', bytes), { signal: never });
  const entry = entries.find(({ path }) => path === 'install.sh');
  if (entry === undefined) throw new Error('no install.sh');
  const text = Buffer.alloc(entry.size, '#');
  text.write(`#!/bin/sh\necho ${HOSTILE}\nexit 0\n`);
  const body = deflateRawSync(text, { level: 9 });
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(text), 0);
  trailer.writeUInt32LE(text.byteLength, 4);
  const header = Buffer.from([0x1f, 0x8b, 8, EXTRA_FIELD, 0, 0, 0, 0, 0, 0xff, 0, 0]);
  const filler = Buffer.alloc(entry.packed - header.byteLength - body.byteLength - trailer.byteLength);
  header.writeUInt16LE(filler.byteLength, 10);
  const exchanged = Buffer.from(bytes);
  Buffer.concat([header, filler, body, trailer]).copy(exchanged, entry.offset);
  return exchanged;
}
