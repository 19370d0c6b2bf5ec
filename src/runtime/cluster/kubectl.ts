/**
 * Requests to the API server through kubectl, which knows how to reach it and who asks. Documents go through pipes, so
 * that nothing of them stands in a list of processes.
 */
import { execa } from 'execa';
import { access, chmod, constants, copyFile, readdir, rename, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { visible } from '../../core/diagnostic.ts';
import { redact } from '../../core/errors.ts';
import { compareText } from '../../core/ref.ts';
import { makeFolder } from '../../files/make-folder.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface Kubectl {
  readonly command: string;
  readonly env: Env;
  /** One that takes longer is ended. */
  readonly deadlineMs: number;
}

const DEADLINE_MS = 30_000;
/** kubeadm writes it, and kURL uses it. The operator's own ~/.kube/config may well be of another cluster. */
const ADMIN_CONF = '/etc/kubernetes/admin.conf';

/**
 * kubectl in PATH, else the one of a package in the install folder. Undefined when there is none, or no file that says how
 * to reach a cluster: that of KUBECONFIG, else kubeadm's.
 */
export async function findKubectl({
  env,
  directory,
}: {
  readonly env: Env;
  readonly directory: string;
}): Promise<Kubectl | undefined> {
  const config = env['KUBECONFIG'] === undefined || env['KUBECONFIG'] === '' ? ADMIN_CONF : env['KUBECONFIG'];
  const files = config.split(delimiter).filter((path) => path !== '');
  if (!(await any(files, isFile))) return undefined;
  // Where hooks look, too.
  const path = [env['PATH'] ?? '/usr/sbin:/usr/bin:/sbin:/bin', '/usr/local/bin'].join(delimiter);
  const named = path.split(delimiter).map((folder) => join(folder, 'kubectl'));
  const command = (await first(named, isProgram)) ?? (await bundled(directory));
  return command === undefined
    ? undefined
    : { command, env: { ...env, PATH: path, KUBECONFIG: config }, deadlineMs: DEADLINE_MS };
}

async function first(paths: readonly string[], test: (path: string) => Promise<boolean>): Promise<string | undefined> {
  for (const path of paths) if (await test(path)) return path;
  return undefined;
}

async function any(paths: readonly string[], test: (path: string) => Promise<boolean>): Promise<boolean> {
  return (await first(paths, test)) !== undefined;
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

async function isProgram(path: string): Promise<boolean> {
  return (
    (await isFile(path)) &&
    access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
  );
}

/** Where packages carry programs; assets are not executable there, so such a one is copied. */
async function bundled(directory: string): Promise<string | undefined> {
  for (const tree of ['packages', 'addons']) {
    for (const name of await entries(join(directory, tree))) {
      for (const version of (await entries(join(directory, tree, name))).toReversed()) {
        const folder = join(directory, tree, name, version);
        const found = await first([join(folder, 'bin/kubectl'), join(folder, 'assets/kubectl')], isFile);
        if (found === undefined) continue;
        // Somebody who only asks may not write here: then there is none.
        return (await isProgram(found)) ? found : executableCopy(found, directory).catch(() => undefined);
      }
    }
  }
  return undefined;
}

async function entries(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(() => [])).toSorted(compareText);
}

async function executableCopy(from: string, directory: string): Promise<string> {
  const target = join(directory, 'bin/kubectl');
  const [now, wanted] = [await stat(target).catch(() => undefined), await stat(from)];
  if (now !== undefined && now.size === wanted.size && now.mtimeMs >= wanted.mtimeMs) return target;
  await makeFolder(join(directory, 'bin'));
  await copyFile(from, `${target}.part`, constants.COPYFILE_FICLONE);
  await chmod(`${target}.part`, 0o755);
  await rename(`${target}.part`, target);
  return target;
}

export interface ApiRequest {
  readonly verb: 'get' | 'create' | 'replace';
  /** `/api/v1/…` */
  readonly path: string;
  /** JSON text; not for `get`. */
  readonly document?: string;
}

/** Why a request came to nothing; `unreachable` when nobody knows whether it was carried out. */
export type ApiProblem = 'not found' | 'taken' | 'conflict' | 'refused' | 'unreachable' | 'failed';

export type ApiAnswer =
  | { readonly kind: 'answer'; readonly value: unknown }
  | { readonly kind: 'problem'; readonly problem: ApiProblem; readonly said: string };

const REQUEST_SECONDS = 15;
/** A ConfigMap is 1 MiB at most, which JSON may write six times as long. */
const MAX_OUTPUT = 16 << 20;
const SAID_LIMIT = 500;

/** What kubectl printed, or why it failed. */
export type KubectlAnswer =
  | { readonly kind: 'output'; readonly text: string }
  | Extract<ApiAnswer, { readonly kind: 'problem' }>;

export interface KubectlCall {
  /** Its standard input. */
  readonly input?: string;
  readonly signal: AbortSignal;
}

/** Runs kubectl with these words. Nothing is thrown but the signal's reason. */
export async function callKubectl(
  { command, env, deadlineMs }: Kubectl,
  words: readonly string[],
  { input = '', signal }: KubectlCall,
): Promise<KubectlAnswer> {
  const { exitCode, stdout, stderr, timedOut, isMaxBuffer, originalMessage } = await execa(command, words, {
    reject: false,
    env,
    extendEnv: false,
    cancelSignal: signal,
    timeout: deadlineMs,
    forceKillAfterDelay: 2000,
    maxBuffer: MAX_OUTPUT,
    input,
  });
  signal.throwIfAborted();
  if (timedOut) return { kind: 'problem', problem: 'unreachable', said: `no answer in ${deadlineMs / 1000} s` };
  if (isMaxBuffer) return { kind: 'problem', problem: 'failed', said: `more than ${MAX_OUTPUT} bytes of output` };
  if (exitCode === 0) return { kind: 'output', text: stdout };
  const text = stderr.trim() === '' ? (originalMessage ?? 'kubectl failed') : stderr.trim();
  return { kind: 'problem', problem: problemOf(text), said: saidBy(text) };
}

/** One request. Nothing is thrown but the signal's reason. */
export async function callApi(
  kubectl: Kubectl,
  { verb, path, document }: ApiRequest,
  { signal }: { readonly signal: AbortSignal },
): Promise<ApiAnswer> {
  const words = [`--request-timeout=${REQUEST_SECONDS}s`, verb, '--raw', path];
  const said =
    document === undefined
      ? await callKubectl(kubectl, words, { signal })
      : await callKubectl(kubectl, [...words, '-f', '-'], { input: document, signal });
  if (said.kind === 'problem') return said;
  try {
    return { kind: 'answer', value: JSON.parse(said.text) };
  } catch {
    return { kind: 'problem', problem: 'failed', said: 'the answer is no JSON' };
  }
}

const SERVER_REASONS: Readonly<Record<string, ApiProblem>> = {
  NotFound: 'not found',
  AlreadyExists: 'taken',
  Conflict: 'conflict',
  Unauthorized: 'refused',
  Forbidden: 'refused',
  Timeout: 'unreachable',
  ServerTimeout: 'unreachable',
  ServiceUnavailable: 'unreachable',
  TooManyRequests: 'unreachable',
  InternalError: 'unreachable',
};

const AWAY =
  /The connection to the server .* was refused|connection refused|no such host|i\/o timeout|deadline exceeded|Timeout exceeded|handshake timeout|connection reset|broken pipe|\bEOF\b|connection lost|no route to host|network is unreachable|apiserver not ready/i;

function problemOf(text: string): ApiProblem {
  const [, reason = ''] = /^Error from server \((\w+)\)/m.exec(text) ?? [];
  const known = SERVER_REASONS[reason];
  if (known !== undefined) return known;
  if (/must be logged in|Unauthorized|x509:/i.test(text)) return 'refused';
  return AWAY.test(text) ? 'unreachable' : 'failed';
}

const EXPIRED = /certificate has expired or is not yet valid/;

/** What to do about an API server that refuses. */
export function refusalHint(said: string): string {
  return EXPIRED.test(said)
    ? 'set the clock of this machine right; if it is, renew the certificates (kubeadm certs renew all); then run the same command again'
    : 'name a kubeconfig of an administrator in KUBECONFIG, then run the same command again';
}

/** The end of what a program said, in one line that cannot drive a terminal. */
function saidBy(text: string): string {
  const lines = text.split('\n').slice(-3);
  const line = visible(redact(lines.join('; ')));
  return line.length > SAID_LIMIT ? `…${line.slice(-SAID_LIMIT)}` : line;
}
