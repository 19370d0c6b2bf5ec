/** The part of gRPC that asks a server on a socket of this machine. */
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { isObject } from '../../../src/core/json.ts';

/** A field of bytes, as protocol buffers have it. */
export function messageField(number: number, text: string): Buffer {
  const data = Buffer.from(text);
  const size: number[] = [];
  let rest = data.byteLength;
  for (; rest > 127; rest >>= 7) size.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...size, rest]), data]);
}

/** The text of the first field of a message. */
export function firstField(message: Buffer): string {
  let [at, size, shift] = [1, 0, 0];
  for (; ; at += 1, shift += 7) {
    const byte = message[at] ?? 0;
    size |= (byte & 127) << shift;
    if (byte < 128) break;
  }
  return message.subarray(at + 1, at + 1 + size).toString();
}

/** One call; whatever status but 0 it ends with is thrown. */
export async function grpc(socket: string, path: string, message: Uint8Array): Promise<Buffer> {
  const session = connectHttp2('http://localhost', { createConnection: () => connect(socket) });
  try {
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
    const stream = session.request(headers);
    const trailers = new Promise<unknown>((resolve) => void stream.once('trailers', resolve).once('close', resolve));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.byteLength, 1);
    stream.end(Buffer.concat([head, message]));
    const parts: Buffer[] = [];
    for await (const part of stream) parts.push(part as Buffer);
    const ended = await trailers;
    if (!isObject(ended) || ended['grpc-status'] !== '0') throw new Error(`${path}: ${JSON.stringify(ended)}`);
    return Buffer.concat(parts).subarray(5);
  } finally {
    session.close();
  }
}
