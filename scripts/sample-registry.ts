/**
 * A registry on loopback that has one image, samples/wait:1.0.0, which the sample add-ons are built from. Prints
 * `127.0.0.1:PORT` when it is ready and runs until it is ended.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { MadeBlob } from './oci-image.ts';
import { sampleImage } from './sample-image.ts';

const REPOSITORY = 'samples/wait';
const { manifest, blobs } = sampleImage();

const objects = new Map<string, MadeBlob>([
  [`/v2/${REPOSITORY}/manifests/1.0.0`, manifest],
  [`/v2/${REPOSITORY}/manifests/${manifest.digest}`, manifest],
  ...blobs.map((blob) => [`/v2/${REPOSITORY}/blobs/${blob.digest}`, blob] as const),
]);

const documents = new Map<string, object>([
  ['/v2/', {}],
  [`/v2/${REPOSITORY}/tags/list`, { name: REPOSITORY, tags: ['1.0.0'] }],
]);

/** The range of bytes asked for, when it is the one form that is served: `bytes=FROM-` or `bytes=FROM-TO`. */
function rangeOf(header: string | undefined, size: number): readonly [number, number] | undefined {
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(header ?? '') ?? [];
  if (from === undefined || Number(from) >= size) return undefined;
  return [Number(from), to === undefined || to === '' ? size : Math.min(size, Number(to) + 1)];
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const [path = ''] = (request.url ?? '').split('?');
  response.setHeader('docker-distribution-api-version', 'registry/2.0');
  const fixed = documents.get(path);
  if (fixed !== undefined) {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(fixed));
    return;
  }
  const found = objects.get(path);
  if (found === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) {
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ errors: [{ code: 'NAME_UNKNOWN', message: 'only samples/wait:1.0.0 is here' }] }));
    return;
  }
  const size = found.data.byteLength;
  const range = rangeOf(request.headers.range, size);
  const [from, to] = range ?? [0, size];
  response.writeHead(range === undefined ? 200 : 206, {
    'content-type': path.includes('/manifests/') ? found.type : 'application/octet-stream',
    'content-length': to - from,
    'docker-content-digest': found.digest,
    'accept-ranges': 'bytes',
    etag: `"${found.digest}"`,
    ...(range === undefined ? {} : { 'content-range': `bytes ${from}-${to - 1}/${size}` }),
  });
  response.end(request.method === 'HEAD' ? undefined : found.data.subarray(from, to));
}

const server = createServer(answer);
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') console.log(`127.0.0.1:${address.port}`);
});
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(name, () => process.exit(0));
}
