/** The `helm` program, with a private folder for its files and its configuration. */
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Chart, ChartAccess } from '../channel/channel.ts';
import { isRemote } from '../channel/location.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { Secret } from '../../core/secret.ts';
import { withoutSecretValues } from '../kube/secret-values.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { namelessFile } from '../../platform/files/nameless-file.ts';
import { makeTemporary } from '../../platform/files/temporary.ts';
import { createSingleFlightCache, type SingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import { allowsPlainHttp, checkedAddress, checkNamedBy } from '../../platform/http/address.ts';
import { tryProgram, type ProgramOptions } from '../../platform/process/run-program.ts';
import type { Context } from '../../core/context.ts';
import type { ChannelCluster } from './channel-cluster.ts';

export interface HelmRequest {
  /** Path of the program; default: `helm` in PATH. */
  readonly helm?: string | undefined;
}

export interface HelmCall {
  /** Begins its errors: `cannot DOING: reason`. */
  readonly doing: string;
  /** Gets each line of output; otherwise the standard output is returned. */
  readonly line?: ProgramOptions['line'];
  readonly limitMs?: number;
}

/** Opens helm for one release. Nothing that it prints shows the secrets. */
export type OpenHelm = (secrets?: readonly Secret[]) => Promise<Helm>;

export interface Helm extends AsyncDisposable {
  readonly major: 3 | 4;
  readonly run: (args: readonly string[], call: HelmCall) => Promise<string>;
  /** The path of a file with this data, which only this user can read and no kill leaves behind. */
  readonly file: (name: string, data: Uint8Array | string) => string;
  /** Downloads the chart that these arguments name, from its repository or registry. */
  readonly pull: (chart: readonly string[], access: Pick<WebTrust, 'caFile'> & ChartAccess) => Promise<Uint8Array>;
  /** The newest version of a chart in its repository or registry. */
  readonly newest: (chart: readonly string[], access: Pick<WebTrust, 'caFile'> & ChartAccess) => Promise<string>;
}

/** What a download trusts in addition to the system. */
export interface WebTrust {
  /** Certificate authorities in PEM; absolute. */
  readonly caFile: string | undefined;
  /** Hosts that may be contacted over plain http. */
  readonly allowHttp: readonly string[];
}

/** Releases have whole charts in them. */
const MAX_OUTPUT = 64 << 20;
const MAX_CHART_BYTES = 16 << 20;
const QUICK_MS = 300_000;
/** The first minor version of helm 3 with --take-ownership. */
const MIN_MINOR = 17;

/** Bytes of charts that are kept; one is kept in any case. */
const MAX_ARCHIVES = 8 << 20;
/** How long answers count where nothing else ends their use, in milliseconds. */
export const ANSWERS_MS = 60_000;

/** What helm has answered, for all clusters that get the same charts. */
export interface HelmAnswers {
  /** Charts that were downloaded. */
  readonly archives: SingleFlightCache<Uint8Array>;
  /** Major versions of programs, by their path. */
  readonly majors: SingleFlightCache<3 | 4>;
}

/** For one pass, or for as long as `freshMs` each. */
export function helmAnswers(freshMs: number = Infinity): HelmAnswers {
  const options = { failures: 'own', freshMs } as const;
  return {
    archives: createSingleFlightCache({ ...options, most: MAX_ARCHIVES, weigh: (archive) => archive.byteLength }),
    majors: createSingleFlightCache(options),
  };
}

type HelmCluster = Pick<ChannelCluster, 'kubeconfig' | 'kubeContext' | 'signal' | 'guard'>;

/**
 * Helm for releases on one cluster: the first one asks the program for its version, unless `majors` has it. `UNSUPPORTED` if there is
 * none, or another one than helm 3 or 4. The operator's own configuration of helm is not used, except for logins to registries, and not changed.
 */
export function helmOf(
  { helm: path }: HelmRequest,
  cluster: HelmCluster,
  context: Pick<Context, 'env' | 'cwd'>,
  { majors }: Pick<HelmAnswers, 'majors'> = helmAnswers(),
): OpenHelm {
  const program = path === undefined ? 'helm' : resolve(context.cwd, path);
  return async (secrets = []) => openHelm(program, { cluster, context, secrets, majors });
}

interface HelmParts {
  readonly cluster: HelmCluster;
  readonly context: Pick<Context, 'env' | 'cwd'>;
  readonly secrets: readonly Secret[];
  readonly majors: HelmAnswers['majors'];
}

async function openHelm(program: string, { cluster, context: own, secrets, majors }: HelmParts): Promise<Helm> {
  const { kubeconfig, kubeContext, signal, guard } = cluster;
  const { env, cwd } = own;
  const folder = makeTemporary('helm');
  const files: Disposable[] = [];
  const close = async (): Promise<void> => {
    for (const one of files) one[Symbol.dispose]();
    await rm(folder, { recursive: true, force: true });
  };
  const context = kubeContext === undefined ? {} : { HELM_KUBECONTEXT: kubeContext };
  const whole = { ...privateEnv(env, folder), ...context, KUBECONFIG: kubeconfig };
  const run: Helm['run'] = async (args, { doing, limitMs = QUICK_MS, ...call }) => {
    const clean = secretFilter();
    const options = {
      cwd,
      env: whole,
      outputLimit: MAX_OUTPUT,
      limitMs,
      signal,
      clean,
      secrets,
      bound: true,
      doing: `cannot ${doing}`,
    };
    await guard?.();
    return tryProgram(program, args, { ...options, ...call }, ({ stdout, lastLines, error }) => {
      if (error === undefined) return stdout;
      if (error.problem === 'status') throw reported(doing, lastLines) ?? error;
      if (error.problem !== 'missing' && error.problem !== 'unusable') throw error;
      throw new CurlewError('UNSUPPORTED', `cannot ${doing}: ${program} ${NOT_RUN[error.problem]}`, {
        hint: 'install helm 3 or 4, or name it with --helm FILE',
      });
    });
  };
  const file: Helm['file'] = (name, data) => {
    const made = namelessFile(folder, name, data);
    files.push(made);
    return made.path;
  };
  const trusted = ({ caFile, logins, authorities, trustsAll }: Parameters<Helm['pull']>[1]) => {
    const authority = authorities === undefined ? caFile : file('authorities.pem', authorities);
    return [
      ...(authority === undefined ? [] : ['--ca-file', authority]),
      ...(logins === undefined ? [] : ['--registry-config', file('logins.json', logins)]),
      ...(trustsAll === true ? ['--insecure-skip-tls-verify'] : []),
    ];
  };
  const newest: Helm['newest'] = async (chart, access) => {
    const doing = `find the newest version of the chart ${redact(chart[0] ?? '')}`;
    const about = await run(['show', 'chart', ...chart, ...trusted(access)], { doing });
    const version = /^version:[ \t]*["']?([^\s"']+)/m.exec(about)?.[1];
    if (version === undefined) throw new CurlewError('PROGRAM_FAILED', `cannot ${doing}: helm has shown no version`);
    return version;
  };
  const pull: Helm['pull'] = async (chart, access) => {
    const target = join(folder, 'chart');
    await mkdir(target);
    const doing = `download the chart ${redact(chart[0] ?? '')}`;
    const args = [...chart, ...trusted(access), '--destination', target];
    await run(['pull', ...args], { doing }).catch((error: unknown) => {
      // Its server has answered: another try does not help.
      if (error instanceof CurlewError && NO_CHART.test(error.message))
        throw new CurlewError('NOT_FOUND', error.message, { hint: 'check its name and version, and its repository' });
      throw error;
    });
    const archive = (await readdir(target)).find((name) => name.endsWith('.tgz'));
    if (archive === undefined) throw new CurlewError('PROGRAM_FAILED', `cannot ${doing}: helm has written no archive`);
    const { size } = await stat(join(target, archive));
    if (size <= MAX_CHART_BYTES) return readLimited(join(target, archive), MAX_CHART_BYTES);
    const most = `${MAX_CHART_BYTES >> 20} MiB`;
    throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: its archive is larger than ${most}`, {
      hint: 'package it without files that do not belong to it (.helmignore), or split it: helm cannot store a release of more than 1 MiB',
    });
  };
  try {
    const major = await majors.get(program, async () => askMajor(run, program));
    return { major, run, file, pull, newest, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** For the lines of one run: a value that is quoted may continue on the next lines. */
function secretFilter(): (line: string) => string {
  let isCut = false;
  return (line) => {
    if (isCut && !line.startsWith('Error: ')) return '';
    const shown = withoutSecretValues(line);
    isCut = shown !== line;
    return shown;
  };
}

/** From the line at which helm says what is wrong; the lines before it are logs. */
function reported(doing: string, lines: readonly string[]): CurlewError | undefined {
  const at = lines.findLastIndex((line) => line.startsWith('Error: '));
  if (at === -1) return undefined;
  const message = lines.slice(at).join('\n  | ').replace('Error: ', '');
  const hint = HINTS.find(([pattern]) => pattern.test(message))?.[1];
  return new CurlewError('CLUSTER_FAILED', `cannot ${doing}: ${message}`, { hint });
}

const HINTS: readonly (readonly [RegExp, string])[] = [
  [/conflict occurred while applying|conflicts? with "/, '--force-conflicts takes these fields'],
  [/invalid ownership metadata/, '--take-over makes existing objects those of the release'],
];

/** What helm says about a chart or a version that a repository or registry does not have. */
const NO_CHART = /\bnot found\b|manifest unknown/i;

const NOT_RUN = { missing: 'is not installed', unusable: 'cannot be started' } as const;

/** `HELM_*` of the operator select clusters, storage and plug-ins. */
function privateEnv(env: Context['env'], folder: string): ProgramOptions['env'] {
  const others = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('HELM_')));
  const { HELM_REGISTRY_CONFIG: logins, HELM_CONFIG_HOME: home, XDG_CONFIG_HOME: xdg, HOME: user = '/' } = env;
  const config = home ?? (xdg === undefined ? join(user, '.config/helm') : join(xdg, 'helm'));
  return {
    ...others,
    HELM_CACHE_HOME: join(folder, 'cache'),
    HELM_CONFIG_HOME: join(folder, 'config'),
    HELM_DATA_HOME: join(folder, 'data'),
    HELM_REGISTRY_CONFIG: logins ?? join(config, 'registry/config.json'),
  };
}

async function askMajor(run: Helm['run'], program: string): Promise<3 | 4> {
  const printed = (await run(['version', '--template', '{{.Version}}'], { doing: 'apply charts' })).trim();
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(printed) ?? [];
  if (major === '4') return 4;
  if (major === '3' && Number(minor) >= MIN_MINOR) return 3;
  const what = `${program} is ${printed === '' ? 'of an unknown version' : printed.slice(0, 60)}`;
  throw new CurlewError('UNSUPPORTED', `cannot apply charts: ${what}`, {
    hint: `install helm 3.${MIN_MINOR} or later, or helm 4, or name it with --helm FILE`,
  });
}

/**
 * Arguments that name a chart. `FETCH_FAILED` for plain http to a host that it is not allowed for, and for internal addresses that a
 * channel on another machine names.
 */
export function chartPlace(
  { repoURL, oci = '', name }: Pick<Chart, 'repoURL' | 'oci' | 'name'>,
  { channel, allowHttp }: { readonly channel: string; readonly allowHttp: readonly string[] },
): readonly string[] {
  const rules = { allowHttp: new Set(allowHttp.map((host) => host.toLowerCase())) };
  const reference = name === undefined ? oci : `${oci.replace(/\/$/, '')}/${name}`;
  const doing = `download the chart ${redact(repoURL === undefined ? reference : (name ?? ''))}`;
  const url = checkedAddress(repoURL ?? reference.replace(/^oci:/, 'https:'), undefined, doing, rules);
  if (isRemote(channel)) checkNamedBy(new URL(channel), url, doing, rules);
  if (repoURL !== undefined) return [name ?? '', '--repo', repoURL];
  return [reference, ...(allowsPlainHttp(url, rules) ? ['--plain-http'] : [])];
}
