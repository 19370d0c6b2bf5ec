/** One executable for nodes, in two forms: as it is, and packed for bundles, whose ranges are taken from that. */
import { createHash } from 'node:crypto';
import { mkdir, open, rename, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import type { SizedEntry } from '../../src/formats/archive/place.ts';
import { placeArchive } from '../../src/formats/archive/place.ts';
import { MEMBER_HEADER, memberTrailer } from '../../src/formats/archive/member.ts';
import { packBytes } from '../../src/formats/archive/pack.ts';
import { digestOf, type Digest } from '../../src/core/digest.ts';
import { BUNDLED_TOOL, BUNDLED_TOOL_LICENSE } from '../../src/core/layout.ts';
import { deflatePart, keptPart } from './deflate.ts';
import { injectBlob } from './inject.ts';
import type { PinnedNode } from './node-packages.ts';

export interface ExecutableFiles {
  /** The executable itself. */
  readonly plain: string;
  /** An archive of format 1 with the executable and the licenses of its contents. */
  readonly packed: string;
}

/** Writes both forms of a Node with this blob inside. Same inputs, same bytes. */
export async function writeExecutable(
  { folder, node, license }: PinnedNode,
  blob: Uint8Array,
  { plain, packed }: ExecutableFiles,
): Promise<void> {
  const { head, body, tail } = injectBlob(node, blob);
  const raw = [head, body, tail];
  const member = memberOf(raw, [
    deflatePart(head, { final: false }),
    await keptPart(body, folder),
    deflatePart(tail, { final: true }),
  ]);
  await writeParts(plain, 0o755, raw);
  const hash = createHash('sha256');
  for (const part of member) hash.update(part);
  const packedLicense = packBytes(BUNDLED_TOOL_LICENSE, license);
  const entries: readonly SizedEntry[] = [
    {
      path: BUNDLED_TOOL,
      mode: 0o755,
      size: sizeOf(raw),
      digest: digestOfParts(raw),
      packed: sizeOf(member),
      stored: false,
      packedDigest: `sha256:${hash.digest('hex')}`,
    },
    {
      path: BUNDLED_TOOL_LICENSE,
      mode: 0o644,
      size: license.byteLength,
      digest: digestOf(license),
      ...packedLicense.packing,
    },
  ];
  const { index, pieces } = placeArchive(entries);
  const payloads = [member, [packedLicense.member]];
  const all = [
    ...pieces,
    ...index.entries.map(({ offset }, at) => ({ offset, data: Buffer.concat(payloads[at] ?? []) })),
  ].toSorted((a, b) => a.offset - b.offset);
  await writeParts(
    packed,
    0o644,
    all.map(({ data }) => data),
  );
}

/** A gzip member of these raw bytes. */
function memberOf(raw: readonly Uint8Array[], deflated: readonly Uint8Array[]): readonly Uint8Array[] {
  const checksum = raw.reduce((sum, part) => crc32(part, sum), 0);
  return [MEMBER_HEADER, ...deflated, memberTrailer(checksum, sizeOf(raw))];
}

function sizeOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

function digestOfParts(parts: readonly Uint8Array[]): Digest {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return `sha256:${hash.digest('hex')}`;
}

async function writeParts(path: string, mode: number, parts: readonly Uint8Array[]): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const partial = `${path}.${process.pid}`;
  const file = await open(partial, 'w', mode);
  try {
    await file.chmod(mode);
    await writeAll(file, parts);
  } finally {
    await file.close();
  }
  await rename(partial, path);
}

async function writeAll(file: FileHandle, parts: readonly Uint8Array[]): Promise<void> {
  for (const part of parts) await file.writeFile(part);
}
