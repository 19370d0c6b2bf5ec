/** Sends a file to a store in S3 as publishing does: `upload-once.ts ENDPOINT ADDRESS KEY FILE`. */
import { createHash } from 'node:crypto';
import { openFileSource } from '../../src/formats/archive/read.ts';
import { createS3Store } from '../../src/ship/store/s3.ts';
import { noReport } from './context.ts';

const [endpoint = '', address = '', key = '', path = ''] = process.argv.slice(2);
const { signal } = new AbortController();
await using source = await openFileSource(path);
const hash = createHash('sha256');
for await (const chunk of source.read(0, source.size, { signal })) hash.update(chunk);
const digest = `sha256:${hash.digest('hex')}` as const;
const store = createS3Store(address, { endpoint, report: noReport });
await store.put(key, source, { ifNoneMatch: '*', digest, metadata: { sha256: digest }, signal });
console.log('done');
