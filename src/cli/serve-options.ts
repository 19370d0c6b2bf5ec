/** The words of `curlew serve`, checked. */
import { SETTINGS_OPTION, STORE_OPTIONS } from './options.ts';
import { resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { readLimited } from '../platform/files/read-limited.ts';
import { DEFAULT_LIMITS, type ServeLimits } from '../serve/server.ts';
import { SHORTEST_TOKEN } from '../serve/token.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { usage } from './node-target.ts';

const limitGroup = 'Limits';

export const SERVE_OPTIONS = {
  store: { type: 'string', value: 'STORE', help: 'folder, s3://bucket/prefix, or the web server in front of one' },
  listen: { type: 'string', value: 'HOST:PORT', help: 'where to listen (default: 127.0.0.1:8080)' },
  installers: {
    type: 'string',
    value: 'STORE',
    help: 'where the installer specs are, as ID.yaml (default: installers/ in the store)',
  },
  redirect: {
    type: 'string',
    value: 'URL',
    help: 'send clients here for packages: a web server in front of the store',
  },
  'public-url': { type: 'string', value: 'URL', help: 'what clients call this server (default: what they say)' },
  'allow-post': { type: 'boolean', help: 'let whoever has the token put installer specs here' },
  ...SETTINGS_OPTION,
  'token-file': { type: 'string', value: 'FILE', help: 'holds that token (default: $CURLEW_SERVE_TOKEN)' },
  'tls-cert': { type: 'string', value: 'FILE', help: 'certificate and its chain, in PEM: speak https' },
  'tls-key': { type: 'string', value: 'FILE', help: 'its private key, in PEM' },
  log: { type: 'string', value: 'json|text|none', help: 'a line for each request on standard output (default: json)' },
  'max-connections': { type: 'string', value: 'N', help: 'more are refused (default: 1000)', group: limitGroup },
  'idle-timeout': {
    type: 'string',
    value: 'SECONDS',
    help: 'a connection without a byte for so long is cut (default: 120)',
    group: limitGroup,
  },
  grace: {
    type: 'string',
    value: 'SECONDS',
    help: 'how long running answers are waited for when it is to end (default: 60)',
    group: limitGroup,
  },
  ...STORE_OPTIONS,
} satisfies OptionSpecs;

const LOG_FORMS = ['json', 'text', 'none'] as const;
const FILE_LIMIT = 1 << 20;
const TOKEN_LIMIT = 4096;

export function storeOf(args: Arguments): string {
  const store = args.text('store');
  if (store === undefined) throw usage('curlew serve: say with --store what to serve');
  return store;
}

/** `127.0.0.1:8080`, `[::1]:8080`, `:8080` for every address of this machine. */
export function listenOf(args: Arguments): { readonly host: string | undefined; readonly port: number } {
  const text = args.text('listen') ?? '127.0.0.1:8080';
  const [, host, port] = /^(\[[0-9A-Fa-f:.%\w]+\]|[^:\s/]*):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || port === undefined || Number(port) > 65_535) {
    throw usage(`--listen ${text}: an address and a port are needed, as in 127.0.0.1:8080`);
  }
  return { host: host === '' ? undefined : host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
}

export function logFormOf(args: Arguments): (typeof LOG_FORMS)[number] {
  const text = args.text('log') ?? 'json';
  const form = LOG_FORMS.find((known) => known === text);
  if (form === undefined) throw usage(`--log ${text}: known are ${LOG_FORMS.join(', ')}`);
  return form;
}

export function limitsOf(args: Arguments): ServeLimits {
  const number = (name: string, fallback: number): number => {
    const text = args.text(name);
    if (text === undefined) return fallback;
    if (!/^\d{1,6}$/.test(text) || (Number(text) === 0 && name !== 'grace'))
      throw usage(`--${name} ${text}: not a number from 1`);
    return Number(text);
  };
  return {
    ...DEFAULT_LIMITS,
    connections: number('max-connections', DEFAULT_LIMITS.connections),
    idleMs: number('idle-timeout', DEFAULT_LIMITS.idleMs / 1000) * 1000,
    graceMs: number('grace', DEFAULT_LIMITS.graceMs / 1000) * 1000,
  };
}

/** Without a slash at its end. */
export function addressOf(args: Arguments, name: 'redirect' | 'public-url'): string | undefined {
  const text = args.text(name);
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain =
    url !== undefined && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (!isPlain || !/^https?:$/.test(url.protocol) || !/^[\w.~:/[\]%+-]+$/.test(url.href)) {
    throw usage(`--${name}: the plain http or https address of a server is needed`);
  }
  return url.href.replace(/\/+$/, '');
}

export async function tlsOf(
  args: Arguments,
  { cwd }: CommandContext,
): Promise<{ readonly cert: string; readonly key: string } | undefined> {
  const [cert, key] = [args.text('tls-cert'), args.text('tls-key')];
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) throw usage('--tls-cert and --tls-key go together');
  const read = async (file: string): Promise<string> =>
    (await readLimited(resolve(cwd, file), FILE_LIMIT)).toString('utf8');
  return { cert: await read(cert), key: await read(key) };
}

/** What whoever posts must know; undefined when nobody may post. */
export async function tokenOf(args: Arguments, { cwd, env }: CommandContext): Promise<string | undefined> {
  const file = args.text('token-file');
  if (!args.flag('allow-post')) {
    if (file !== undefined) throw usage('--token-file goes with --allow-post');
    return undefined;
  }
  const text = file === undefined ? env['CURLEW_SERVE_TOKEN'] : await tokenText(resolve(cwd, file));
  const token = text?.trim() ?? '';
  if (new RegExp(`^[\\x21-\\x7e]{${SHORTEST_TOKEN},}$`).test(token)) return token;
  throw new CurlewError('USAGE', `--allow-post needs a token of at least ${SHORTEST_TOKEN} letters and digits`, {
    hint: 'openssl rand -hex 32 >token, and --token-file token; or CURLEW_SERVE_TOKEN in the environment',
  });
}

async function tokenText(path: string): Promise<string> {
  return (await readLimited(path, TOKEN_LIMIT)).toString('utf8');
}
