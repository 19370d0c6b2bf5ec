/** Files with all data of an etcd, which include the Secrets of the cluster: only their owner can read them. */
import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError, fileError } from '../../core/errors.ts';
import type { Etcd } from '../../cluster/kube/etcd.ts';
import { nameFile } from '../../platform/files/name-file.ts';
import { writeAside } from '../../platform/files/partial.ts';
import { requireSpace } from '../../platform/files/space.ts';

const KEPT = 3;
const NAME = /^etcd-[\dTZ-]+(-before-v[\w.-]+)?\.db$/;
/** What the disk has left afterwards: etcd itself may write to it. */
const SPARE_BYTES = 256 * 1024 ** 2;
const DIGEST_BYTES = 32;
/** bbolt writes whole pages. */
const PAGE_BYTES = 512;

/**
 * Saves to a file that does not exist yet, in an existing folder. `NO_SPACE` before anything is written, and `CLUSTER_FAILED` if etcd
 * does not send all of it.
 */
export async function saveSnapshot(etcd: Etcd, folder: string, file: string): Promise<void> {
  try {
    await requireSpace(folder, (await etcd.size()) + SPARE_BYTES, `write ${file}`);
    await writeAside(
      folder,
      0o600,
      async ({ fd }) =>
        etcd.save((bytes) => {
          for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
        }),
      async (partial) => {
        await requireWhole(partial, file);
        await nameFile(partial, file, false);
      },
    );
  } catch (error) {
    throw fileError(`write ${file}`, error);
  }
}

/**
 * The same in the folder of a node that has the last three of them; older ones are removed. The first one of an upgrade to a version
 * `v1.2.3` is not among them, however often the upgrade is tried; those of the last three upgrades are kept. Returns the file.
 */
export async function keepSnapshot(etcd: Etcd, directory: string, now: Date, upgradeTo?: string): Promise<string> {
  const folder = join(directory, 'etcd');
  const time = now.toISOString().replace(/\.\d+/, '').replaceAll(':', '-');
  const before = `-before-${upgradeTo}`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const all = (await readdir(folder)).filter((name) => NAME.test(name)).toSorted();
    const isFirst = upgradeTo !== undefined && !all.some((name) => name.endsWith(`${before}.db`));
    const own = `etcd-${time}${isFirst ? before : ''}.db`;
    const file = join(folder, own);
    // Two of the same second are the same to their reader.
    await rm(file, { force: true });
    await saveSnapshot(etcd, folder, file);
    // With a clock that was set back, the new one is not the last by its name.
    const others = all.filter((name) => name !== own && name.includes('-before-') === isFirst);
    for (const name of others.slice(0, 1 - KEPT)) await rm(join(folder, name));
    return file;
  } catch (error) {
    throw fileError(`write a snapshot to ${folder}`, error);
  }
}

/** `CLUSTER_FAILED` unless the file ends with the digest of what is before it, as etcd sends it. */
export async function requireWhole(path: string, file = path): Promise<void> {
  const bad = (why: string): CurlewError =>
    new CurlewError('CLUSTER_FAILED', `${file} is not a whole snapshot of etcd: ${why}`, {
      hint: 'use one that curlew etcd snapshot or etcdctl snapshot save has written',
    });
  try {
    await using opened = await open(path, 'r');
    const { size } = await opened.stat();
    const length = size - DIGEST_BYTES;
    if (length <= 0 || length % PAGE_BYTES !== 0) throw bad(`${size} bytes are not pages and a digest`);
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
