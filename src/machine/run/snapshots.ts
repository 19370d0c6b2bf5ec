/** Files with all data of an etcd and the keys of its cluster: only their owner can read them. */
import { writeSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import type { Encrypter } from 'age-encryption';
import type { Reporting } from '../../core/cancellable.ts';
import { fileError, ifExists } from '../../core/errors.ts';
import type { Etcd } from '../../cluster/kube/etcd.ts';
import { nameFile } from '../../platform/files/name-file.ts';
import { writeAside } from '../../platform/files/partial.ts';
import { requireSpace } from '../../platform/files/space.ts';
import { encrypted } from './age.ts';
import { packSnapshot } from './snapshot-file.ts';
import { requireWhole } from './whole-snapshot.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

const KEPT = 3;
const NAME = /^etcd-[\dTZ-]+(-before-v[\w.-]+?)?\.(db|tar|tar\.age)$/;
/** Space that stays free on the disk: etcd itself may write to it. */
const SPARE_BYTES = 256 * 1024 ** 2;

export interface SnapshotOptions extends Reporting {
  /** The install folder of the node. */
  readonly directory: string;
  /** Encrypts the file for recipients of age. */
  readonly encrypter?: Encrypter | undefined;
  /** Default: /etc/kubernetes. */
  readonly kubernetes?: string;
  /** Default: that of systemd. */
  readonly units?: string;
  /** Takes the place of a file that exists. */
  readonly replace?: boolean;
}

/**
 * Saves to a file that does not exist yet, unless it is to be replaced, in an existing folder. `NO_SPACE` before anything is written there, and `CLUSTER_FAILED` if etcd
 * does not send all of its data.
 */
export async function saveSnapshot(
  etcd: Pick<Etcd, 'size' | 'save'>,
  file: string,
  now: Date,
  { directory, report, signal, encrypter, replace = false, ...from }: SnapshotOptions,
): Promise<void> {
  const doing = `write ${file}`;
  const scratch = join(directory, 'etcd');
  const warn = (text: string): void => report({ type: 'note', level: 'warning', text });
  try {
    await makeMissing(scratch, 0o700);
    const needed = (await etcd.size()) + SPARE_BYTES;
    await requireSpace(dirname(file), needed, doing);
    await requireSpace(scratch, needed, doing);
    // Its size is known only at the end. On this disk, etcd has the same data.
    await writeAside(
      scratch,
      0o600,
      async ({ fd }) => etcd.save((bytes) => writeAll(fd, bytes)),
      async (data) => {
        await requireWhole(data, file);
        await requireSpace(dirname(file), needed, doing);
        const plain = packSnapshot(data, { ...from, node: hostname().toLowerCase(), time: now, warn, signal });
        const packed = encrypter === undefined ? plain : encrypted(plain, encrypter);
        await writeAside(
          dirname(file),
          0o600,
          async ({ fd }) => {
            for await (const bytes of packed) writeAll(fd, bytes);
          },
          async (partial) => nameFile(partial, file, replace),
        );
      },
    );
  } catch (error) {
    throw fileError(doing, error);
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
}

/**
 * The same in the folder of a node that has the last three of them, or `keep`; older ones are removed. The first one of an upgrade to a version
 * `v1.2.3` is not among them, however often the upgrade is tried; those of the last three upgrades are kept. Returns the file.
 */
export async function keepSnapshot(
  etcd: Etcd,
  now: Date,
  options: SnapshotOptions & { readonly upgradeTo?: string | undefined; readonly keep?: number | undefined },
): Promise<string> {
  const { directory, upgradeTo, keep = KEPT } = options;
  const folder = join(directory, 'etcd');
  const time = now.toISOString().replace(/\.\d+/, '').replaceAll(':', '-');
  const before = `-before-${upgradeTo}`;
  try {
    await makeMissing(folder, 0o700);
    const all = (await readdir(folder)).filter((name) => NAME.test(name)).toSorted();
    const isFirst = upgradeTo !== undefined && !all.some((name) => name.includes(`${before}.`));
    const own = `etcd-${time}${isFirst ? before : ''}.tar${options.encrypter === undefined ? '' : '.age'}`;
    const file = join(folder, own);
    // Two of the same second, such as that of a timer, are the same to their reader.
    await saveSnapshot(etcd, file, now, { ...options, replace: true });
    for (const name of surplus(all, own, isFirst ? KEPT : keep)) await rm(join(folder, name), { force: true });
    return file;
  } catch (error) {
    throw fileError(`write a snapshot to ${folder}`, error);
  }
}

/** The files to remove of these, so that `keep` snapshots of the same kind as this new one are left, itself included. */
export function surplus(names: readonly string[], own: string, keep: number): readonly string[] {
  const isFirst = own.includes('-before-');
  // With a clock that was set back, the new one is not the last by its name.
  const others = names.filter((name) => NAME.test(name) && name !== own && name.includes('-before-') === isFirst);
  return others.toSorted().slice(0, Math.max(0, others.length + 1 - keep));
}

/** When the last snapshot in the folder of a node was written; undefined without one. */
export async function lastSnapshot(directory: string): Promise<Date | undefined> {
  const folder = join(directory, 'etcd');
  const reading = readdir(folder).then(async (all) => {
    const names = all.filter((name) => NAME.test(name));
    const times = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).mtimeMs));
    return times.length === 0 ? undefined : new Date(Math.max(...times));
  });
  return ifExists(`read ${folder}`, reading);
}
