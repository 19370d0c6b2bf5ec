/** An HTTP client that loses no time between attempts. */
import { createHttp, type Http, type HttpOptions } from '../../src/platform/http/http.ts';

export async function quickHttp(options: Partial<HttpOptions> = {}): Promise<Http> {
  return createHttp({ env: {}, retry: { attempts: 4, baseMs: 1, capMs: 5 }, ...options });
}

/** Collects what is written, copying each chunk. */
export function collector(): { readonly write: (chunk: Uint8Array) => undefined; readonly body: () => Buffer } {
  const parts: Uint8Array[] = [];
  return {
    write: (chunk) => {
      parts.push(Uint8Array.from(chunk));
      return undefined;
    },
    body: () => Buffer.concat(parts),
  };
}
