/** A proxy on loopback in front of a server of the S3 protocol, which fails where it is told to. */
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export interface S3Request {
  readonly method: string;
  /** Path with its query. */
  readonly path: string;
  /** What the request asks for, by the name of the protocol. */
  readonly kind: string;
  /** Length of the request's body, as announced. */
  readonly bytes: number;
  /** True once the server has answered. */
  answered: boolean;
}

const KINDS: readonly (readonly [kind: string, which: RegExp])[] = [
  ['HeadObject', /^HEAD /],
  ['ListObjectsV2', /^GET .*[?&]list-type=2/],
  ['ListParts', /^GET .*[?&]uploadId=/],
  ['ListObjects', /^GET \/[^/?]+\/?(?:\?|$)/],
  ['GetObject', /^GET /],
  ['CreateMultipartUpload', /^POST .*[?&]uploads/],
  ['CompleteMultipartUpload', /^POST .*[?&]uploadId=/],
  ['AbortMultipartUpload', /^DELETE .*[?&]uploadId=/],
  ['DeleteObject', /^DELETE /],
  ['UploadPartCopy', /^PUT copy .*[?&]partNumber=/],
  ['UploadPart', /^PUT .*[?&]partNumber=/],
  ['CopyObject', /^PUT copy /],
  ['PutObject', /^PUT /],
];

function requestOf({ method = '', url = '', headers }: IncomingMessage): S3Request {
  const text = `${method} ${headers['x-amz-copy-source'] === undefined ? '' : 'copy '}${url}`;
  const kind = KINDS.find(([, which]) => which.test(text))?.[0] ?? method;
  return { method, path: url, kind, bytes: Number(headers['content-length'] ?? 0), answered: false };
}

/** How often each kind was asked for, by name. */
export function countKinds(log: readonly S3Request[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { kind } of log) counts[kind] = (counts[kind] ?? 0) + 1;
  return Object.fromEntries(Object.entries(counts).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

export type S3Fault =
  /** Answers instead of the server. */
  | { readonly status: number; readonly body?: string; readonly headers?: Readonly<Record<string, string>> }
  /** Resets the connection after so many bytes of the request's body; the server never sees the end. */
  | { readonly resetRequestAt: number }
  /** Lets the server carry it out and resets the connection instead of answering. */
  | 'lose answer'
  /** Sends half of the answer's body: then a reset, or the end. */
  | 'reset answer'
  | 'truncate answer'
  /** Sends half of the answer's body, then nothing: the connection stays. */
  | 'stall answer'
  /** Sends XML without an end, as fast as it is taken. */
  | 'endless answer';

export interface S3Proxy extends AsyncDisposable {
  readonly url: string;
  readonly log: readonly S3Request[];
  /** Fails such requests, at most so many times. Replaces what was told before. */
  readonly fail: (which: RegExp, fault: S3Fault, times?: number) => void;
  /** Fails every request but the next so many. */
  readonly failAfter: (count: number, fault: S3Fault) => void;
  readonly heal: () => void;
}

function* endlessXml(): Generator<string, void, undefined> {
  yield '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>';
  const contents = '<Contents><Key>k</Key><Size>1</Size></Contents>'.repeat(1000);
  for (;;) yield contents;
}

/** The error document of the protocol. */
export function s3ErrorBody(code: string, message = 'as the test wants it'): string {
  return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
}

/** `which` is matched with `METHOD path?query`. Each request waits for `delayMs` on its way. */
export async function startS3Proxy(
  target: string,
  { delayMs = 0 }: { readonly delayMs?: number } = {},
): Promise<S3Proxy> {
  const { hostname, port } = new URL(target);
  const log: S3Request[] = [];
  let rule: { readonly which: RegExp; readonly fault: S3Fault; left: number; spared: number } | undefined;

  const handle = (asked: IncomingMessage, answer: ServerResponse): void => {
    const { method = '', url = '', headers } = asked;
    const request = requestOf(asked);
    log.push(request);
    const matches = rule !== undefined && rule.left > 0 && rule.which.test(`${method} ${url}`);
    const fault = matches && rule?.spared === 0 ? rule.fault : undefined;
    if (matches && rule !== undefined) rule[fault === undefined ? 'spared' : 'left'] -= 1;
    if (typeof fault === 'object' && 'status' in fault) {
      asked.resume();
      answer.writeHead(fault.status, { 'content-type': 'application/xml', ...fault.headers });
      answer.end(method === 'HEAD' ? undefined : (fault.body ?? ''));
      return;
    }
    const onward = send({ hostname, port, method, path: url, headers }, (response) => {
      request.answered = true;
      void relay(response, asked, answer, fault).catch(() => answer.destroy());
    });
    onward.on('error', () => answer.destroy());
    if (typeof fault === 'object') {
      let seen = 0;
      asked.on('data', (chunk: Uint8Array) => {
        seen += chunk.byteLength;
        if (seen < fault.resetRequestAt) return;
        asked.socket.resetAndDestroy();
        onward.destroy();
      });
    }
    asked.pipe(onward);
  };

  const relay = async (
    response: IncomingMessage,
    asked: IncomingMessage,
    answer: ServerResponse,
    fault: S3Fault | undefined,
  ): Promise<void> => {
    if (fault === undefined) {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
      return;
    }
    const parts: Uint8Array[] = [];
    for await (const chunk of response) parts.push(chunk as Uint8Array);
    const body = Buffer.concat(parts);
    if (fault === 'lose answer') {
      asked.socket.resetAndDestroy();
      return;
    }
    if (fault === 'endless answer') {
      answer.writeHead(200, { 'content-type': 'application/xml' });
      await pipeline(Readable.from(endlessXml()), answer);
      return;
    }
    const half = body.subarray(0, Math.floor(body.byteLength / 2));
    if (fault === 'truncate answer') {
      answer.writeHead(response.statusCode ?? 502, { ...response.headers, 'content-length': String(half.byteLength) });
      answer.end(half);
      return;
    }
    answer.writeHead(response.statusCode ?? 502, response.headers);
    answer.write(half, () => {
      if (fault === 'reset answer') asked.socket.resetAndDestroy();
    });
  };

  const server = createServer((asked, answer) => {
    if (delayMs === 0) handle(asked, answer);
    else setTimeout(() => handle(asked, answer), delayMs);
  });
  server.on('connection', (socket) => socket.on('error', () => undefined));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log,
    fail: (which, fault, times = Infinity) => {
      rule = { which, fault, left: times, spared: 0 };
    },
    failAfter: (count, fault) => {
      rule = { which: /(?:)/, fault, left: Infinity, spared: count };
    },
    heal: () => {
      rule = undefined;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
