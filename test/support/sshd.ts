/** A real sshd on loopback, as its own process with its own keys, port and folder, for the user of the tests. */
import { errnoOf } from '../../src/core/errors.ts';
import { spawn, type ChildProcess } from 'node:child_process';
import { execFileSync } from 'node:child_process';
import { createConnection } from 'node:net';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { SshHost } from '../../src/machine/ssh/ssh.ts';
import { freePort } from './ports.ts';

export const SSHD = '/usr/sbin/sshd';

export interface Sshd extends AsyncDisposable {
  readonly host: SshHost;
  /** Configuration of a client that has its key. */
  readonly config: string;
  /** Host keys of both kinds, as in `known_hosts`, and their fingerprints. */
  readonly keys: Readonly<Record<'ed25519' | 'ecdsa', { readonly line: string; readonly fingerprint: string }>>;
  /** Ends all connections, but not what runs in them. */
  readonly cut: () => void;
}

function connects(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    socket.once('connect', () => done(true)).once('error', () => done(false));
    socket.once('connect', () => socket.destroy());
  });
}

async function key(path: string, type: string): Promise<{ readonly line: string; readonly fingerprint: string }> {
  execFileSync('ssh-keygen', ['-q', '-t', type, '-N', '', '-f', path]);
  const [kind, body] = (await readFile(`${path}.pub`, 'utf8')).split(' ');
  const [, fingerprint = ''] = execFileSync('ssh-keygen', ['-lf', path], { encoding: 'utf8' }).split(' ');
  return { line: `${kind} ${body}`, fingerprint };
}

/** What OpenSSH takes first holds out against quantum computers, and is most of what a connection takes of the processor. */
export const QUICK_EXCHANGE = 'KexAlgorithms curve25519-sha256';

interface SshdOptions {
  /** Further lines of sshd_config, from the path of the keys that it accepts. */
  readonly lines?: (authorized: string) => readonly string[];
  /**
   * A host of its own with this name: the files of this machine, whose changes stay in memory, and a hostname and machine id of its own.
   * Needs root.
   */
  readonly hostname?: string;
}

/**
 * What {@link SshdOptions.hostname} does; /tmp, /proc and /dev are those of this machine, and /run, without a daemon, and the home of
 * root are empty.
 */
export const OWN_FILES = `set -e
mount -t tmpfs none "$1" && mkdir "$1/u" "$1/w" "$1/m"
mount -t overlay -o "lowerdir=/,upperdir=$1/u,workdir=$1/w" overlay "$1/m"
for folder in proc dev sys tmp; do mount --rbind "/$folder" "$1/m/$folder"; done
for folder in root run; do mount -t tmpfs none "$1/m/$folder"; done
mkdir -m 755 "$1/m/run/sshd"
hostname "$2" && echo "$2-id" >"$1/m/etc/machine-id"
shift 2; exec chroot "$0" "$@"`;

export async function startSshd(folder: string, { lines = () => [], hostname }: SshdOptions = {}): Promise<Sshd> {
  await mkdir(folder, { recursive: true });
  // sshd wants its folder for privilege separation, also where no service has made it.
  if (userInfo().uid === 0) await mkdir('/run/sshd', { recursive: true, mode: 0o755 });
  const at = (name: string): string => join(folder, name);
  const keys = { ed25519: await key(at('ed25519'), 'ed25519'), ecdsa: await key(at('ecdsa'), 'ecdsa') };
  await key(at('client'), 'ed25519');
  await writeFile(at('authorized'), await readFile(at('client.pub')));
  const port = await freePort();
  const settings = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${at('ed25519')}`,
    `HostKey ${at('ecdsa')}`,
    `AuthorizedKeysFile "${at('authorized')}"`,
    `PidFile none`,
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    QUICK_EXCHANGE,
    ...lines(at('authorized')),
  ];
  await writeFile(at('sshd_config'), `${settings.join('\n')}\n`);
  await writeFile(at('config'), `IdentityFile "${at('client')}"\nIdentitiesOnly yes\n`);
  const command = [SSHD, '-D', '-e', '-f', at('sshd_config')];
  if (hostname !== undefined) {
    await mkdir(at('root'));
    command.unshift('unshare', '-m', '-u', 'sh', '-c', OWN_FILES, at('root/m'), at('root'), hostname);
  }
  const [program = '', ...args] = command;
  const server: ChildProcess = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  server.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  while (!(await connects(port))) {
    if (server.exitCode !== null) throw new Error(`sshd has ended: ${text}`);
    await new Promise((done) => setTimeout(done, 20));
  }
  const sessions = (): readonly number[] => {
    try {
      return execFileSync('pgrep', ['-P', String(server.pid)], { encoding: 'utf8' })
        .trim()
        .split('\n')
        .map(Number);
    } catch {
      return [];
    }
  };
  const cut = (): void => {
    for (const pid of sessions()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        // A session may end by itself meanwhile.
        if (errnoOf(error) !== 'ESRCH') throw error;
      }
    }
  };
  return {
    host: {
      name: hostname ?? 'n1',
      address: '127.0.0.1',
      user: userInfo().username,
      port,
      hostKey: keys.ed25519.fingerprint,
    },
    config: at('config'),
    keys,
    cut,
    [Symbol.asyncDispose]: async () => {
      const ended = new Promise((done) => server.once('exit', done));
      cut();
      server.kill('SIGKILL');
      await ended;
    },
  };
}
