/** A presigned address, as AWS describes it (Signature Version 4, query parameters), good for GET alone. */
import { createHash, createHmac } from 'node:crypto';
import { BUCKET, S3_KEYS } from './s3-servers.ts';

const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = S3_KEYS;

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** The address of a key in the bucket of the tests, at a server that takes the bucket in the path. */
export function presign(server: string, key: string): string {
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const day = time.slice(0, 8);
  const scope = `${day}/us-east-1/s3/aws4_request`;
  const path = `/${BUCKET}/${key}`;
  const query = [
    'X-Amz-Algorithm=AWS4-HMAC-SHA256',
    `X-Amz-Credential=${encodeURIComponent(`${id}/${scope}`)}`,
    `X-Amz-Date=${time}`,
    'X-Amz-Expires=600',
    'X-Amz-SignedHeaders=host',
  ].join('&');
  const request = ['GET', path, query, `host:${new URL(server).host}`, '', 'host', 'UNSIGNED-PAYLOAD'].join('\n');
  const hash = createHash('sha256').update(request).digest('hex');
  const key4 = [day, 'us-east-1', 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`);
  const signature = hmac(key4, ['AWS4-HMAC-SHA256', time, scope, hash].join('\n')).toString('hex');
  return `${server}${path}?${query}&X-Amz-Signature=${signature}`;
}
