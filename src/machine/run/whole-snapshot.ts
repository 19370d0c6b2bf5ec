/** Data of an etcd as it sends them: they end with a digest. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { CurlewError, fileError } from '../../core/errors.ts';

const DIGEST_BYTES = 32;
/** bbolt writes whole pages. */
const PAGE_BYTES = 512;

/** `CLUSTER_FAILED` unless the file ends with the digest of what is before it, as etcd sends it. */
export async function requireWhole(path: string, file = path): Promise<void> {
  const bad = (why: string): CurlewError => refusedSnapshot(file, why);
  try {
    await using opened = await open(path, 'r');
    const { size } = await opened.stat();
    const length = size - DIGEST_BYTES;
    if (length <= 0 || length % PAGE_BYTES !== 0)
      throw bad(`it is truncated, or something else: ${size} bytes are not pages and a digest`);
    const hash = createHash('sha256');
    for await (const chunk of opened.createReadStream({ end: length - 1, autoClose: false })) {
      hash.update(chunk as Buffer);
    }
    const { buffer } = await opened.read(Buffer.alloc(DIGEST_BYTES), 0, DIGEST_BYTES, length);
    if (!hash.digest().equals(buffer)) throw bad('its digest differs');
  } catch (error) {
    throw fileError(`read ${file}`, error);
  }
}

/** `CLUSTER_FAILED`, for a file that is cut, changed or something else. */
export function refusedSnapshot(file: string, why: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `${file} is not a whole snapshot of etcd: ${why}`, {
    hint: 'use one that curlew etcd snapshot or etcdctl snapshot save has written',
  });
}

/** Whether the data has this text. Kubernetes keeps the certificate of its authority in ConfigMaps, as kubeadm has written it. */
export async function holdsText(data: string, text: string): Promise<boolean> {
  const wanted = Buffer.from(text);
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(data, { highWaterMark: 1 << 20 })) {
    const seen = Buffer.concat([rest, chunk as Buffer]);
    if (seen.includes(wanted)) return true;
    rest = seen.subarray(Math.max(0, seen.length - wanted.length + 1));
  }
  return false;
}
