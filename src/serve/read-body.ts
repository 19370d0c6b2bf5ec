/** The body of a request, as far as it may go. */
import type { IncomingMessage } from 'node:http';

/**
 * Undefined when it has more than `limit` bytes, whatever was said of its length. The request stays open: its answer can
 * still be sent.
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Uint8Array | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return undefined;
  // Copied: each piece would keep a packet, and an object of its own for a single byte.
  const body = Buffer.allocUnsafeSlow(limit);
  let size = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (part: Uint8Array) => {
      if (size + part.byteLength <= limit) {
        body.set(part, size);
        size += part.byteLength;
        return;
      }
      request.pause();
      resolve(undefined);
    });
    request.once('end', () => resolve(body.subarray(0, size)));
    request.once('error', reject);
  });
}

/** True for a request that brings a body along. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
