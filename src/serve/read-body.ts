/** The body of a request, as far as it may go. */
import type { IncomingMessage } from 'node:http';

/**
 * Undefined when it has more than `limit` bytes, whatever was said of its length. The request stays open: its answer can
 * still be sent.
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Uint8Array | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return undefined;
  const parts: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (part: Uint8Array) => {
      size += part.byteLength;
      if (size <= limit) {
        parts.push(part);
        return;
      }
      request.pause();
      resolve(undefined);
    });
    request.once('end', () => resolve(Buffer.concat(parts)));
    request.once('error', reject);
  });
}

/** True for a request that brings a body along. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
