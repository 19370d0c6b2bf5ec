/** Gets credentials from a program that a kubeconfig names (kubernetes.io, "client-go credential plugins"). */
import { visible } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject, parseObject } from '../../core/json.ts';
import { secret, type Secret } from '../../core/secret.ts';
import { shortened } from '../../core/shortened.ts';
import { tryProgram } from '../../platform/process/run-program.ts';
import { searchPath } from '../../platform/process/search-path.ts';
import { quotedName, type ExecPlugin } from './kubeconfig.ts';

/** The output of a plug-in: a token, a certificate with its key, or all three. */
export interface PluginCredential {
  readonly token: Secret | undefined;
  readonly certificate: Secret | undefined;
  readonly key: Secret | undefined;
  /** Expiration in milliseconds since 1970; undefined if not given. */
  readonly endsAt: number | undefined;
}

interface PluginCall {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** ExecCredential's `spec.cluster`, for plug-ins that request it. */
  readonly cluster: object;
  readonly signal: AbortSignal;
}

const OUTPUT_LIMIT = 1 << 20;
const GRACE_MS = 2000;
const MESSAGE_LIMIT = 300;

/** PATH, including the folder that hooks use. */
export function programPath(env: PluginCall['env']): string {
  return searchPath(env, '/usr/local/bin');
}

/** Runs the program. `CLUSTER_FAILED` if it fails, takes too long, or does not print a credential. */
export async function runPlugin(plugin: ExecPlugin, { env, cluster, signal }: PluginCall): Promise<PluginCredential> {
  const { apiVersion, command, args, wantsCluster, installHint } = plugin;
  const bad = (what: string, hint?: string): CurlewError =>
    new CurlewError('CLUSTER_FAILED', `credential plug-in ${quotedName(command)}: ${what}`, { hint });
  const own = Object.entries(plugin.env).map(([name, value]) => [name, value.reveal()] as const);
  const spec = { interactive: false, ...(wantsCluster ? { cluster } : {}) };
  const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
  const options = {
    env: { ...env, PATH: programPath(env), ...Object.fromEntries(own), KUBERNETES_EXEC_INFO: info },
    secrets: Object.values(plugin.env),
    outputLimit: OUTPUT_LIMIT,
    graceMs: GRACE_MS,
    signal,
  };
  return tryProgram(command, args, options, ({ stdout, stderr, error }) => {
    if (error === undefined) return credentialOf(stdout, apiVersion, bad);
    const { problem, reason } = error;
    if (problem === 'missing') {
      throw bad('the program does not exist', visibleEnd(installHint ?? '') || 'install it, or add its folder to PATH');
    }
    if (problem !== 'status' && problem !== 'signal') throw bad(reason);
    const how = problem === 'status' ? `failed with ${reason}` : reason;
    throw bad([how, visibleEnd(stderr)].filter((text) => text !== '').join(': '));
  }).catch((thrown: unknown) => {
    throw signal.aborted ? bad('no response in time') : thrown;
  });
}

function credentialOf(output: string, apiVersion: string, bad: (what: string) => CurlewError): PluginCredential {
  const document = parseObject(output, (what) => bad(`its output is ${what}`));
  if (document['kind'] !== 'ExecCredential' || document['apiVersion'] !== apiVersion) {
    throw bad(`its output is not an ExecCredential of ${apiVersion}`);
  }
  const status = isObject(document['status']) ? document['status'] : {};
  const fieldText = (name: string): Secret | undefined => {
    const value = status[name] ?? '';
    if (typeof value !== 'string') throw bad(`status.${name}: not a string`);
    return value === '' ? undefined : secret(value);
  };
  const [token, certificate, key] = [
    fieldText('token'),
    fieldText('clientCertificateData'),
    fieldText('clientKeyData'),
  ];
  if ((certificate === undefined) !== (key === undefined)) throw bad('it returned only one of certificate and key');
  if (token === undefined && certificate === undefined) throw bad('it returned neither a token nor a certificate');
  const ends = fieldText('expirationTimestamp')?.reveal();
  const endsAt = ends === undefined ? undefined : Date.parse(ends);
  if (Number.isNaN(endsAt)) throw bad('status.expirationTimestamp: not a time');
  return { token, certificate, key, endsAt };
}

/** The last line that a program printed, with control characters escaped. */
function visibleEnd(text: string): string {
  const line = visible(text.trim().split('\n').at(-1) ?? '');
  return shortened(line, MESSAGE_LIMIT);
}
