/** `--root`: hooks run in a sandbox; all their writes go below a folder. */
import { chmod, mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { isWithin } from '../../platform/files/is-within.ts';
import { makeFolder, removeEmpty } from '../../platform/files/make-folder.ts';
import { tryProgram } from '../../platform/process/run-program.ts';
import type { NodePlace } from '../node/node-place.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface ConfineOptions {
  /** Absolute path of the folder that receives all writes. */
  readonly root: string;
  /** Absolute path of the install folder inside the sandbox; the real folder is below `root`. */
  readonly seen: string;
  /** Folder with confine.sh. */
  readonly scripts: string;
  /** Effective user ID of this process. */
  readonly uid: number;
  /** Hooks may use the network of this machine. */
  readonly network?: boolean;
  /** Files and folders that hooks may read although they are in hidden folders. */
  readonly shown?: readonly string[];
  /** The caller's environment, whose variables name credential files. */
  readonly env?: Environment;
  /** Names of further variables that are passed to hooks. */
  readonly passed?: readonly string[];
  readonly signal: AbortSignal;
}

/** Variables that curlew and bash need, and those of locale and terminal. Any other variable may be, or lead to, a secret. */
const VARIABLES = /^(?:PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|NO_COLOR|ASSUME_YES|BIN_CURLEW)$/;

/** Variables that name credential files. If one is passed, hooks can read its files. */
const CREDENTIALS: readonly string[] = [
  'KUBECONFIG',
  'DOCKER_CONFIG',
  'REGISTRY_AUTH_FILE',
  'AWS_CONFIG_FILE',
  'AWS_SHARED_CREDENTIALS_FILE',
  'GOOGLE_APPLICATION_CREDENTIALS',
];

function filesOf(env: Environment, names: readonly string[]): readonly string[] {
  return names.flatMap((name) => (env[name] ?? '').split(':')).filter((path) => isAbsolute(path));
}

/** The environment of hooks in a sandbox: harmless variables, and those requested by name. */
export function confinedEnvironment(env: Environment, passed: readonly string[]): Environment {
  const own = Object.entries(env).filter(([name]) => VARIABLES.test(name) || passed.includes(name));
  return { HOME: '/root', USER: 'root', LOGNAME: 'root', ...Object.fromEntries(own) };
}

/**
 * Folders with credentials of this machine and its users, and with temporary files of other programs. They are empty in the
 * sandbox.
 */
const HIDDEN: readonly string[] = [
  ['/root', '/home', '/tmp', '/var/tmp', '/run/user', '/run/secrets', '/etc/kubernetes/pki', '/var/lib/kubelet'],
  ['/var/lib/etcd', '/etc/rancher', '/var/lib/rancher', '/var/lib/k0s', '/etc/ssl/private', '/etc/krb5.keytab'],
  ['/var/spool/cron', '/var/lib/cloud'],
].flat();
/** Hidden files in folders where hooks may have their own files. */
const HIDDEN_FILES: readonly (readonly [folder: string, name: RegExp])[] = [
  ['/etc/kubernetes', /\.conf$/],
  ['/etc/ssh', /_key$/],
];

const HINT =
  'curlew doctor checks what a sandbox needs; on a disposable machine, and without --kubeconfig, the option --unconfined runs hooks without a sandbox: they can change and reach everything that this user can';

/** What programs say, with LC_ALL=C, of files that cannot be written although the machine supports sandboxes. */
const FILE_TROUBLES: readonly (readonly [words: string, errno: string])[] = [
  ['No space left on device', 'ENOSPC'],
  ['Disk quota exceeded', 'EDQUOT'],
  ['File too large', 'EFBIG'],
];

function troubleOf(reason: string, code: string): Error {
  return Object.assign(new Error(reason), { code });
}

/**
 * Creates the folder and tries the sandbox once with the command that runs hooks. `UNSUPPORTED` if it does not work; then, new
 * folders are removed again.
 */
export async function confinedPlace(options: ConfineOptions): Promise<NodePlace> {
  const script = join(options.scripts, 'confine.sh');
  // Without root, the check fails before anything is created.
  if (options.uid !== 0) await requireSupport(options);
  const made: string[] = [];
  try {
    return { ...(await placeBelow(options, script, made)), made };
  } catch (error) {
    await removeEmpty(made);
    throw error;
  }
}

/** Adds the folders that it creates to `made`. */
async function placeBelow(options: ConfineOptions, script: string, made: string[]): Promise<NodePlace> {
  const { signal, network = false, env = {}, passed = [] } = options;
  made.push(...(await makeRoot(options.root)));
  const root = await realpath(options.root);
  await requireClosed(root);
  const seen = await canonical(options.seen);
  const directory = join(root, options.seen);
  made.push(...(await makeFolder(directory)));
  await requireOwnLinks(directory);
  const hidden = await hiddenPlaces(env);
  const isHidden = (path: string): boolean => hidden.some((place) => isWithin(place, path));
  const credentials = filesOf(
    env,
    passed.filter((name) => CREDENTIALS.includes(name)),
  );
  const shown = (await existing([...(options.shown ?? []), ...credentials])).filter(isHidden);
  const choices = [
    network ? ['--network'] : [],
    hidden.filter((path) => !shown.includes(path)).flatMap((path) => ['--hide', path]),
    shown.flatMap((path) => ['--show', path]),
  ].flat();
  const wrapBelow =
    (upper: string): NodePlace['wrap'] =>
    (command) => ['bash', script, ...choices, upper, directory, seen, ...command];
  made.push(...(await makeFolder(overlayOf(root))));
  const reason = await tryBelow(overlayOf(root), async (upper) => failureOf(wrapBelow(upper)(['true']), options));
  if (reason !== undefined) {
    // The check names what is missing; the attempt only has the message of the program that failed.
    const [, errno] = FILE_TROUBLES.find(([words]) => reason.endsWith(words)) ?? [];
    if (errno !== undefined) throw fileError(`create a sandbox in ${root}`, troubleOf(reason, errno));
    await requireSupport(options);
    throw unsupported(options, reason);
  }
  signal.throwIfAborted();
  return { directory, seen: options.seen, option: '--root', confined: true, connected: network, wrap: wrapBelow(root) };
}

/** Where confine.sh keeps what it needs to mount the overlay. */
function overlayOf(root: string): string {
  return join(root, '.overlay');
}

/**
 * Runs `attempt` with an empty folder on the file system of `parent`, and removes the folder. The overlay of `root` may be in use
 * by another run: a second mount would take its work folder, and its hooks could no longer write.
 */
async function tryBelow<Result>(parent: string, attempt: (upper: string) => Promise<Result>): Promise<Result> {
  const upper = await mkdtemp(join(parent, 'try-')).catch((error: unknown) => {
    throw fileError(`create a folder in ${parent}`, error);
  });
  try {
    return await attempt(upper);
  } finally {
    // Ignored: only empty folders would be left.
    await rm(upper, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function requireSupport(options: ConfineOptions): Promise<void> {
  const reason = await whyNoSandbox(options);
  if (reason !== undefined) throw unsupported(options, reason);
}

function unsupported({ root }: ConfineOptions, reason: string): CurlewError {
  return new CurlewError('UNSUPPORTED', `cannot create a sandbox in ${root}: ${reason}`, { hint: HINT });
}

type CheckOptions = Pick<ConfineOptions, 'scripts' | 'env' | 'signal'>;

/** The reason why this user can have no sandbox; undefined if nothing is known to be missing. Changes nothing. */
export async function whyNoSandbox(options: CheckOptions): Promise<string | undefined> {
  const reason = await failureOf(['bash', join(options.scripts, 'confine.sh'), '--check'], options);
  return reason?.replace(/^sandbox: /, '');
}

/** Runs a command; the first line of its standard error if it fails. */
async function failureOf(
  [command, ...args]: readonly [string, ...string[]],
  { env = {}, signal }: CheckOptions,
): Promise<string | undefined> {
  return tryProgram(
    command,
    args,
    { env: { ...env, LC_ALL: 'C' }, outputLimit: 1 << 16, signal },
    ({ stderr, error }) => {
      if (error === undefined) return undefined;
      const [first = ''] = stderr.trim().split('\n');
      // Bash begins its own messages with the place in a script.
      const reason = first.replace(/^\S.*?: line \d+: /, '');
      return reason === '' ? 'bash cannot be run' : reason;
    },
  );
}

/** A new root folder is accessible only to its owner. Returns the folders that it has created. */
async function makeRoot(root: string): Promise<readonly string[]> {
  const made = await makeFolder(root);
  if (made.length > 0) await chmod(root, 0o700);
  return made;
}

/** Hooks can leave set-user-ID programs below the root folder: no other user may reach it. */
async function requireClosed(root: string): Promise<void> {
  for (let path = root; ; path = dirname(path)) {
    const { mode } = await stat(path);
    if ((mode & 0o011) === 0) return;
    if (path !== '/') continue;
    throw new CurlewError('UNSUPPORTED', `cannot create a sandbox in ${root}: other users can open that folder`, {
      hint: 'hooks can leave set-user-ID programs there: use a folder that does not exist, which curlew makes for this user alone',
    });
  }
}

async function hiddenPlaces(env: Environment): Promise<readonly string[]> {
  const home = env['HOME'] ?? '/root';
  const files = await Promise.all(
    HIDDEN_FILES.map(async ([folder, pattern]) => {
      const names = await readdir(folder).catch(() => []);
      return names.filter((name) => pattern.test(name)).map((name) => join(folder, name));
    }),
  );
  // A home such as / or /usr also contains the system.
  const homes =
    dirname(resolve(home)) === '/' ? ['.kube', '.config', '.ssh', '.aws'].map((name) => join(home, name)) : [home];
  const places = await existing([...HIDDEN, ...files.flat(), ...homes, ...filesOf(env, CREDENTIALS)]);
  return places.filter(
    (path, index) => places.indexOf(path) === index && !places.some((place) => place !== path && isWithin(place, path)),
  );
}

/** Real paths of existing files. */
async function existing(paths: readonly string[]): Promise<readonly string[]> {
  const places = await Promise.all(paths.map(async (path) => realpath(path).catch(() => undefined)));
  return places.filter((path) => path !== undefined);
}

/** The path without symbolic links; its last parts need not exist. */
async function canonical(path: string): Promise<string> {
  const place = await realpath(path).catch(() => undefined);
  return place ?? join(await canonical(dirname(path)), basename(path));
}

/** Folders whose contents come from packages and are replaced as a whole. */
const WHOLE = /^(?:previous\/)?(?:addons|packages)\/[^/]+\/[^/]+\/|^runs\//;

/**
 * Refuses symbolic links that lead out of the install folder (`HOOK_FAILED`): hooks can create them, and later writes of this
 * process would go elsewhere on this machine.
 */
export async function requireOwnLinks(directory: string): Promise<void> {
  const own = await realpath(directory);
  const check = async (folder: string): Promise<void> => {
    const entries = await readdir(join(own, folder), { withFileTypes: true });
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (WHOLE.test(path)) continue;
      if (entry.isDirectory()) await check(path);
      if (!entry.isSymbolicLink()) continue;
      const target = await realpath(join(own, path)).catch(() => '/');
      if (isWithin(own, target)) continue;
      throw new CurlewError(
        'HOOK_FAILED',
        `a hook left a symbolic link that leads out of the sandbox: ${join(directory, path)}`,
        { hint: 'remove the link, or the whole sandbox; an add-on may link to a relative path in the install folder' },
      );
    }
  };
  try {
    await check('');
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    throw fileError(`check the links in ${directory}`, error);
  }
}
