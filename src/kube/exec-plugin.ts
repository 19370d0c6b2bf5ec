/** Credentials from a program that a kubeconfig names (kubernetes.io, "client-go credential plugins"). */
import { execa } from 'execa';
import { delimiter } from 'node:path';
import { visible } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { isObject, parseObject } from '../core/json.ts';
import { secret, type Secret } from '../core/secret.ts';
import { quoted, type ExecPlugin } from './kubeconfig.ts';

/** What a plug-in has given: a token, a certificate with its key, or all three. */
export interface PluginCredential {
  readonly token: Secret | undefined;
  readonly certificate: Secret | undefined;
  readonly key: Secret | undefined;
  /** When it ends, in milliseconds since 1970; undefined when it does not say. */
  readonly endsAt: number | undefined;
}

interface PluginCall {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** ExecCredential's `spec.cluster`, for plug-ins that want it. */
  readonly cluster: object;
  readonly signal: AbortSignal;
}

const OUTPUT_LIMIT = 1 << 20;
const SAID_LIMIT = 300;

/** PATH, with the folder where hooks look, too. */
export function programPath(env: PluginCall['env']): string {
  return [env['PATH'] ?? '/usr/sbin:/usr/bin:/sbin:/bin', '/usr/local/bin'].join(delimiter);
}

/** Runs the program. `CLUSTER_FAILED` when it fails, takes too long, or prints what is not a credential. */
export async function runPlugin(plugin: ExecPlugin, { env, cluster, signal }: PluginCall): Promise<PluginCredential> {
  const { apiVersion, command, args, wantsCluster, installHint } = plugin;
  const bad = (what: string, hint?: string): CurlewError =>
    new CurlewError('CLUSTER_FAILED', `credential plug-in ${quoted(command)}: ${what}`, { hint });
  const own = Object.entries(plugin.env).map(([name, value]) => [name, value.reveal()] as const);
  const spec = { interactive: false, ...(wantsCluster ? { cluster } : {}) };
  const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
  const running = execa(command, args, {
    reject: false,
    env: { ...env, PATH: programPath(env), ...Object.fromEntries(own), KUBERNETES_EXEC_INFO: info },
    extendEnv: false,
    cancelSignal: signal,
    forceKillAfterDelay: 2000,
    maxBuffer: OUTPUT_LIMIT,
    stdin: 'ignore',
  });
  const done = await Promise.race([running, aborted(signal)]);
  if (done === undefined || done.isCanceled) {
    // Children that it has left may hold on to these.
    running.stdout.destroy();
    running.stderr.destroy();
    throw bad('no answer in time');
  }
  const { exitCode, signal: endedBy, code, stdout, stderr, isMaxBuffer } = done;
  if (isMaxBuffer) throw bad(`more than ${OUTPUT_LIMIT} bytes of output`);
  if (code === 'ENOENT') throw bad('this program does not exist', visibleEnd(installHint ?? '') || undefined);
  if (exitCode === undefined && endedBy === undefined) throw bad(`it cannot be started (${code})`);
  if (exitCode !== 0) {
    const said = own.reduce(
      (text, [, value]) => (value.length < 4 ? text : text.replaceAll(value, '[secret]')),
      stderr,
    );
    const how = exitCode === undefined ? `ended by ${endedBy}` : `failed with status ${exitCode}`;
    throw bad([how, visibleEnd(said)].filter((text) => text !== '').join(': '));
  }
  return credentialOf(stdout, apiVersion, bad);
}

async function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

function credentialOf(output: string, apiVersion: string, bad: (what: string) => CurlewError): PluginCredential {
  const document = parseObject(output, (what) => bad(`its output is ${what}`));
  if (document['kind'] !== 'ExecCredential' || document['apiVersion'] !== apiVersion) {
    throw bad(`its output is not an ExecCredential of ${apiVersion}`);
  }
  const status = isObject(document['status']) ? document['status'] : {};
  const textOf = (name: string): Secret | undefined => {
    const value = status[name] ?? '';
    if (typeof value !== 'string') throw bad(`status.${name}: not a text`);
    return value === '' ? undefined : secret(value);
  };
  const [token, certificate, key] = [textOf('token'), textOf('clientCertificateData'), textOf('clientKeyData')];
  if ((certificate === undefined) !== (key === undefined)) throw bad('it gave only one of a certificate and its key');
  if (token === undefined && certificate === undefined) throw bad('it gave neither a token nor a certificate');
  const ends = textOf('expirationTimestamp')?.reveal();
  const endsAt = ends === undefined ? undefined : Date.parse(ends);
  if (Number.isNaN(endsAt)) throw bad('status.expirationTimestamp: not a time');
  return { token, certificate, key, endsAt };
}

/** The last line that a program has said, unable to drive a terminal. */
function visibleEnd(text: string): string {
  const line = visible(text.trim().split('\n').at(-1) ?? '');
  return line.length > SAID_LIMIT ? `…${line.slice(-SAID_LIMIT)}` : line;
}
