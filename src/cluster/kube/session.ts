/** The current connection and credentials of requests: looks at their files before each request, since a run changes them. */
import { X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { delimiter, resolve } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import { CurlewError, errnoOf } from '../../core/errors.ts';
import { secret, type Secret } from '../../core/secret.ts';
import type { JsonObject } from '../../formats/yaml/yaml.ts';
import { fileMark, isSettled } from '../../platform/files/file-mark.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { allowsPlainHttp } from '../../platform/http/address.ts';
import { openConnections, type Connections } from '../../platform/http/connections.ts';
import { secretsOf } from '../../platform/http/failure.ts';
import { basic } from '../../platform/http/http.ts';
import { proxyFor, type Environment } from '../../platform/http/proxy.ts';
import { loadRoots, readPem } from '../../platform/http/roots.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import { runPlugin, type PluginCredential } from './exec-plugin.ts';
import {
  badContext,
  currentContext,
  parseKubeconfig,
  quotedName,
  type Kubeconfig,
  type KubeconfigWay,
  type KubeContext,
  type KubeUser,
  type Material,
} from './kubeconfig.ts';

export interface Session {
  readonly way: KubeconfigWay;
  readonly server: URL;
  /** The namespace of the context. */
  readonly namespace: string;
  readonly connections: Connections;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** Texts that messages must not repeat. */
  readonly secrets: readonly string[];
  /** Expiration of the client certificate, in milliseconds since 1970. */
  readonly certificateEndsAt: number | undefined;
}

/** A kubeconfig that reads no file and starts no program, and the context that it has. */
export interface Embedded {
  /** The kubeconfig, as JSON. */
  readonly text: Secret;
  readonly context: string;
  readonly server: string;
  /** When the credential of a plug-in expires, in milliseconds since 1970; undefined if it does not, or there is none. */
  readonly endsAt: number | undefined;
}

export interface Sessions {
  readonly way: KubeconfigWay;
  /** The context with its certificates and credentials as they are now. `CLUSTER_FAILED` if the files name none. */
  readonly embedded: (options: { readonly signal: AbortSignal }) => Promise<Embedded>;
  /** Undefined if no file names a cluster. `CLUSTER_FAILED` if the files are unusable. */
  readonly current: (options: { readonly signal: AbortSignal }) => Promise<Session | undefined>;
  /** After a 401: another session, or undefined if a retry cannot help. */
  readonly renewed: (refused: Session, options: { readonly signal: AbortSignal }) => Promise<Session | undefined>;
}

/** Written by kubeadm and used by kURL. The operator's ~/.kube/config may belong to another cluster. */
export const ADMIN_CONF = '/etc/kubernetes/admin.conf';
const FILE_LIMIT = 1 << 20;
const CONNECT_MS = 15_000;

/** The kubeconfig files: those of KUBECONFIG, or else kubeadm's. */
export function kubeconfigPaths(env: Environment): readonly string[] {
  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  return (named.length === 0 ? [ADMIN_CONF] : named).map((path) => resolve(path));
}

interface Read {
  readonly path: string;
  readonly text: string;
}

type Parsed = Kubeconfig & Pick<Read, 'path'>;

/** Texts of files, by path, and their marks when they were read. */
type Texts = Map<string, { readonly mark: string; readonly text: string }>;

/** Reads a file only if it has changed since it was last read. Does not read pipes, which could block forever. */
async function readText(path: string, known: Texts): Promise<string> {
  const now = Date.now();
  const stats = await stat(path, { bigint: true }).catch(() => undefined);
  if (stats?.isFile() === false) {
    const what = stats.isDirectory() ? 'it is a folder' : 'it is not a file';
    throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: ${what}`);
  }
  const mark = stats === undefined ? '' : fileMark(stats);
  const before = known.get(path);
  if (before?.mark === mark) return before.text;
  known.delete(path);
  const text = (await readLimited(path, FILE_LIMIT)).toString('utf8');
  if (stats !== undefined && isSettled(stats, now)) known.set(path, { mark, text });
  return text;
}

/** Reads the existing files. */
async function readFiles(paths: readonly string[], known: Texts): Promise<readonly Read[]> {
  const files: Read[] = [];
  for (const path of paths) {
    try {
      files.push({ path, text: await readText(path, known) });
    } catch (error) {
      if (!(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw asKubeconfigError(error);
    }
  }
  return files;
}

function asKubeconfigError(error: unknown): unknown {
  if (!(error instanceof CurlewError)) return error;
  return new CurlewError('CLUSTER_FAILED', `kubeconfig: ${error.message}`, {
    hint: error.hint ?? 'use a readable kubeconfig, which is a file such as ~/.kube/config',
    cause: error,
  });
}

async function valueOf(material: Material | undefined, known: Texts): Promise<string | undefined> {
  if (material === undefined) return undefined;
  if ('value' in material) return material.value.reveal();
  const otherwise = material.otherwise?.reveal();
  try {
    const text = await readText(material.path, known);
    return otherwise !== undefined && text.trim() === '' ? otherwise : text;
  } catch (error) {
    if (otherwise !== undefined) return otherwise;
    throw asKubeconfigError(error);
  }
}

interface SessionOptions {
  /** Another context than the current one. */
  readonly wanted?: string | undefined;
  /** The kubeconfig came with files of others: it may neither start a program nor send the content of a file as a token. */
  readonly isForeign?: boolean | undefined;
  /** Default: KUBECONFIG. */
  readonly way?: KubeconfigWay | undefined;
}

/** Keeps connections and credentials as long as the files do not change. */
export function openSessions(
  env: Environment,
  { wanted, isForeign = false, way = 'KUBECONFIG' }: SessionOptions = {},
): Sessions {
  let context: { readonly print: string; readonly files: readonly Parsed[]; readonly value: KubeContext | undefined } =
    { print: '', files: [], value: undefined };
  let credential: { readonly print: string; readonly value: PluginCredential } | undefined;
  let transport:
    | { readonly print: string; readonly value: Pick<Session, 'connections' | 'certificateEndsAt'> }
    | undefined;
  const known: Texts = new Map();
  /** Concurrent requests must not each start a plug-in. */
  const mutex = createSemaphore(1);

  const credentialFor = async (chosen: KubeContext, print: string, signal: AbortSignal): Promise<typeof credential> => {
    const plugin = chosen.user?.exec;
    if (plugin === undefined) return undefined;
    const ends = credential?.value.endsAt ?? Number.POSITIVE_INFINITY;
    if (credential?.print === print && Date.now() < ends) return credential;
    const cluster = await clusterForPlugins(chosen, known);
    return { print, value: await runPlugin(plugin, { env, cluster, signal }) };
  };

  const read = async (signal: AbortSignal): Promise<Session | undefined> => {
    const files = await readFiles(kubeconfigPaths(env), known);
    const print = JSON.stringify(files);
    if (context.print !== print) {
      const parsed = files.map(({ path, text }) => ({ ...parseKubeconfig(path, text), path }));
      context = { print, files: parsed, value: currentContext(parsed, wanted) };
    }
    const chosen = context.value;
    if (chosen === undefined) return undefined;
    if (isForeign) requirePlain(chosen);
    credential = await credentialFor(chosen, print, signal);
    const tls = await tlsOf(chosen, credential?.value, known);
    const transportPrint = JSON.stringify([chosen.server.href, chosen.proxy?.href, tls]);
    // Previous connections close after their requests.
    if (transport?.print !== transportPrint)
      transport = { print: transportPrint, value: await openTransport(chosen, tls, env) };
    const credentials = await credentialsOf(chosen, credential?.value, known);
    return { way, server: chosen.server, namespace: chosen.namespace, ...transport.value, ...credentials };
  };

  return {
    way,
    embedded: async ({ signal }) =>
      mutex.run(
        async () => {
          await read(signal);
          const { files, value: chosen } = context;
          if (chosen === undefined) throw badContext(files, 'it names no current context');
          return embed(chosen, { credential: credential?.value, env, known });
        },
        { signal },
      ),
    current: async ({ signal }) => mutex.run(async () => read(signal), { signal }),
    renewed: async (refused, { signal }) =>
      mutex.run(
        async () => {
          // A network file system can show a change of a file late, unless it is opened.
          known.clear();
          const now = await read(signal);
          if (now === undefined || !isSame(now, refused)) return now;
          if (credential === undefined) return undefined;
          credential = undefined;
          return read(signal);
        },
        { signal },
      ),
  };
}

function requirePlain(context: KubeContext): void {
  const { exec, token } = context.user ?? {};
  const file = token !== undefined && 'path' in token ? token.path : undefined;
  if (exec === undefined && file === undefined) return;
  const what = exec === undefined ? `sends the token in ${file}` : `starts the program ${quotedName(exec.command)}`;
  const hint = 'add --allow-exec if you trust it, or put a token into it';
  throw unusable(context, `it ${what}, which requires --allow-exec`, hint);
}

function isSame(a: Session, b: Session): boolean {
  return a.connections === b.connections && JSON.stringify(a.headers) === JSON.stringify(b.headers);
}

/** Fields of a kubeconfig that name files and programs, or that {@link embed} writes. */
const OUTSIDE = /^(?:certificate-authority|client-certificate|client-key|tokenFile|token|exec|extensions)(?:-data)?$/;

/** Hooks of a trial have neither the files nor the variables of this process, so proxy and authorities are written, too. */
async function embed(
  chosen: KubeContext,
  {
    credential,
    env,
    known,
  }: { readonly credential: PluginCredential | undefined; readonly env: Environment; readonly known: Texts },
): Promise<Embedded> {
  const { name, server, namespace, proxy = proxyFor(server, env), user, written } = chosen;
  const { authority, certificate, key } = await tlsOf(chosen, credential, known);
  const roots = env['SSL_CERT_FILE'] ?? '';
  const ca = authority ?? (roots === '' ? undefined : await readPem(roots, 'SSL_CERT_FILE'));
  const token = tokenIn(chosen, credential?.token?.reveal() ?? (await valueOf(user?.token, known)));
  const data = (field: string, pem: string | undefined): JsonObject =>
    pem === undefined ? {} : { [`${field}-data`]: Buffer.from(pem, 'latin1').toString('base64') };
  const others = (fields: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(fields).filter(([field]) => !OUTSIDE.test(field)));
  const cluster = {
    ...others(written().cluster),
    ...(chosen.insecure ? {} : data('certificate-authority', ca)),
    ...(proxy === undefined ? {} : { 'proxy-url': proxy.href }),
  };
  const own = {
    ...others(written().user),
    ...data('client-certificate', certificate),
    ...data('client-key', key),
    ...(token === undefined ? {} : { token }),
  };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster }],
    users: [{ name, user: own }],
    contexts: [{ name, context: { cluster: name, user: name, namespace } }],
    'current-context': name,
  };
  return {
    text: secret(`${JSON.stringify(config)}\n`),
    context: name,
    server: server.href.replace(/\/$/, ''),
    endsAt: credential?.endsAt,
  };
}

/** The inputs of TLS, in PEM. */
interface Tls {
  readonly authority: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}

async function tlsOf(
  { authority, user }: KubeContext,
  credential: PluginCredential | undefined,
  known: Texts,
): Promise<Tls> {
  const [ca, certificate, key] = [
    await valueOf(authority, known),
    credential?.certificate?.reveal() ?? (await valueOf(user?.certificate, known)),
    credential?.key?.reveal() ?? (await valueOf(user?.key, known)),
  ];
  return { authority: ca, certificate, key };
}

async function openTransport(
  context: KubeContext,
  tls: Tls,
  env: Environment,
): Promise<Pick<Session, 'connections' | 'certificateEndsAt'>> {
  const { server, proxy, insecure, serverName } = context;
  if (server.protocol === 'http:' && !allowsPlainHttp(server, { allowHttp: new Set() })) {
    throw unusable(context, `plain http to ${server.host} is not allowed`, 'use its https address as server');
  }
  const proxyOf = (url: URL): URL | undefined => proxy ?? proxyFor(url, env);
  const isSecure = server.protocol === 'https:';
  const needsRoots = (isSecure && tls.authority === undefined) || proxyOf(server)?.protocol === 'https:';
  const roots = needsRoots ? await loadRoots(undefined, env) : undefined;
  const connections = openConnections({
    proxyOf,
    connectMs: CONNECT_MS,
    roots,
    secureContext: isSecure ? secureContext(context, tls, roots) : undefined,
    rejectUnauthorized: !insecure,
    servername: serverName,
  });
  return { connections, certificateEndsAt: isSecure ? endOf(tls.certificate) : undefined };
}

function secureContext(context: KubeContext, tls: Tls, roots: readonly string[] | undefined): SecureContext {
  if (tls.authority !== undefined && !tls.authority.includes('-----BEGIN CERTIFICATE-----')) {
    throw unusable(context, `${authorityOf(context)} is not PEM`);
  }
  const ca = tls.authority ?? roots;
  try {
    return createSecureContext({
      // Like Go: trusts any certificate in a kubeconfig, including an intermediate authority or a server's own certificate.
      ...(tls.authority === undefined ? {} : { allowPartialTrustChain: true }),
      ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
      ...(tls.certificate === undefined || tls.key === undefined ? {} : { cert: tls.certificate, key: tls.key }),
    });
  } catch (error) {
    // Replaces OpenSSL's message.
    const code = errnoOf(error) ?? '';
    const what = code.includes('KEY_VALUES_MISMATCH') ? 'do not match' : 'cannot be read or are not PEM';
    const which = tls.certificate === undefined ? authorityOf(context) : 'its certificates and their key';
    throw unusable(context, `${which} ${what}`);
  }
}

function authorityOf({ authority }: KubeContext): string {
  const file = authority !== undefined && 'path' in authority ? ` ${authority.path}` : '';
  return `its certificate authority${file}`;
}

function unusable({ name, path }: KubeContext, what: string, hint?: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `kubeconfig ${path}: context ${quotedName(name)}: ${what}`, {
    hint: hint ?? 'fix it, or use another kubeconfig',
  });
}

function endOf(certificate: string | undefined): number | undefined {
  if (certificate === undefined) return undefined;
  const end = Date.parse(new X509Certificate(certificate).validTo);
  return Number.isNaN(end) ? undefined : end;
}

/** Like client-go: a token takes precedence over a user name with a password, and neither is sent over plain http. */
async function credentialsOf(
  context: KubeContext,
  credential: PluginCredential | undefined,
  known: Texts,
): Promise<Pick<Session, 'headers' | 'secrets'>> {
  const { user, server } = context;
  if (user === undefined || server.protocol === 'http:') return { headers: {}, secrets: [] };
  const token = tokenIn(context, credential?.token?.reveal() ?? (await valueOf(user.token, known)));
  if (token !== undefined) return sent(server, `Bearer ${token}`, user);
  if (user.basic === undefined) return { headers: user.impersonation, secrets: [] };
  return sent(server, basic(user.basic.username, user.basic.password.reveal()), user);
}

function sent(server: URL, authorization: string, { impersonation }: KubeUser): Pick<Session, 'headers' | 'secrets'> {
  const headers = { Authorization: authorization };
  return { headers: { ...headers, ...impersonation }, secrets: secretsOf({ doing: '', url: server.href, headers }) };
}

function tokenIn(context: KubeContext, text: string | undefined): string | undefined {
  const token = text?.trim();
  if (token === undefined || /^[\x21-\x7e]+$/.test(token)) return token;
  throw unusable(context, token === '' ? 'its token is empty' : 'its token is not valid');
}

/** ExecCredential's `spec.cluster` (client.authentication.k8s.io, type Cluster). */
async function clusterForPlugins(context: KubeContext, known: Texts): Promise<object> {
  const { server, serverName, insecure, authority, proxy, pluginConfig } = context;
  const ca = await valueOf(authority, known);
  return {
    server: server.href.replace(/\/$/, ''),
    ...(serverName === undefined ? {} : { 'tls-server-name': serverName }),
    ...(insecure ? { 'insecure-skip-tls-verify': true } : {}),
    ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    ...(proxy === undefined ? {} : { 'proxy-url': proxy.href }),
    config: pluginConfig ?? null,
  };
}
