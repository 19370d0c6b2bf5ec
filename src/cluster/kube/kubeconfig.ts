/**
 * Parses kubeconfig files like kubectl (kubernetes.io, "Organizing Cluster Access Using kubeconfig Files", and
 * k8s.io/client-go/tools/clientcmd). Pure; messages contain no values of a file except names and addresses.
 */
import { dirname, isAbsolute, resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { isTexts } from '../../core/json.ts';
import { secret, type Secret } from '../../core/secret.ts';
import { isJsonObject, readYaml, type Json, type JsonObject } from '../../formats/yaml/yaml.ts';

/** A certificate, a key or a token: in the kubeconfig itself, or in a file that it names, or otherwise there. */
export type Material = { readonly value: Secret } | { readonly path: string; readonly otherwise?: Secret | undefined };

/** A program that gives credentials (kubernetes.io, "client-go credential plugins"). */
export interface ExecPlugin {
  readonly apiVersion: string;
  /** A path, or a name that is searched in PATH. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, Secret>>;
  /** The program gets the cluster's data of the kubeconfig. */
  readonly wantsCluster: boolean;
  readonly installHint: string | undefined;
}

export interface KubeUser {
  readonly name: string;
  readonly certificate: Material | undefined;
  readonly key: Material | undefined;
  readonly token: Material | undefined;
  readonly basic: { readonly username: string; readonly password: Secret } | undefined;
  readonly exec: ExecPlugin | undefined;
  /** Headers of the user to impersonate. */
  readonly impersonation: Readonly<Record<string, string | readonly string[]>>;
}

/** The API server, and the user. */
export interface KubeContext {
  readonly name: string;
  /** The file that has it. */
  readonly path: string;
  readonly server: URL;
  readonly namespace: string;
  readonly authority: Material | undefined;
  /** The server's certificate is not verified. */
  readonly insecure: boolean;
  /** The name in the server's certificate, if it differs from the host of the address. */
  readonly serverName: string | undefined;
  readonly proxy: URL | undefined;
  /** For credential plug-ins: the cluster entry's extension for them. */
  readonly pluginConfig: Json | undefined;
  readonly user: KubeUser | undefined;
  /** The fields of its cluster and its user as they are written. A function: logs and JSON must not show them. */
  readonly written: () => { readonly cluster: JsonObject; readonly user: JsonObject };
}

/** One of the named parts of a file. */
interface Entry {
  readonly path: string;
  /** `cluster "x"` */
  readonly title: string;
  readonly fields: JsonObject;
}

export interface Kubeconfig {
  /** Empty if it names none. */
  readonly currentContext: string;
  readonly clusters: ReadonlyMap<string, Entry>;
  readonly contexts: ReadonlyMap<string, Entry>;
  readonly users: ReadonlyMap<string, Entry>;
}

const PLUGIN_VERSIONS: readonly string[] = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
const PLUGIN_EXTENSION = 'client.authentication.k8s.io/exec';
/** Contexts in a hint. */
const MAX_NAMED = 10;
/** Characters of a name in messages. */
const NAME_LIMIT = 100;

function bad(path: string, what: string, hint = 'fix it, or use another kubeconfig'): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `kubeconfig ${path}: ${what}`, { hint });
}

/** How the caller chooses a kubeconfig. */
export type KubeconfigWay = 'KUBECONFIG' | '--kubeconfig' | 'spec.access';

/** The cure for a kubeconfig, as part of a hint. */
export function choosing(way: KubeconfigWay, what: string): string {
  if (way === 'spec.access') return `name ${what} in spec.access of the cluster`;
  return way === 'KUBECONFIG' ? `set KUBECONFIG to ${what}` : `choose ${what} with --kubeconfig`;
}

/** A name from a file, for messages. */
export function quotedName(name: string): string {
  return JSON.stringify(name.length > NAME_LIMIT ? `${name.slice(0, NAME_LIMIT)}…` : name);
}

function badEntry({ path, title }: Entry, what: string, hint?: string): CurlewError {
  return bad(path, `${title}: ${what}`, hint);
}

/** Parses one file. `CLUSTER_FAILED` if it is not YAML or not a kubeconfig. An empty file is valid. */
export function parseKubeconfig(path: string, text: string): Kubeconfig {
  const { value = {}, diagnostics } = readYaml(path, text);
  const finding = diagnostics.find(({ severity }) => severity === 'error');
  if (finding !== undefined) throw bad(path, `line ${finding.place.line}: ${finding.message}`);
  if (!isJsonObject(value)) throw bad(path, 'it is not a map');
  const kind = value['kind'] ?? 'Config';
  if (kind !== 'Config') throw bad(path, 'it is not of kind Config');
  const current = value['current-context'] ?? '';
  if (typeof current !== 'string') throw bad(path, 'current-context: not a string');
  return {
    currentContext: current,
    clusters: entriesOf(path, value, 'cluster'),
    contexts: entriesOf(path, value, 'context'),
    users: entriesOf(path, value, 'user'),
  };
}

function entriesOf(path: string, file: JsonObject, kind: 'cluster' | 'context' | 'user'): ReadonlyMap<string, Entry> {
  const list = file[`${kind}s`] ?? [];
  if (!Array.isArray(list)) throw bad(path, `${kind}s: not a list`);
  const entries = new Map<string, Entry>();
  for (const item of list as readonly Json[]) {
    const name = isJsonObject(item) ? item['name'] : undefined;
    if (!isJsonObject(item) || typeof name !== 'string') throw bad(path, `${kind}s: an entry has no name`);
    const title = `${kind} ${quotedName(name)}`;
    const fields = item[kind] ?? {};
    if (!isJsonObject(fields)) throw bad(path, `${title}: not a map`);
    if (entries.has(name)) throw bad(path, `${title} is listed twice`);
    entries.set(name, { path, title, fields });
  }
  return entries;
}

/**
 * The current context of merged files, or the one that is wanted: the first file that has a value takes precedence. Undefined if none is named.
 * `CLUSTER_FAILED` if the context is missing, and for settings that this tool does not support.
 */
export function currentContext(
  files: readonly (Kubeconfig & { readonly path: string })[],
  wanted?: string,
): KubeContext | undefined {
  const from = files.find((file) => (wanted === undefined ? file.currentContext !== '' : file.contexts.has(wanted)));
  if (from === undefined && wanted !== undefined) throw badContext(files, `no context ${quotedName(wanted)}`);
  if (from === undefined) return undefined;
  const name = wanted ?? from.currentContext;
  const first = (kind: 'clusters' | 'contexts' | 'users', required: string, by: string): Entry => {
    const entry = files.map((file) => file[kind].get(required)).find((one) => one !== undefined);
    if (entry === undefined) throw bad(from.path, `no ${kind.slice(0, -1)} ${quotedName(required)}, ${by}`);
    return entry;
  };
  const context = first('contexts', name, 'which is the current context');
  const by = `which context ${quotedName(name)} names`;
  const cluster = first('clusters', text(context, 'cluster') ?? '', by);
  const userName = text(context, 'user');
  const userEntry = userName === undefined ? undefined : first('users', userName, by);
  const user = userName === undefined || userEntry === undefined ? undefined : userOf(userName, userEntry);
  const written = () => ({ cluster: cluster.fields, user: userEntry?.fields ?? {} });
  const { path } = context;
  return { name, path, namespace: text(context, 'namespace') ?? 'default', ...clusterOf(cluster), user, written };
}

/** `CLUSTER_FAILED` unless a kubeconfig names a cluster, and nothing of the machine that it comes from; `path` is for messages. */
export function requireEmbedded(path: string, content: string): void {
  const hint = 'put all into it: kubectl config view --minify --flatten --raw, with a token or a certificate';
  const context = currentContext([{ ...parseKubeconfig(path, content), path }]);
  if (context === undefined) throw bad(path, 'it has no current context', hint);
  const { exec, token, certificate, key } = context.user ?? {};
  if (exec !== undefined) throw bad(path, `it starts the program ${quotedName(exec.command)}`, hint);
  const file = [context.authority, token, certificate, key].find((one) => one !== undefined && 'path' in one);
  if (file !== undefined && 'path' in file) throw bad(path, `it reads the file ${quotedName(file.path)}`, hint);
}

/** An error about the choice of a context; the hint names those that there are. */
export function badContext(
  files: readonly (Pick<Kubeconfig, 'contexts'> & { readonly path: string })[],
  what: string,
): CurlewError {
  const names = files.flatMap(({ contexts }) => [...contexts.keys()].map(quotedName));
  const hint = names.length === 0 ? undefined : `its contexts are ${names.slice(0, MAX_NAMED).join(', ')}`;
  return bad(files.map(({ path }) => path).join(', '), what, hint);
}

function clusterOf(entry: Entry): Omit<KubeContext, 'name' | 'path' | 'namespace' | 'user' | 'written'> {
  const authority = material(entry, 'certificate-authority');
  const insecure = flag(entry, 'insecure-skip-tls-verify');
  if (insecure && authority !== undefined) {
    throw badEntry(entry, 'it has both a certificate authority and insecure-skip-tls-verify: use only one of them');
  }
  return {
    server: serverOf(entry),
    authority,
    insecure,
    serverName: text(entry, 'tls-server-name'),
    proxy: proxyOf(entry),
    pluginConfig: pluginConfig(entry),
  };
}

function serverOf(entry: Entry): URL {
  const server = text(entry, 'server');
  const url = server !== undefined && URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '') {
    throw badEntry(entry, 'its server is not a URL such as https://HOST:PORT');
  }
  return url;
}

function proxyOf(entry: Entry): URL | undefined {
  const proxy = text(entry, 'proxy-url');
  if (proxy === undefined) return undefined;
  const url = URL.canParse(proxy) ? new URL(proxy) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw badEntry(entry, 'its proxy-url is not the URL of an http or https proxy', 'SOCKS proxies are not supported');
  }
  return url;
}

function pluginConfig({ fields }: Entry): Json | undefined {
  const extensions = fields['extensions'];
  if (!Array.isArray(extensions)) return undefined;
  const extension = (extensions as readonly Json[]).find(
    (one) => isJsonObject(one) && one['name'] === PLUGIN_EXTENSION,
  );
  return isJsonObject(extension) ? extension['extension'] : undefined;
}

function userOf(name: string, entry: Entry): KubeUser {
  if (entry.fields['auth-provider'] !== undefined) {
    throw badEntry(
      entry,
      'Kubernetes no longer supports auth-provider',
      'use a credential plug-in (exec), such as kubelogin',
    );
  }
  const exec = entry.fields['exec'];
  const [token, username] = [text(entry, 'token'), text(entry, 'username')];
  if (token !== undefined && username !== undefined) {
    throw badEntry(entry, 'it has both a token and a user name: use only one of them');
  }
  const [certificate, key] = [material(entry, 'client-certificate'), material(entry, 'client-key')];
  if ((certificate === undefined) !== (key === undefined)) {
    throw badEntry(entry, 'it has only one of client-certificate and client-key');
  }
  const tokenFile = filePath(entry, 'tokenFile');
  return {
    name,
    certificate,
    key,
    token: tokenOf(tokenFile, token === undefined ? undefined : secret(token)),
    basic: username === undefined ? undefined : { username, password: secret(text(entry, 'password') ?? '') },
    // Like client-go: a user with other credentials does not use the plug-in.
    exec:
      exec === undefined || (token ?? tokenFile ?? username) !== undefined
        ? undefined
        : pluginOf({ ...entry, title: `${entry.title}: exec` }, exec),
    impersonation: impersonationOf(entry),
  };
}

/** Like client-go: the file takes precedence as long as it can be read. */
function tokenOf(path: string | undefined, value: Secret | undefined): Material | undefined {
  if (path !== undefined) return { path, otherwise: value };
  return value && { value };
}

function pluginOf(entry: Entry, value: Json): ExecPlugin {
  if (!isJsonObject(value)) throw badEntry(entry, 'not a map');
  const inner = { ...entry, fields: value };
  const [command, apiVersion] = [text(inner, 'command'), text(inner, 'apiVersion') ?? ''];
  if (command === undefined) throw badEntry(entry, 'it names no command');
  if (!PLUGIN_VERSIONS.includes(apiVersion)) {
    throw badEntry(entry, 'its apiVersion is not supported', `use a plug-in of ${PLUGIN_VERSIONS.join(' or ')}`);
  }
  if (text(inner, 'interactiveMode') === 'Always') {
    throw badEntry(
      entry,
      'it requires a terminal (interactiveMode: Always), which it does not get',
      'use a non-interactive plug-in',
    );
  }
  const { args = [], env = [] } = value;
  if (!isTexts(args)) throw badEntry(entry, 'args: not a list of strings');
  const rows = Array.isArray(env) ? (env as readonly Json[]).map(variableOf) : [undefined];
  if (rows.includes(undefined)) throw badEntry(entry, 'env: not a list of names and values');
  return {
    apiVersion,
    // Like client-go: a bare name is searched in PATH, never next to the file.
    command: command.includes('/') && !isAbsolute(command) ? resolve(dirname(entry.path), command) : command,
    args,
    env: Object.fromEntries(rows.filter((row) => row !== undefined)),
    wantsCluster: flag(inner, 'provideClusterInfo'),
    installHint: text(inner, 'installHint'),
  };
}

function variableOf(item: Json): readonly [string, Secret] | undefined {
  if (!isJsonObject(item)) return undefined;
  const { name, value = '' } = item;
  const isVariable = typeof name === 'string' && typeof value === 'string' && name !== '' && !/[=\0]/.test(name);
  return isVariable && !value.includes('\0') ? [name, secret(value)] : undefined;
}

function impersonationOf(entry: Entry): KubeUser['impersonation'] {
  const [user, uid] = [text(entry, 'as'), text(entry, 'as-uid')];
  const { 'as-groups': groups = [], 'as-user-extra': extra = {} } = entry.fields;
  if (!isTexts(groups)) throw badEntry(entry, 'as-groups: not a list of strings');
  if (!isJsonObject(extra)) throw badEntry(entry, 'as-user-extra: not a map');
  const more = Object.entries(extra).map(([key, values]) => {
    if (!isTexts(values)) throw badEntry(entry, 'as-user-extra: not a map of lists of strings');
    return [`Impersonate-Extra-${headerName(key)}`, values.map((one) => headerText(entry, one))] as const;
  });
  if (user === undefined) {
    if (uid !== undefined || groups.length > 0 || more.length > 0) throw badEntry(entry, 'as-… requires as');
    return {};
  }
  return {
    'Impersonate-User': headerText(entry, user),
    ...(uid === undefined ? {} : { 'Impersonate-Uid': headerText(entry, uid) }),
    ...(groups.length === 0 ? {} : { 'Impersonate-Group': groups.map((one) => headerText(entry, one)) }),
    ...Object.fromEntries(more),
  };
}

/** Like client-go: the UTF-8 bytes, with bytes that header names cannot contain escaped in hexadecimal. */
function headerName(key: string): string {
  const escape = (byte: string): string => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  return Buffer.from(key)
    .toString('latin1')
    .replaceAll(/[^\w!#$&'*+.^`|~-]/g, escape);
}

/** UTF-8 as bytes of a header, like Go. */
function headerText(entry: Entry, value: string): string {
  if (/[\u0000-\u001f\u007f]/.test(value)) throw badEntry(entry, 'as: control characters are not allowed');
  return Buffer.from(value).toString('latin1');
}

/** Undefined if it is empty, as in Go. */
function text(entry: Entry, name: string): string | undefined {
  const value = entry.fields[name] ?? '';
  if (typeof value !== 'string') throw badEntry(entry, `${name}: not a string`, 'put it in quotes');
  return value === '' ? undefined : value;
}

function flag(entry: Entry, name: string): boolean {
  const value = entry.fields[name] ?? false;
  if (typeof value !== 'boolean') throw badEntry(entry, `${name}: neither true nor false`);
  return value;
}

function filePath(entry: Entry, name: string): string | undefined {
  const path = text(entry, name);
  return path === undefined ? undefined : resolve(dirname(entry.path), path);
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Data in the file itself takes precedence over a path. */
function material(entry: Entry, name: string): Material | undefined {
  const data = text(entry, `${name}-data`);
  if (data === undefined) {
    const path = filePath(entry, name);
    return path === undefined ? undefined : { path };
  }
  if (!BASE64.test(data.replaceAll(/\s+/g, ''))) throw badEntry(entry, `${name}-data: not base64`);
  return { value: secret(Buffer.from(data, 'base64').toString('latin1')) };
}
