/** The work of curlew on a host over SSH: its lock, the bundle, and runs that do not end with the connection. */
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { hexOf, type Digest } from '../../core/digest.ts';
import { pause } from '../../platform/limit/repeat.ts';
import { SshError, type RemoteRun, type Ssh, type SshHost } from '../ssh/ssh.ts';
import { REMOTE } from './look.ts';

const SHORT_MS = 60_000;
const SEND_MS = 2 * 60 * 60_000;
const RUN_MS = 2 * 60 * 60_000;
/** After this time without a renewal, the operator who holds the lock counts as gone. */
const LOCK_S = 60;
const RENEW_MS = 20_000;
/** Less than what is left of a lock: a host that does not answer must not cost the locks of others. */
const RENEW_LIMIT_MS = 15_000;
const TRIES = 6;
const AGAIN_MS = 2000;

export interface Remote {
  readonly ssh: Ssh;
  readonly signal: AbortSignal;
}

/** The file of a bundle, and its digest. */
export interface BundleFile {
  readonly path: string;
  /** Digest of its table of contents. */
  readonly digest: string;
  readonly size: number;
  /** sha256 of all of it. */
  readonly whole: Digest;
}

const FOLDER = 'umask 077; mkdir -p "$1" && cd "$1" || exit 70\n';
const LOCK = `${FOLDER}exec 9>lock.guard && flock 9 || exit 70
now=$(date +%s); owner=; until=0; since=
if [ -s lock ]; then read -r until owner since <lock; fi
if [ "$owner" != "$2" ] && [ "$now" -lt "$until" ]; then echo "$owner"; exit 0; fi
if [ "$owner" != "$2" ]; then since=$now; fi
if [ "$3" = 0 ]; then rm -f lock; else echo "$((now + $3)) $2 $since" >lock; fi`;

/** Names a command on this machine in the locks that it takes: one word. */
export function operatorOf(env: Context['env']): string {
  return `${env['USER'] ?? 'root'}@${hostname()}-${randomBytes(4).toString('hex')}`.replaceAll(/\s/g, '_');
}

interface HostsLock extends AsyncDisposable {
  /** Aborts when a lock is lost. */
  readonly signal: AbortSignal;
  /** Locks further ones, such as those that were created meanwhile. */
  readonly add: (hosts: readonly SshHost[]) => Promise<void>;
}

/**
 * Locks hosts one after the other, and renews the locks. `BUSY` if another operator has one; a lock that its operator no longer renews is
 * taken over after a minute.
 */
export async function lockHosts(
  { ssh, signal }: Remote,
  hosts: readonly SshHost[],
  { owner, doing }: { readonly owner: string; readonly doing: string },
): Promise<HostsLock> {
  const lost = new AbortController();
  const lock = async (host: SshHost, seconds: number, at: AbortSignal, limitMs = SHORT_MS): Promise<void> => {
    const operands = [REMOTE, owner, String(seconds)];
    const other = (await ssh.run(host, { script: LOCK, operands, limitMs, signal: at })).trim();
    if (other === '') return;
    throw new CurlewError('BUSY', `cannot ${doing}: ${other} is doing it now, by its lock on ${host.name}`, {
      hint: `wait until it ends; if it is gone, its lock ends ${LOCK_S} seconds after its last sign`,
    });
  };
  const held: SshHost[] = [];
  const stopped = new AbortController();
  const free = async (): Promise<void> => {
    stopped.abort();
    const { signal: own } = new AbortController();
    await Promise.all(held.map(async (host) => lock(host, 0, own).catch(() => undefined)));
  };
  const add = async (more: readonly SshHost[]): Promise<void> => {
    for (const host of more) {
      const at = held.findIndex(({ name }) => name === host.name);
      if (isDeepStrictEqual(held[at], host)) continue;
      await lock(host, LOCK_S, signal);
      // A new machine that has the name of one that is gone takes its place, with its own address and key.
      held.splice(at < 0 ? held.length : at, 1, host);
    }
  };
  try {
    await add(hosts);
  } catch (error) {
    await free();
    throw error;
  }
  const renewing = (async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      await pause(RENEW_MS, stopped).catch(() => undefined);
      if (stopped.signal.aborted) return;
      const renew = async (host: SshHost): Promise<void> => {
        // A host that does not answer for a while is one that others cannot lock either.
        await lock(host, LOCK_S, signal, RENEW_LIMIT_MS).catch((error: unknown) => {
          if (error instanceof CurlewError && error.code === 'BUSY') lost.abort(error);
        });
      };
      await Promise.all(held.map(renew));
    }
  })();
  return {
    signal: AbortSignal.any([signal, lost.signal]),
    add,
    [Symbol.asyncDispose]: async () => {
      stopped.abort();
      await renewing;
      await free();
    },
  };
}

/** A run that has its status has ended: what has the lock is another command. */
const BUSY = `{ what='another command of curlew'; if [ -e name ] && [ ! -e status ]; then what=$(cat name); fi
echo "$what runs there: wait until it ends" >&2; exit 75; }`;

/** Some of sh that never runs at the same time as a command of curlew. */
function alone(work: string): string {
  return `flock -n -E 75 run.lock sh -c '${work}' || { status=$?; [ $status != 75 ] || ${BUSY}; exit $status; }`;
}

const SENT = `${FOLDER}for file in *.partial; do if [ "$file" != "$2.partial" ]; then rm -f "$file"; fi; done
if [ -e "$2.partial" ]; then wc -c <"$2.partial"; else echo 0; fi`;
/** At `$3`: what an operator who is gone has sent may still be written, and is the same. */
const APPEND = `cd "$1" || exit 70
said=$(dd of="$2.partial" oflag=seek_bytes seek="$3" conv=notrunc iflag=fullblock bs=64k status=none 2>&1) ||
{ rm -f "$2.partial"; echo "cannot write the bundle to $1: \${said##*: }" >&2; exit 70; }`;
/** One after the other: that of an operator who is gone continues, and may have done it. */
const UNPACK = `cd "$1" && exec 8>unpack.lock && flock 8 || exit 70
if [ ! -e "$2.partial" ] && [ "$(cat bundle/.digest 2>/dev/null)" = "sha256:$2" ]; then exit 0; fi
if [ "$(sha256sum <"$2.partial" | cut -c 1-64)" != "$3" ]; then rm -f "$2.partial"; echo 'the bundle was damaged on its way' >&2; exit 65; fi
said=$( { rm -rf bundle.new && mkdir bundle.new && tar -xzf "$2.partial" -C bundle.new --no-same-owner && echo "sha256:$2" >bundle.new/.digest; } 2>&1) ||
{ rm -rf bundle.new "$2.partial"; echo "cannot unpack the bundle in $1: $(printf '%s' "$said" | grep -v 'tar: Exiting' | tail -n 1)" >&2; exit 70; }
${alone('rm -rf bundle && mv bundle.new bundle')}
rm -f "$2.partial"`;

/** Sends what a host does not have yet of the file, and unpacks it there. `sent`: called with the bytes that are there. */
export async function sendBundle(
  remote: Remote,
  host: SshHost,
  { file, sent }: { readonly file: BundleFile; readonly sent: (bytes: number) => void },
): Promise<void> {
  const { ssh, signal } = remote;
  const id = hexOf(file.digest as Digest);
  const at = { operands: [REMOTE, id], limitMs: SHORT_MS, signal };
  await again(remote, async () => {
    const arrived = Number(await ssh.run(host, { ...at, script: SENT }));
    let there = Number.isSafeInteger(arrived) && arrived >= 0 ? arrived : 0;
    sent(there);
    if (there >= file.size) return;
    const read = createReadStream(file.path, { start: there });
    const counted = async function* counted(): AsyncGenerator<Uint8Array, void, undefined> {
      for await (const chunk of read as AsyncIterable<Uint8Array>) {
        yield chunk;
        sent((there += chunk.byteLength));
      }
    };
    const operands = [REMOTE, id, String(there)];
    await ssh.run(host, { ...at, script: APPEND, operands, input: counted(), limitMs: SEND_MS });
  });
  await ssh.run(host, { ...at, script: UNPACK, operands: [REMOTE, id, hexOf(file.whole)], limitMs: SEND_MS });
}

/** Repeats what a cut connection has ended. */
async function again(remote: Pick<Remote, 'signal'>, work: () => Promise<void>): Promise<void> {
  for (let times = 1; ; times += 1) {
    try {
      return await work();
    } catch (error) {
      const isAway = error instanceof SshError && (error.problem === 'cut' || error.problem === 'unreachable');
      if (!isAway || times === TRIES) throw error;
    }
    await pause(AGAIN_MS * times, remote);
  }
}

/**
 * `$2`: the name of the run; `$3`: its id; then the cluster to record, what it was begun for, and the command. Who follows a run of another
 * operator gives it the own id, so that only this run is ever taken for it.
 */
const RUN = `${FOLDER}name=$2; id=$3; cluster=$4; request=$5; started=; shift 5
busy() { [ -e run.lock ] && ! flock -s -n run.lock true; }
if [ "$(cat id 2>/dev/null)" = "$id" ]; then :
elif busy; then
  if [ "$(cat name)" != "$name" ]; then ${BUSY}; fi
  # Earlier versions do not record it.
  if [ -s request ] && [ "$(cat request)" != "$request" ]; then
    echo "$name runs there for a file with other settings: wait until it ends, then run the same command again" >&2; exit 75
  fi
else
  IFS= read -r settings; rm -f settings.new; [ -z "$settings" ] || printf '%s' "$settings" >settings.new; cat >input
  if [ -n "$cluster" ]; then echo "$cluster" >cluster; printf %s "$name" >unfinished; fi
  rm -f status pid; : >log; printf %s "$name" >name; printf %s "$request" >request; started=yes
  setsid flock -w 9 -o run.lock sh -c 'cd bundle && "$@" >../log 2>&1; echo $? >../status.new; cd .. ; rm -f input
if [ "$(cat status.new)" = 0 ] && [ "$(cat name)" = "$(cat unfinished 2>/dev/null)" ]; then rm -f unfinished; fi
if [ "$(cat status.new)" = 0 ] && [ -s settings.new ]; then mv settings.new settings; fi; mv status.new status' run "$@" </dev/null >/dev/null 2>&1 &
  echo $! >pid
fi
printf %s "$id" >id
for try in 1 2 3 4 5 6 7 8 9; do if [ -s pid ]; then break; fi; sleep 0.1; done
if [ -n "$started" ] || busy; then tail -n +1 -f -s 0.2 --pid="$(cat pid)" log; else cat log; fi
if [ -s status ]; then exit "$(cat status)"; fi
if ! busy; then rm -f input; fi
echo 'it was cut, as by a restart of the host: run the same command again' >&2; exit 70`;

export interface RemoteCommand {
  /** For people, and for whoever continues it: the same command always has the same name. */
  readonly name: string;
  /** Digest of what a file wants of it: a run that was begun for something else is not this one. */
  readonly request?: string | undefined;
  /** The cluster that the host records from now on; until the run has ended with status 0, it also records that this is unfinished. */
  readonly cluster?: string;
  /** Runs in the unpacked bundle. */
  readonly command: readonly string[];
  /** The line that the host records as its settings once the run has ended with status 0: one line. */
  readonly settings?: string | undefined;
  /** Becomes the file `../input` of the command, and is removed after it. */
  readonly input?: string;
  readonly line: (text: string) => void;
}

/** Runs a command to its end, also if the connection is cut meanwhile, or if another operator has begun it. Throws `SshError`. */
export async function runCommand(
  remote: Remote,
  host: SshHost,
  { name, cluster = '', request = '', command, settings = '', input = '', line }: RemoteCommand,
): Promise<void> {
  const id = randomBytes(8).toString('hex');
  const operands = [REMOTE, name, id, cluster, request, ...command];
  await runLines(remote, host, { script: RUN, operands, input: `${settings}\n${input}`, line });
}

const FOLLOW = `cd "$1" && [ -e run.lock ] && ! flock -s -n run.lock true || exit 0
tail -n +1 -f -s 0.2 --pid="$(cat pid)" log; exec flock -s run.lock true`;

/** Follows whatever curlew runs on a host to its end, whoever has begun it, and however it ends. Throws `SshError`. */
export async function followRun(remote: Remote, host: SshHost, line: (text: string) => void): Promise<void> {
  await runLines(remote, host, { script: FOLLOW, operands: [REMOTE], line });
}

/** A script that prints the same lines again after a cut connection: each is passed on once. */
async function runLines(
  remote: Remote,
  host: SshHost,
  { line, ...what }: Pick<RemoteRun, 'script' | 'operands' | 'input'> & { readonly line: (text: string) => void },
): Promise<void> {
  const { ssh, signal } = remote;
  let shown = 0;
  await again(remote, async () => {
    let at = 0;
    const fresh = (text: string): void => {
      at += 1;
      if (at <= shown) return;
      shown = at;
      line(text);
    };
    await ssh.run(host, { ...what, line: fresh, limitMs: RUN_MS, signal });
  });
}

/** A reset with --keep-going deletes the package also where its hook has failed after it had removed the files of the node. */
const HALF =
  'a part of Kubernetes remains, and /etc/systemd/system/kubelet.service with it: run curlew reset on it; where that finds nothing to remove, unmount what findmnt shows below /var/lib/etcd and /var/lib/kubelet, run systemctl disable --now kubelet, empty both folders, remove kubeadm, kubelet, kubectl and crictl from /usr/local/bin, and that file last; then run the same command again';

const CLEAN = `cd "$1" 2>/dev/null || exit 0
if [ -e /etc/kubernetes/kubelet.conf ]; then echo 'it is still part of the cluster' >&2; exit 65; fi
if [ -e /etc/systemd/system/kubelet.service ]; then echo '${HALF}' >&2; exit 65; fi
${alone('rm -f bundle/.digest && rm -rf bundle bundle.new *.partial name id request log pid status input unfinished settings settings.new unpack.lock && rm -f cluster')}`;

/** Removes the bundle and all records of a host that was reset; its lock stays. Fails on one of which only a part was reset. */
export async function cleanHost({ ssh, signal }: Remote, host: SshHost): Promise<void> {
  await ssh.run(host, { script: CLEAN, operands: [REMOTE], limitMs: SHORT_MS, signal });
}
