/**
 * Worker thread: frames, hashes, checksums and writes payloads, so that the receiving thread only receives. All requests for
 * one payload go to the same worker, in order; the bytes are in memory shared with the pool.
 */
import { createHash, type Hash } from 'node:crypto';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { Deflate } from 'fflate';
import {
  BLOCK,
  FRAMED_BLOCK,
  isBlockHeader,
  isMemberHeader,
  MEMBER_HEADER,
  memberTrailer,
  sameBytes,
} from './member.ts';
import {
  GROUP_BLOCKS,
  GROUP_SIZE,
  type WorkerResponse,
  type Deflated,
  type FramePoolMemory,
  type WorkerRequest,
} from './frame-protocol.ts';

interface Payload {
  readonly fd: number;
  /** Offset of the member in the file. */
  readonly offset: number;
  readonly size: number;
  hash: Hash;
  checksum: number;
  done: number;
}

const { memory } = workerData as FramePoolMemory;
const slots = Buffer.from(memory);
const payloads = new Map<number, Payload>();

function writeAll(fd: number, data: Uint8Array, position: number): void {
  for (let done = 0; done < data.byteLength;) {
    done += writeSync(fd, data, done, data.byteLength - done, position + done);
  }
}

function readAll(fd: number, target: Uint8Array, position: number): number {
  let done = 0;
  while (done < target.byteLength) {
    const count = readSync(fd, target, done, target.byteLength - done, position + done);
    if (count === 0) break;
    done += count;
  }
  return done;
}

/** Offset in the member of the group that begins at raw byte `raw`. */
function groupOffset(raw: number): number {
  return MEMBER_HEADER.length + (raw / BLOCK) * FRAMED_BLOCK;
}

/** Adds the raw bytes of a framed group to hash and checksum. */
function absorb(payload: Payload, framed: Uint8Array): void {
  for (let at = 0; at < framed.byteLength; at += FRAMED_BLOCK) {
    const raw = framed.subarray(at + 5, Math.min(at + FRAMED_BLOCK, framed.byteLength));
    payload.hash.update(raw);
    payload.checksum = crc32(raw, payload.checksum);
    payload.done += raw.byteLength;
  }
}

function writeGroup(payload: Payload, framed: Uint8Array): void {
  const at = payload.offset + groupOffset(payload.done);
  if (payload.done === 0) writeAll(payload.fd, MEMBER_HEADER, payload.offset);
  absorb(payload, framed);
  writeAll(payload.fd, framed, at);
}

function groupIsFramed(framed: Uint8Array, done: number, size: number): boolean {
  for (let at = 0, raw = done; at < framed.byteLength; at += FRAMED_BLOCK, raw += BLOCK) {
    const length = Math.min(BLOCK, size - raw);
    if (!isBlockHeader(framed, at, length, raw + length === size)) return false;
  }
  return true;
}

/**
 * Reuses the bytes of the payload in another file, or in this file after an interrupted run. A group counts only if the next
 * one has begun or the member is complete: groups are written in order, so it was written completely.
 */
function takeOver(payload: Payload, from: { readonly fd: number; readonly offset: number }, copy: boolean): number {
  const framed = Buffer.allocUnsafe(GROUP_SIZE + 8);
  const header = framed.subarray(0, MEMBER_HEADER.length);
  if (readAll(from.fd, header, from.offset) < header.byteLength || !isMemberHeader(header)) return 0;
  while (payload.done < payload.size) {
    const raw = Math.min(GROUP_BLOCKS * BLOCK, payload.size - payload.done);
    const length = raw + Math.ceil(raw / BLOCK) * 5;
    const want = framed.subarray(0, length + 8);
    if (readAll(from.fd, want, from.offset + groupOffset(payload.done)) < want.byteLength) break;
    const group = want.subarray(0, length);
    if (!groupIsFramed(group, payload.done, payload.size)) break;
    const after = payload.done + raw;
    if (after < payload.size) {
      const next = Math.min(BLOCK, payload.size - after);
      if (!isBlockHeader(want, length, next, after + next === payload.size)) break;
    } else if (!endsWithTrailer(payload, group, want.subarray(length))) {
      break;
    }
    if (copy) writeGroup(payload, group);
    else absorb(payload, group);
  }
  return payload.done;
}

function endsWithTrailer(payload: Payload, group: Uint8Array, trailer: Uint8Array): boolean {
  let checksum = payload.checksum;
  for (let at = 0; at < group.byteLength; at += FRAMED_BLOCK) {
    checksum = crc32(group.subarray(at + 5, Math.min(at + FRAMED_BLOCK, group.byteLength)), checksum);
  }
  return sameBytes(trailer, memberTrailer(checksum, payload.size));
}

function payloadOf(id: number): Payload {
  const payload = payloads.get(id);
  if (payload === undefined) throw new Error(`no payload ${id}`);
  return payload;
}

/** Deflates a file into one member. Chunks have a fixed size, since they determine the output. */
function deflateFile(input: string, output: string): Deflated {
  // Opening a pipe in place of the file would block.
  const source = openSync(input, constants.O_RDONLY | constants.O_NONBLOCK);
  const target = openSync(output, 'wx', 0o600);
  try {
    let at = MEMBER_HEADER.length;
    let checksum = 0;
    let size = 0;
    const raw = createHash('sha256');
    const packed = createHash('sha256').update(MEMBER_HEADER);
    writeAll(target, MEMBER_HEADER, 0);
    const put = (chunk: Uint8Array): void => {
      packed.update(chunk);
      writeAll(target, chunk, at);
      at += chunk.byteLength;
    };
    const deflate = new Deflate({ level: 6 }, put);
    for (;;) {
      const chunk = new Uint8Array(1 << 20);
      const count = readAll(source, chunk, size);
      checksum = crc32(chunk.subarray(0, count), checksum);
      raw.update(chunk.subarray(0, count));
      size += count;
      deflate.push(chunk.subarray(0, count), count < chunk.byteLength);
      if (count < chunk.byteLength) break;
    }
    put(memberTrailer(checksum, size));
    return { packed: at, packedDigest: `sha256:${packed.digest('hex')}`, digest: `sha256:${raw.digest('hex')}` };
  } finally {
    closeSync(source);
    closeSync(target);
  }
}

function perform(request: WorkerRequest): WorkerResponse | undefined {
  switch (request.type) {
    case 'open':
      payloads.set(request.id, { ...request, hash: createHash('sha256'), checksum: 0, done: 0 });
      return undefined;
    case 'take-over':
      return { type: 'done', id: request.id, value: takeOver(payloadOf(request.id), request.from, request.copy) };
    case 'group': {
      const start = request.slot * GROUP_SIZE;
      writeGroup(payloadOf(request.id), slots.subarray(start, start + request.length));
      return { type: 'free', slot: request.slot };
    }
    case 'finish': {
      const { fd, offset, size, hash, checksum } = payloadOf(request.id);
      payloads.delete(request.id);
      writeAll(fd, memberTrailer(checksum, size), offset + groupOffset(0) + size + Math.ceil(size / BLOCK) * 5);
      return { type: 'done', id: request.id, value: hash.digest('hex') };
    }
    case 'drop':
      payloads.delete(request.id);
      return { type: 'done', id: request.id, value: 0 };
    case 'deflate':
      return { type: 'done', id: request.id, value: deflateFile(request.input, request.output) };
  }
}

parentPort?.on('message', (request: WorkerRequest) => {
  try {
    const response = perform(request);
    if (response !== undefined) parentPort?.postMessage(response);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const slot = request.type === 'group' ? request.slot : undefined;
    parentPort?.postMessage({ type: 'failed', id: request.id, slot, message, code } satisfies WorkerResponse);
  }
});
