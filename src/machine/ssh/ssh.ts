/** Programs on other machines by OpenSSH's own client: its configuration, agent and jump hosts are those of the user. */
import { rm } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { CurlewError, isErrorCode, type ErrorCode } from '../../core/errors.ts';
import { shellQuote } from '../../core/shell-word.ts';
import { HOST_KEY, SSH_WORD } from '../../core/ssh-word.ts';
import { makeTemporary } from '../../platform/files/temporary.ts';
import { plainLine } from '../../platform/process/program-lines.ts';
import { runProgram, tryProgram, type ProgramOptions, type ProgramResult } from '../../platform/process/run-program.ts';
import { hintFrom, keepLastWords, type LastWords } from './last-words.ts';

export interface SshHost {
  /** For messages. */
  readonly name: string;
  /** Name or address. */
  readonly address: string;
  readonly user?: string | undefined;
  readonly port?: number | undefined;
  /** Its only accepted host key: a fingerprint as `ssh-keygen -l` prints it (`SHA256:…`), or type and key as in `known_hosts`. */
  readonly hostKey: string;
  /** `[USER@]HOST[:PORT]` to connect through; its host key is in the user's own `known_hosts`. */
  readonly via?: string | undefined;
}

/**
 * `invalid`: its address cannot be used; `unreachable`: no connection; `host-key`: it has another one; `denied`: it refuses the user;
 * `sudo`: the user may not act as root; `cut`: the connection ended before the program did, which may still run; `late`, `output`: over a
 * limit; `status`: the program itself failed.
 */
export type SshProblem =
  | 'invalid'
  | 'unreachable'
  | 'host-key'
  | 'denied'
  | 'sudo'
  | 'cut'
  | 'late'
  | 'output'
  | 'status';

/** Why a program on a host did not succeed. */
export class SshError extends CurlewError {
  readonly host: string;
  readonly problem: SshProblem;
  /** The reason alone. */
  readonly reason: string;
  constructor({ name }: SshHost, problem: SshProblem, reason: string, hint: string, code?: ErrorCode) {
    super(code ?? 'PROGRAM_FAILED', code === undefined ? `cannot run a program on ${name}: ${reason}` : reason, {
      hint,
    });
    this.host = name;
    this.problem = problem;
    this.reason = code === undefined || hint === '' ? reason : `${reason}; hint: ${hint}`;
  }
}

/** The operator's command has these for itself. */
const OWN_CODES: ReadonlySet<string> = new Set(['USAGE', 'CANCELLED']);

/** The failure of curlew on a host, as its own words say it, with its status. */
function toldBy(host: SshHost, { code, text, hint }: NonNullable<ReturnType<LastWords['failure']>>): SshError {
  const known = isErrorCode(code) && !OWN_CODES.has(code) ? code : 'PROGRAM_FAILED';
  return new SshError(
    host,
    'status',
    `${host.name} says: ${text}`,
    hint === '' ? '' : hintFrom(host.name, hint),
    known,
  );
}

type Limits = Pick<ProgramOptions, 'input' | 'line' | 'outputLimit' | 'secrets'>;

export interface RemoteRun extends Limits {
  /** For sh, with its operands: `$1` and so on. Others can read both in the list of processes: secrets are `input`. */
  readonly script: string;
  readonly operands?: readonly string[];
  /** Time limit in milliseconds. */
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/** Connections to hosts, one for each; what still runs there when it is disposed of is not ended. */
export interface Ssh extends AsyncDisposable {
  /** Runs a script as root, and returns what it prints. Throws `SshError`. */
  readonly run: (host: SshHost, what: RemoteRun) => Promise<string>;
}

const CONNECT_S = 10;
/** A connection on which nothing arrives for three of these is cut. */
const ALIVE_S = 15;
const IDLE_S = 60;
const OUTPUT_LIMIT = 4 << 20;
/** Status of ssh itself, of a refused sudo, and in place of a program's own 255 or 253. */
const [SSH_FAILED, NO_SUDO, INSTEAD] = [255, 253, 254];

/** ssh asks it for the keys of a host, with the one key that both have agreed on (ssh_config(5), KnownHostsCommand). */
const KNOWN_HOSTS = 'case "$0" in *" "*) echo "$2 $0";; "$1") echo "$2 $3 $4";; esac';

/** `env`: that of the user, of which ssh gets what it needs. */
export function openSsh(
  env: ProgramOptions['env'],
  { program = 'ssh', config }: { readonly program?: string; readonly config?: string } = {},
): Ssh {
  // Only its owner can enter it: whoever reaches a socket in it can run programs on the host.
  const folder = makeTemporary('ssh', { parent: '/tmp' });
  const sockets = new Map<string, string>();
  const { username } = userInfo();
  const own = {
    PATH: env['PATH'],
    HOME: env['HOME'] ?? homedir(),
    USER: env['USER'] ?? username,
    LOGNAME: env['LOGNAME'] ?? username,
    SSH_AUTH_SOCK: env['SSH_AUTH_SOCK'],
  };
  const optionsFor = (host: SshHost): readonly string[] => {
    const key = JSON.stringify(host);
    const socket = sockets.get(key) ?? join(folder, String(sockets.size));
    sockets.set(key, socket);
    return [...(config === undefined ? [] : ['-F', config]), ...argumentsFor(host, socket)];
  };
  return {
    run: async (host, { script, operands = [], outputLimit = OUTPUT_LIMIT, limitMs, signal, line, ...rest }) => {
      const problem = problemOf(host);
      if (problem !== undefined) throw new SshError(host, 'invalid', problem, 'correct it in the file of the cluster');
      const command = remoteCommand(script, operands);
      const words = keepLastWords();
      const heard = (text: string): void => {
        words.add(text);
        line?.(text);
      };
      return tryProgram(
        program,
        [...optionsFor(host), '--', host.address, command],
        { ...rest, line: line && heard, env: own, outputLimit, limitMs, signal },
        (result) => {
          if (result.error === undefined) return result.stdout;
          if (line === undefined) for (const text of result.stderr.split('\n')) words.add(plainLine(text));
          throw failureOf(host, result, words);
        },
      );
    },
    [Symbol.asyncDispose]: async () => {
      const { signal } = new AbortController();
      const exit = async (socket: string): Promise<unknown> =>
        runProgram(program, ['-O', 'exit', '-o', `ControlPath=${socket}`, 'none'], { env: own, limitMs: 5000, signal });
      // A connection that has ended already needs no closing.
      await Promise.allSettled([...sockets.values()].map(exit));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Texts that ssh would take as something else than what they are. */
function problemOf({ address, user = 'x', via = 'x', hostKey }: SshHost): string | undefined {
  for (const [what, text] of [
    ['address', address],
    ['user', user],
    ['jump host', via],
  ] as const) {
    if (!SSH_WORD.test(text)) return `its ${what} ${JSON.stringify(text)} is not one`;
  }
  return HOST_KEY.test(hostKey) ? undefined : 'its host key is neither SHA256:… nor a type with a key';
}

function argumentsFor({ user, port, hostKey, via }: SshHost, socket: string): readonly string[] {
  const [type = '', key] = hostKey.split(' ');
  const settings = {
    BatchMode: 'yes',
    StrictHostKeyChecking: 'yes',
    UserKnownHostsFile: 'none',
    GlobalKnownHostsFile: 'none',
    KnownHostsCommand: `/bin/sh -c '${KNOWN_HOSTS}' "${hostKey}" %f %H %t %K`,
    VerifyHostKeyDNS: 'no',
    CheckHostIP: 'no',
    UpdateHostKeys: 'no',
    ...(key === undefined ? {} : { HostKeyAlgorithms: type === 'ssh-rsa' ? 'rsa-sha2-512,rsa-sha2-256' : type }),
    ConnectTimeout: CONNECT_S,
    ServerAliveInterval: ALIVE_S,
    ServerAliveCountMax: 3,
    ControlMaster: 'auto',
    ControlPath: socket,
    ControlPersist: IDLE_S,
    ForwardAgent: 'no',
    ForwardX11: 'no',
    ClearAllForwardings: 'yes',
    PermitLocalCommand: 'no',
    RemoteCommand: 'none',
    RequestTTY: 'no',
    LogLevel: 'ERROR',
  };
  return [
    ...(user === undefined ? [] : ['-l', user]),
    ...(port === undefined ? [] : ['-p', String(port)]),
    ...(via === undefined ? [] : ['-J', via]),
    ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
  ];
}

/** The command for the login shell, of whatever kind it is: one program with one text. 255 is ssh's own status. */
function remoteCommand(script: string, operands: readonly string[]): string {
  const inner = ['/bin/sh', '-c', script, 'curlew', ...operands].map(shellQuote).join(' ');
  const outer = `umask 077; sudo=; if [ "$(id -u)" != 0 ]; then sudo='sudo -n'; $sudo true || exit ${NO_SUDO}; fi
$sudo ${inner}
status=$?; case $status in ${SSH_FAILED}|${NO_SUDO}) exit ${INSTEAD};; esac; exit $status`;
  return `exec /bin/sh -c ${shellQuote(outer)}`;
}

/** Images of clouds let root in for this answer alone. */
const OTHER_USER = /^Please login as the user "[^"]{1,64}" rather than the user "[^"]{1,64}"/m;

function withWords(reason: string, words: string): string {
  return words === '' ? reason : `${reason}: ${words}`;
}

/** `words`: what the program itself says. */
function failureOf(
  host: SshHost,
  { status, stdout, stderr, lastLines, error }: ProgramResult,
  words: LastWords,
): CurlewError {
  const text = [...stderr.split('\n'), ...lastLines].map((line) => line.trim()).filter((line) => line !== '');
  const last = text.at(-1) ?? '';
  if (error?.problem === 'late')
    return new SshError(host, 'late', error.reason, 'the program may still run there; run the same command again');
  if (error?.problem === 'output')
    return new SshError(host, 'output', error.reason, 'look at what the program prints there');
  if (error !== undefined && status === undefined) return error;
  const at = `${host.address}${host.port === undefined ? '' : `:${host.port}`}`;
  const account = host.user === undefined ? 'the user' : `the user ${host.user}`;
  if (status === NO_SUDO)
    return new SshError(
      host,
      'sudo',
      withWords(`${at} refuses sudo to ${account}`, last),
      'let the user run sudo without a password, or name another one as ssh.user of the machine, such as root',
    );
  const other = OTHER_USER.exec(stdout)?.[0];
  if (status !== SSH_FAILED && other !== undefined)
    return new SshError(
      host,
      'denied',
      `${at} refuses ${account}: ${other}`,
      'name that one as ssh.user of the machine',
    );
  const told = words.failure();
  if (status !== SSH_FAILED && told !== undefined) return toldBy(host, told);
  if (status !== SSH_FAILED)
    return new SshError(host, 'status', withWords(`it failed with status ${status}`, words.text() || last), '');
  const all = text.join('\n');
  if (/host key|HOST IDENTIFICATION/i.test(all))
    return new SshError(
      host,
      'host-key',
      `${at} has another host key than ${host.hostKey}`,
      `if it was installed again, or the fingerprint is of another type of key: ssh-keyscan -t ed25519${host.port === undefined ? '' : ` -p ${host.port}`} ${host.address} | ssh-keygen -lf -, compare with the console of the host, and change hostKey`,
    );
  if (/Permission denied|Too many authentication|No supported authentication/.test(all))
    return new SshError(
      host,
      'denied',
      withWords(`${at} refuses ${account}`, last),
      `name a user who may log in as ssh.user of the machine, or add your key to its authorized_keys; this shows the keys that are tried: ssh -v${host.port === undefined ? '' : ` -p ${host.port}`} ${host.user === undefined ? '' : `${host.user}@`}${host.address}`,
    );
  const { via } = host;
  // With a shared connection, ssh does not show what the one to the jump host says, such as that its host key is unknown.
  const jump = via === undefined ? '' : `, and that this connects without a question: ssh -J ${via} ${host.address}`;
  if (/connect to host|Could not resolve|kex_exchange_identification|banner exchange|stdio forwarding/.test(all))
    return new SshError(
      host,
      'unreachable',
      withWords(`it does not answer${via === undefined ? '' : ` through ${via}`}`, last),
      `check that it runs, its address, and the firewall${jump}`,
    );
  return new SshError(
    host,
    'cut',
    withWords('the connection was cut', last),
    'the program may still run there; run the same command again: it continues',
  );
}
