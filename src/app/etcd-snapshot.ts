/** Saves the data of the etcd of this control plane, with the keys of its cluster: once, or from now on. */
import { readdir, rm, type FileHandle } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { openEtcd } from '../cluster/kube/etcd.ts';
import { openFileSource } from '../formats/archive/read.ts';
import { encrypterFor } from '../machine/run/age.ts';
import { recordAttempt } from '../machine/run/attempts.ts';
import { startTimer } from '../machine/run/timer.ts';
import { SNAPSHOT_TIMER, TIMER_OPTIONS } from '../machine/run/snapshot-file.ts';
import { keepSnapshot, saveSnapshot, surplus } from '../machine/run/snapshots.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeFully } from '../platform/files/write-fully.ts';
import { writeText, writeWhole } from '../platform/files/write-whole.ts';
import type { Store } from '../ship/store/store.ts';
import { ETCD_SNAPSHOT, type EtcdSnapshotRequest } from '../requests/node.ts';
import { openStoreFor } from '../steps/open/stores.ts';
import { folderOf } from '../steps/node/install-folder.ts';
import { makeMissing } from '../platform/files/make-folder.ts';

const KUBERNETES = '/etc/kubernetes';
/** With `--every`. */
const TIMER = { name: SNAPSHOT_TIMER, description: 'Snapshot of etcd', variables: `${KUBERNETES}/curlew/snapshot.env` };

export interface EtcdSaved {
  readonly file: string;
  /** Address of its copy. */
  readonly copy?: string;
  /** The unit of systemd that repeats it. */
  readonly timer?: string;
}

/** `CLUSTER_FAILED` where no member of etcd is. */
export const etcdSnapshot = useCase(ETCD_SNAPSHOT, async (request, context): Promise<EtcdSaved> => {
  const { report, signal, cwd, user } = context;
  const file = request.file === undefined ? undefined : resolve(cwd, request.file);
  if (file !== undefined && request.every !== undefined) {
    throw new CurlewError('USAGE', '--every is for snapshots below the install folder, and not for one FILE', {
      hint: 'leave out FILE, and add --copy-to STORE for copies elsewhere',
    });
  }
  if (request.every !== undefined && user !== 0) {
    throw new CurlewError('UNSUPPORTED', 'this changes the machine, which requires root');
  }
  if (file !== undefined) await refuseExisting(file, undefined);
  const encrypter = await encrypterFor(request.recipient);
  using etcd = await openEtcd({ signal });
  if (etcd === undefined) {
    throw new CurlewError('CLUSTER_FAILED', 'cannot save etcd: kubeadm has made no member of it on this machine', {
      hint: 'run it as root on a control plane',
    });
  }
  const directory = folderOf(request, context);
  const saving = { directory, encrypter, keep: request.keep, report, signal };
  const save = async (): Promise<Pick<EtcdSaved, 'file' | 'copy'>> => {
    if (file !== undefined) await saveSnapshot(etcd, file, new Date(), saving);
    const saved = file ?? (await keepSnapshot(etcd, new Date(), saving));
    if (request.copyTo === undefined) return { file: saved };
    return { file: saved, copy: await copySnapshot(saved, request.copyTo, request, context) };
  };
  // One file is for who asks for it. The others are made by a timer, too.
  const saved = file === undefined ? await recordAttempt(KUBERNETES, 'snapshot', save) : await save();
  if (request.every === undefined) return saved;
  // Only after all of it has worked once.
  const options = optionsOf(request, cwd);
  const command = ['etcd', 'snapshot', `--install-dir=${directory}`, ...options];
  const timer = await startTimer(command, { ...TIMER, everyMs: request.every }, { directory, context });
  // For a machine that takes over from this one.
  const text = [`--every=${request.every}ms`, ...options].map((word) => `${word}\n`).join('');
  await writeText(join(KUBERNETES, TIMER_OPTIONS), text, { force: true });
  return { ...saved, timer };
});

/** Copies a snapshot below the name of this machine, and removes all but the last `keep` copies of what curlew has named there. */
export async function copySnapshot(
  file: string,
  to: string,
  request: Pick<
    EtcdSnapshotRequest,
    'keep' | 's3Endpoint' | 's3Region' | 's3Profile' | 's3PathStyle' | 'caFile' | 'config'
  >,
  context: Context,
): Promise<string> {
  const [folder, own] = [hostname().toLowerCase(), basename(file)];
  const key = join(folder, own);
  const { keep = Infinity } = request;
  await using source = await openFileSource(file);
  const { size } = source;
  const { signal } = context;
  if (isFolder(to)) {
    // A store in a folder is for everyone to read.
    const path = resolve(context.cwd, to, key);
    await makeMissing(dirname(path), 0o700).catch((error: unknown) => {
      throw fileError(`copy the snapshot to ${to}`, error);
    });
    const write = async (copy: FileHandle): Promise<void> => {
      let at = 0;
      for await (const chunk of source.read(0, size, { signal })) {
        await writeFully(copy, chunk, at);
        at += chunk.byteLength;
      }
    };
    await writeWhole(path, write, { force: true, size, mode: 0o600 });
    for (const name of surplus(await readdir(dirname(path)), own, keep))
      await rm(join(dirname(path), name), { force: true });
    return path;
  }
  const store = await openStoreFor(to, request, context, { create: true });
  await store.put(key, { size, read: source.read }, { signal });
  await removeCopies(store, key, { keep, signal });
  return `${store.address.replace(/\/$/, '')}/${key}`;
}

/** Removes what `keep` leaves no room for next to the copy with this key. */
export async function removeCopies(
  store: Pick<Store, 'list' | 'delete'>,
  key: string,
  { keep, signal }: { readonly keep: number; readonly signal: AbortSignal },
): Promise<void> {
  if (keep === Infinity) return;
  const folder = dirname(key);
  const names: string[] = [];
  for await (const one of store.list(`${folder}/`, { signal })) names.push(one.key.slice(folder.length + 1));
  for (const name of surplus(names, basename(key), keep)) await store.delete(join(folder, name), { signal });
}

function isFolder(address: string): boolean {
  return !/^[a-z][a-z0-9+.-]*:/i.test(address);
}

/** The options of the timer: relative paths would be of another folder. */
function optionsOf(request: EtcdSnapshotRequest, cwd: string): readonly string[] {
  const { recipient = [], copyTo, s3Endpoint, s3Region, s3Profile, s3PathStyle, caFile, config } = request;
  const values: readonly (readonly [string, string | undefined])[] = [
    ['--copy-to', copyTo && isFolder(copyTo) ? resolve(cwd, copyTo) : copyTo],
    ['--keep', request.keep === undefined ? undefined : String(request.keep)],
    ['--s3-endpoint', s3Endpoint],
    ['--s3-region', s3Region],
    ['--s3-profile', s3Profile],
    ['--ca-file', caFile && resolve(cwd, caFile)],
    ['--config', config && resolve(cwd, config)],
    ...recipient.map((one) => ['--recipient', one] as const),
  ];
  return [
    ...values.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`])),
    ...(s3PathStyle === true ? ['--s3-path-style'] : []),
  ];
}
