/** Docker's client configuration: the credentials for registries. Pure. */
import { fieldsOf, jsonIn } from '../../core/json.ts';
import { CurlewError } from '../../core/errors.ts';
import { secret, type Secret } from '../../core/secret.ts';
import { nonEmptyText } from '../../platform/http/failure.ts';

export type Credential =
  | { readonly kind: 'password'; readonly username: string; readonly password: Secret }
  /** A token that only a registry's token service accepts. */
  | { readonly kind: 'identity-token'; readonly token: Secret };

export interface DockerConfig {
  /** By {@link scopeKey}. */
  readonly auths: ReadonlyMap<string, Credential>;
  /** Helper for all hosts without their own helper. */
  readonly store: string | undefined;
  /** Helper by {@link scopeKey}. */
  readonly helpers: ReadonlyMap<string, string>;
}

export const NO_CONFIG: DockerConfig = { auths: new Map(), store: undefined, helpers: new Map() };

/** The key of Docker Hub's credentials in docker's configuration and for helpers. */
export const DOCKER_HUB_KEY = 'https://index.docker.io/v1/';
const DOCKER_HUB: ReadonlySet<string> = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);

/** One spelling for a registry: host and port, without scheme and path, `docker.io` for all names of Docker Hub. */
export function hostKey(text: string): string {
  const [host = ''] = text
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .split('/', 1);
  return DOCKER_HUB.has(host) ? 'docker.io' : host;
}

/** One spelling for what credentials are for: the host as in {@link hostKey}, with the path of repositories if there is one. */
function scopeKey(text: string): string {
  const [, path = ''] = /^(?:https?:\/\/)?[^/]*\/(.*?)\/*$/i.exec(text.trim()) ?? [];
  // Addresses of the API stand for the whole registry.
  return path === '' || /^v[12]$/.test(path) ? hostKey(text) : `${hostKey(text)}/${path}`;
}

/** A scope and all that contain it: the longest path first, the host last. */
export function scopesOf(text: string): readonly string[] {
  const parts = scopeKey(text).split('/');
  return parts.map((_, at) => parts.slice(0, parts.length - at).join('/'));
}

/** Only a plain word can become part of a program's name. */
function helperOf(value: unknown, from: string): string | undefined {
  const name = nonEmptyText(value);
  if (name === undefined || /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) return name;
  throw new CurlewError(
    'AUTH_FAILED',
    `${from}: ${JSON.stringify(name.slice(0, 80))} is not the name of a credential helper`,
  );
}

function credentialOf(value: unknown): Credential | undefined {
  const { auth, username, password, identitytoken } = fieldsOf(value);
  const token = nonEmptyText(identitytoken);
  if (token !== undefined) return { kind: 'identity-token', token: secret(token) };
  const user = nonEmptyText(username);
  const plainPassword = nonEmptyText(password);
  if (user !== undefined && plainPassword !== undefined)
    return { kind: 'password', username: user, password: secret(plainPassword) };
  const encoded = nonEmptyText(auth);
  if (encoded === undefined) return undefined;
  const plain = Buffer.from(encoded, 'base64').toString();
  const colon = plain.indexOf(':');
  if (colon < 1) return undefined;
  // Docker pads the password with NUL characters in some versions.
  const secretText = plain.slice(colon + 1).replaceAll('\u0000', '');
  return { kind: 'password', username: plain.slice(0, colon), password: secret(secretText) };
}

/** Reads the text of a config.json; `from` names the file. No message contains its secrets. */
export function parseDockerConfig(text: string, from: string): DockerConfig {
  const value = jsonIn(text);
  // Omits the parser's message, which quotes the text.
  if (value === undefined)
    throw new CurlewError('AUTH_FAILED', `${from}: not JSON`, { hint: 'correct the file, or log in again' });
  const { auths, credsStore, credHelpers } = fieldsOf(value);
  const credentials = new Map<string, Credential>();
  for (const [host, entry] of Object.entries(fieldsOf(auths))) {
    const credential = credentialOf(entry);
    // Docker's own key wins over other spellings of the same host.
    if (credential !== undefined && (host === DOCKER_HUB_KEY || !credentials.has(scopeKey(host)))) {
      credentials.set(scopeKey(host), credential);
    }
  }
  const helpers = new Map<string, string>();
  for (const [host, helper] of Object.entries(fieldsOf(credHelpers))) {
    const name = helperOf(helper, from);
    if (name !== undefined) helpers.set(scopeKey(host), name);
  }
  return { auths: credentials, store: helperOf(credsStore, from), helpers };
}
