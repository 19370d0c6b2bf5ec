/** Serves a store over HTTP: packages, bundles created on request, online installs, images. */
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { asError, CurlewError } from '../core/errors.ts';
import { printableJson } from '../core/json.ts';
import { readLimited } from '../platform/files/read-limited.ts';
import { formatAccess, type Access } from '../ship/serve/access.ts';
import type { VerifyRelease } from '../ship/serve/catalogs.ts';
import { openExecutables } from '../ship/serve/executables.ts';
import { createInstallers, type Installers } from '../ship/serve/installers.ts';
import { DEFAULT_LIMITS, startServer, type ServedTotals, type ServeLimits } from '../ship/serve/server.ts';
import { createSite, type Site } from '../ship/serve/site.ts';
import { MIN_TOKEN_LENGTH } from '../ship/serve/token.ts';
import { withStoredExternal } from '../ship/release/merged-catalog.ts';
import { readSigned } from '../ship/release/signed-release.ts';
import type { Store } from '../ship/store/store.ts';
import type { Context } from '../core/context.ts';
import { ownScripts } from '../own/scripts.ts';
import { executableOpener } from '../steps/open/executables.ts';
import { lazyHttp } from '../steps/open/network.ts';
import { trustOfStore } from '../steps/open/release-trust.ts';
import { openStoreFor } from '../steps/open/stores.ts';
import { toolVersion } from '../own/version.ts';
import type { KeyRequest } from '../requests/trust.ts';
import { SERVE, type ServeRequest } from '../requests/serve.ts';
import { useCase } from '../core/request.ts';

/** How long cached data of the store is considered fresh. */
const FRESH_MS = 2000;
/** How long to wait for the first plans before accepting connections. */
const WARM_MS = 1000;
const SCRIPT_LIMIT = 1 << 20;
const PEM_LIMIT = 1 << 20;
const TOKEN_LIMIT = 4096;

/** Serves until the signal fires, then completes running responses. */
export const serve = useCase(SERVE, async (request, context): Promise<ServedTotals> => {
  const { report, signal } = context;
  const { listen = { host: '127.0.0.1', port: 8080 } } = request;
  const tls = await tlsOf(request, context);
  const token = await tokenOf(request, context);
  const publicUrl = plainAddress(request.publicUrl, '--public-url');
  // Running responses must complete after the signal has fired, so they have their own signal.
  const running = new AbortController();
  const inside = { ...context, signal: running.signal };
  await using opened = await openStores(request, inside);
  await using site = await openSite(request, opened, inside);
  // After the last response, remaining look-ups are not needed.
  await using _over = { [Symbol.asyncDispose]: async () => running.abort() };
  const { address } = opened.store;
  const warmed = site.warm().catch((error: unknown) => {
    if (running.signal.aborted) return;
    report({ type: 'note', level: 'warning', text: `${address}: ${asError(error).message}` });
  });
  await Promise.race([warmed, setTimeout(WARM_MS, undefined, { ref: false })]);
  const limits = limitsOf(request);
  const options = { site, token, publicUrl, tool: toolVersion(), limits, log: logOf(request, context), now: Date.now };
  const server = await startServer({ ...options, tls, host: listen.host, port: listen.port });
  report({ type: 'note', level: 'info', text: `serving ${address} on ${server.url}` });
  if (!signal.aborted) await once(signal, 'abort');
  report({ type: 'note', level: 'info', text: 'waiting for responses to finish; a second signal exits immediately' });
  return await server.stop();
});

interface Stores {
  readonly store: Store;
  readonly installers: Installers;
}

async function openSite(
  request: ServeRequest,
  { store, installers }: Stores,
  context: Context,
): Promise<Site & AsyncDisposable> {
  const { report, signal } = context;
  const redirect = plainAddress(request.redirect, '--redirect');
  const script = async (name: string): Promise<string> =>
    (await readLimited(join(ownScripts(), 'serve', name), SCRIPT_LIMIT)).toString('utf8');
  const verify = await verifierOf(request, context, store);
  const executables = openExecutables({ open: executableOpener(request, context), signal });
  const site = createSite(store, {
    installers,
    executable: executables.of,
    functions: await script('start.sh'),
    page: { style: await script('page.css'), behavior: await script('page.js') },
    redirect,
    allowInvalidSettings: request.allowInvalidSettings === true,
    tool: toolVersion(),
    withExternal: async (catalog) => withStoredExternal(store, catalog, { signal }),
    warn: (text) => report({ type: 'note', level: 'warning', text }),
    verify,
    freshMs: FRESH_MS,
    now: Date.now,
    signal,
  });
  return { ...site, [Symbol.asyncDispose]: executables[Symbol.asyncDispose] };
}

async function openStores(request: ServeRequest, context: Context): Promise<Stores & AsyncDisposable> {
  const { store: address, installers: specs, allowPost = false } = request;
  const { get: http, close } = lazyHttp(request, context);
  const store = await openStoreFor(address, request, context, { create: false, http });
  const installers =
    specs === undefined
      ? createInstallers(store, 'installers/')
      : createInstallers(await openStoreFor(specs, request, context, { create: allowPost, http }), '');
  return { store, installers, [Symbol.asyncDispose]: close };
}

/** Verifies signed releases of the store; undefined if no signatures are required. */
async function verifierOf(request: KeyRequest, context: Context, store: Store): Promise<VerifyRelease | undefined> {
  // Older releases are allowed: clients may name any release, and nodes refuse old ones themselves.
  const trust = await trustOfStore(request, context, { address: store.address, allowOlder: true });
  if (trust === undefined) return undefined;
  const { signal } = context;
  return async (release) => readSigned(store, { release, trust: { ...trust, now: new Date() }, signal });
}

/** Default limits, overridden by those of the request. */
export function limitsOf({
  maxConnections,
  idleTimeout,
  grace,
}: Pick<ServeRequest, 'maxConnections' | 'idleTimeout' | 'grace'>): ServeLimits {
  return {
    ...DEFAULT_LIMITS,
    ...(maxConnections === undefined ? {} : { connections: maxConnections }),
    ...(idleTimeout === undefined ? {} : { idleMs: idleTimeout * 1000 }),
    ...(grace === undefined ? {} : { graceMs: grace * 1000 }),
  };
}

function logOf({ log = 'json' }: ServeRequest, { print = () => undefined }: Context): (access: Access) => void {
  if (log === 'none') return () => undefined;
  return (access) => print(log === 'json' ? printableJson(access) : formatAccess(access));
}

/** A URL for clients, without a trailing slash. */
export function plainAddress(text: string | undefined, option: string): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain =
    url !== undefined && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (!isPlain || !/^https?:$/.test(url.protocol) || !/^[\w.~:/[\]%+-]+$/.test(url.href)) {
    throw new CurlewError('USAGE', `${option}: must be a plain http or https URL of a server`);
  }
  return url.href.replace(/\/+$/, '');
}

export async function tlsOf(
  { tlsCert: cert, tlsKey: key }: Pick<ServeRequest, 'tlsCert' | 'tlsKey'>,
  { cwd }: Pick<Context, 'cwd'>,
): Promise<{ readonly cert: string; readonly key: string } | undefined> {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new CurlewError('USAGE', '--tls-cert and --tls-key must be used together');
  const read = async (file: string): Promise<string> =>
    (await readLimited(resolve(cwd, file), PEM_LIMIT)).toString('utf8');
  return { cert: await read(cert), key: await read(key) };
}

/** The token for uploads; undefined if uploads are disabled. */
export async function tokenOf(
  { allowPost = false, tokenFile: file }: Pick<ServeRequest, 'allowPost' | 'tokenFile'>,
  { cwd, env }: Pick<Context, 'cwd' | 'env'>,
): Promise<string | undefined> {
  if (!allowPost) {
    if (file !== undefined) throw new CurlewError('USAGE', '--token-file requires --allow-post');
    return undefined;
  }
  const read = async (path: string): Promise<string> => (await readLimited(path, TOKEN_LIMIT)).toString('utf8');
  const text = file === undefined ? env['CURLEW_SERVE_TOKEN'] : await read(resolve(cwd, file));
  const token = text?.trim() ?? '';
  if (new RegExp(`^[\\x21-\\x7e]{${MIN_TOKEN_LENGTH},}$`).test(token)) return token;
  throw new CurlewError('USAGE', `--allow-post requires a token of at least ${MIN_TOKEN_LENGTH} letters and digits`, {
    hint: 'openssl rand -hex 32 >token, and --token-file token; or CURLEW_SERVE_TOKEN in the environment',
  });
}
