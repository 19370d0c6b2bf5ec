/** Finds the credentials of a registry: docker's configuration file, and the helpers that it names. */
import { fieldsOf, jsonIn } from '../../core/json.ts';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, fileError, isMissing } from '../../core/errors.ts';
import { secret } from '../../core/secret.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import { tryProgram } from '../../platform/process/run-program.ts';
import {
  DOCKER_HUB_KEY,
  NO_CONFIG,
  parseDockerConfig,
  scopesOf,
  type Credential,
  type DockerConfig,
} from './docker-config.ts';

export interface Credentials {
  /**
   * For a registry's `host[:port]/repository`, those of the longest path that contains it; undefined means anonymous. Throws
   * `AUTH_FAILED` if a helper fails.
   */
  readonly find: (scope: string, options: { readonly signal: AbortSignal }) => Promise<Credential | undefined>;
}

type Environment = Readonly<Record<string, string | undefined>>;

const CONFIG_LIMIT = 1024 * 1024;
const HELPER_MS = 60_000;
const HELPER_OUTPUT = 256 * 1024;

/** No credentials for any registry. */
export const ANONYMOUS: Credentials = { find: async () => undefined };

/** Path of docker's configuration: `$DOCKER_CONFIG/config.json`, or else `$HOME/.docker/config.json`. */
export function dockerConfigPath(env: Environment): string | undefined {
  const folder = env['DOCKER_CONFIG'];
  if (folder !== undefined && folder !== '') return join(folder, 'config.json');
  const home = env['HOME'];
  return home === undefined || home === '' ? undefined : join(home, '.docker', 'config.json');
}

/** Reads docker's configuration; a missing file counts as empty. */
export async function readDockerConfig(env: Environment): Promise<DockerConfig> {
  const path = dockerConfigPath(env);
  if (path === undefined) return NO_CONFIG;
  const doing = `read ${path}`;
  try {
    await using file = await open(path);
    const { size } = await file.stat();
    if (size > CONFIG_LIMIT) throw new CurlewError('AUTH_FAILED', `cannot ${doing}: larger than ${CONFIG_LIMIT} bytes`);
    return parseDockerConfig(await file.readFile('utf8'), path);
  } catch (error) {
    if (isMissing(error)) return NO_CONFIG;
    throw fileError(doing, error);
  }
}

function helperAnswer(text: string, doing: string): Credential | undefined {
  const value = jsonIn(text);
  if (value === undefined) throw new CurlewError('AUTH_FAILED', `cannot ${doing}: its output is not JSON`);
  const { Username: username, Secret: password } = fieldsOf(value);
  if (typeof username !== 'string' || typeof password !== 'string') {
    throw new CurlewError('AUTH_FAILED', `cannot ${doing}: its output has no user name or secret`);
  }
  if (password === '') return undefined;
  // `<token>` as the user's name: the secret is an identity token (docker-credential-helpers).
  if (username === '<token>') return { kind: 'identity-token', token: secret(password) };
  return { kind: 'password', username, password: secret(password) };
}

/** Runs `docker-credential-<name> get`: host on standard input, JSON on standard output. */
async function askHelper(
  name: string,
  host: string,
  env: Environment,
  signal: AbortSignal,
): Promise<Credential | undefined> {
  const program = `docker-credential-${name}`;
  const doing = `ask ${program} for the credentials of ${host}`;
  return tryProgram(
    program,
    ['get'],
    {
      input: host === 'docker.io' ? DOCKER_HUB_KEY : host,
      env,
      limitMs: HELPER_MS,
      outputLimit: HELPER_OUTPUT,
      signal,
    },
    ({ status, stdout, stderr, error }) => {
      if (error === undefined) return helperAnswer(stdout, doing);
      // Helpers report missing credentials with this text and status 1.
      if (status === 1 && /credentials not found/i.test(stdout)) return undefined;
      // Standard output may contain a secret: reports only how it ended, and standard error.
      const message = visible(stderr.trim().slice(0, 200));
      const ended = status === undefined ? error.reason : `it exited with ${status}`;
      throw new CurlewError('AUTH_FAILED', `cannot ${doing}: ${ended}${message === '' ? '' : ` (${message})`}`, {
        hint: `try it: echo ${host} | ${program} get`,
      });
    },
  );
}

/** Looks up credentials once per host or path: in its own helper, the default helper, or the file. Helpers run with `env`. */
export function createCredentials(config: DockerConfig, env: Environment): Credentials {
  const known = createSingleFlightCache<Credential | undefined>({ failures: 'own' });
  const look = async (
    scope: string,
    store: string | undefined,
    signal: AbortSignal,
  ): Promise<Credential | undefined> => {
    const helper = config.helpers.get(scope) ?? store;
    const answer = helper === undefined ? undefined : await askHelper(helper, scope, env, signal);
    return answer ?? config.auths.get(scope);
  };
  return {
    find: async (text, { signal }) => {
      for (const scope of scopesOf(text)) {
        // The default helper knows only hosts.
        const store = scope.includes('/') ? undefined : config.store;
        const credential = await known.get(scope, async () => look(scope, store, signal));
        if (credential !== undefined) return credential;
      }
      return undefined;
    },
  };
}
