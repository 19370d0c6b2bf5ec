/** A snapshot as one file: a tar with the data of etcd, and with the keys without which no other machine can use the data. */
import { createReadStream } from 'node:fs';
import { chmod, lstat, mkdir, open, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { CurlewError, fileError, isMissing } from '../../core/errors.ts';
import { jsonIn } from '../../core/json.ts';
import { receiveTar } from '../../formats/archive/receive-tar.ts';
import { sendTar, sentBytes, type SentEntry } from '../../formats/archive/send-tar.ts';
import { partialName, sweepPartials } from '../../platform/files/partial.ts';
import { requireSpace } from '../../platform/files/space.ts';
import { readFound } from '../../platform/files/state-file.ts';
import { AGE_HEADER, decrypted, decrypterFor } from './age.ts';
import { UNITS } from './timer.ts';
import { refusedSnapshot, requireWhole } from './whole-snapshot.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

const TOP = 'snapshot';
const DATA = 'etcd.db';
const ABOUT = 'snapshot.json';
/** Below it are files of /etc/kubernetes. */
const KUBERNETES = 'kubernetes';
/** The ones that all control planes share; kubeadm makes the others for each machine. */
const KEYS = ['ca', 'front-proxy-ca', 'etcd/ca'].flatMap((name) => [`pki/${name}.crt`, `pki/${name}.key`]);
const SHARED = [...KEYS, 'pki/sa.key', 'pki/sa.pub'];
export const AUTHORITY: string = join(KUBERNETES, 'pki/ca.crt');
/** A file in /etc/kubernetes with the options of the command that the timer repeats, one a line. */
export const TIMER_OPTIONS = 'curlew/snapshot-timer';
export const SNAPSHOT_TIMER = 'curlew-etcd-snapshot';
const FILE_LIMIT = 1 << 20;
const MAX_FILES = 64;
/** Name and magic of a tar's first header. */
const HEAD_BYTES = 512;

const aboutSchema = v.object({ format: v.literal(1), node: v.string(), time: v.string() });

export interface SnapshotFile extends AsyncDisposable {
  /** Path of what etcdutl reads. */
  readonly data: string;
  /** Folder with all of it; undefined for a file that has only the data, such as those of earlier versions and of etcdctl. */
  readonly folder: string | undefined;
}

interface Packed {
  /** Default: /etc/kubernetes. */
  readonly kubernetes?: string | undefined;
  /** Default: {@link UNITS}. */
  readonly units?: string | undefined;
  readonly node: string;
  readonly time: Date;
  /** Receives what the snapshot cannot have. */
  readonly warn: (text: string) => void;
  readonly signal: AbortSignal;
}

/** The bytes of a file with the data at this path, and with the keys of this control plane. */
export async function* packSnapshot(
  data: string,
  { kubernetes = '/etc/kubernetes', units = UNITS, node, time, warn, signal }: Packed,
): AsyncGenerator<Uint8Array, void, undefined> {
  const about: v.InferOutput<typeof aboutSchema> = { format: 1, node, time: time.toISOString() };
  const entries: SentEntry[] = [sentBytes(`${TOP}/${ABOUT}`, `${JSON.stringify(about)}\n`)];
  const add = async (from: string, to: string): Promise<void> => {
    const bytes = await readFound(join(kubernetes, from), FILE_LIMIT);
    if (bytes !== undefined) entries.push(sentBytes(`${TOP}/${to}`, bytes, 0o600));
  };
  for (const name of SHARED) await add(name, `${KUBERNETES}/${name}`);
  await add('curlew/init.yaml', 'kubeadm.yaml');
  const isRepeated = await lstat(join(units, `timers.target.wants/${SNAPSHOT_TIMER}.timer`)).then(
    () => true,
    () => false,
  );
  if (isRepeated) await add(TIMER_OPTIONS, 'timer');
  const encryption = await encryptionConfig(kubernetes);
  if (encryption?.startsWith(`${kubernetes}/`) === true) {
    const name = encryption.slice(kubernetes.length + 1);
    await add(name, `${KUBERNETES}/${name}`);
  } else if (encryption !== undefined) {
    warn(`the snapshot has no ${encryption}, with which Secrets are encrypted in etcd: keep a copy of that file`);
  }
  const { size } = await stat(data);
  entries.push({ kind: 'file', path: `${TOP}/${DATA}`, mode: 0o600, size, content: { kind: 'path', path: data } });
  yield* sendTar(entries, { signal });
}

/** Path of what the API server encrypts with before it writes to etcd; undefined if it does not. */
export async function encryptionConfig(kubernetes: string): Promise<string | undefined> {
  const manifest = await readFound(join(kubernetes, 'manifests/kube-apiserver.yaml'), FILE_LIMIT);
  return /^\s*- --encryption-provider-config=["']?([^\s"']+)/m.exec(manifest?.toString('utf8') ?? '')?.[1];
}

/**
 * Opens a snapshot of any version. A tar is extracted below the folder, until it is disposed of. `CLUSTER_FAILED` if it is not whole, and
 * `NO_SPACE` before anything is extracted. An encrypted one needs a file with the identity of a recipient.
 */
export async function openSnapshot(
  file: string,
  {
    folder,
    identity,
    signal,
  }: { readonly folder: string; readonly identity?: string | undefined; readonly signal: AbortSignal },
): Promise<SnapshotFile> {
  const head = await headOf(file, folder);
  const isEncrypted = head.startsWith(AGE_HEADER);
  if (!isEncrypted && !(head.startsWith(`${TOP}/`) && head.slice(257, 262) === 'ustar')) {
    await requireWhole(file);
    return { data: file, folder: undefined, [Symbol.asyncDispose]: async () => undefined };
  }
  const into = join(folder, partialName());
  const remove = async (): Promise<void> => rm(into, { recursive: true, force: true });
  try {
    const bytes = isEncrypted ? await decryptedFile(file, identity) : createReadStream(file);
    await extract(bytes, file, into, signal);
    const data = join(into, DATA);
    await requireWhole(data, file);
    return { data, folder: into, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    signal.throwIfAborted();
    throw fileError(`read ${file}`, error);
  }
}

async function extract(
  bytes: AsyncIterable<Uint8Array>,
  file: string,
  into: string,
  signal: AbortSignal,
): Promise<void> {
  const { size } = await stat(file);
  await makeMissing(dirname(into));
  await sweepPartials(dirname(into), { folders: true });
  await requireSpace(dirname(into), size, `extract ${file}`);
  await mkdir(into, { mode: 0o700 });
  const refuse = (what: string): CurlewError => refusedSnapshot(file, what);
  // No tar has more in it than its own bytes.
  const limits = { bytes: size, files: MAX_FILES, over: 'it is truncated' };
  const files = await receiveTar(bytes, { top: TOP, into, limits, refuse, signal });
  for (const { path } of files) await chmod(join(into, path), 0o600);
  // A static pod would run as soon as the kubelet does.
  const foreign = files.find(({ path }) => path.startsWith(`${KUBERNETES}/manifests/`));
  if (foreign !== undefined) throw refuse(foreign.path);
  const about = await readFound(join(into, ABOUT), FILE_LIMIT);
  if (!v.is(aboutSchema, about && jsonIn(about.toString('utf8')))) throw refuse(`${ABOUT} is not one of this version`);
}

async function headOf(file: string, folder: string): Promise<string> {
  try {
    await using opened = await open(file, 'r');
    const { buffer } = await opened.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.toString('latin1');
  } catch (error) {
    if (!isMissing(error)) throw fileError(`read ${file}`, error);
    throw new CurlewError('NOT_FOUND', `cannot read ${file}: no such file`, {
      hint: `check the path; those of curlew etcd snapshot are in ${join(folder, 'etcd')}`,
    });
  }
}

async function decryptedFile(file: string, identity: string | undefined): Promise<AsyncIterable<Uint8Array>> {
  const doing = `decrypt ${file}`;
  if (identity === undefined) {
    throw new CurlewError('USAGE', `cannot ${doing}: the identity of a recipient is missing`, {
      hint: 'add --identity FILE, a file of age-keygen; or decrypt it first: age --decrypt --identity FILE',
    });
  }
  const text = await readFound(identity, FILE_LIMIT);
  if (text === undefined) {
    throw new CurlewError('NOT_FOUND', `cannot read ${identity}: no such file`, {
      hint: 'check the path of --identity',
    });
  }
  return decrypted(createReadStream(file), await decrypterFor(text.toString('utf8'), identity), {
    refuse: (why) => refusedSnapshot(file, why),
    notForThese: () =>
      new CurlewError('CLUSTER_FAILED', `cannot ${doing} with ${identity}: it is encrypted for others`, {
        hint: 'specify the identity of one of its recipients',
      }),
  });
}
