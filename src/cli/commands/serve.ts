/** `curlew serve`: a store over HTTP: packages, bundles that are made as they are read, online installs, images. */
import { KEY_OPTIONS, WEB_OPTIONS } from '../options.ts';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { counted } from '../../core/counted.ts';
import { asError } from '../../core/errors.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { printableJson } from '../../core/json.ts';
import { formatAccess, type Access } from '../../serve/access.ts';
import type { ProveRelease } from '../../serve/catalogues.ts';
import { openExecutables } from '../../serve/executables.ts';
import { createInstallers, type Installers } from '../../serve/installers.ts';
import { startServer, type ServedTotals } from '../../serve/server.ts';
import { createSite } from '../../serve/site.ts';
import { withStoredExternal } from '../../store/release/offered.ts';
import { readSigned } from '../../store/release/signed-release.ts';
import { isWebAddress } from '../../store/web.ts';
import type { Store } from '../../store/store.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { openHttp } from '../../app/ports/network.ts';
import { ownScripts } from '../../app/own-scripts.ts';
import { formatBytes } from '../render/units.ts';
import { addressOf, limitsOf, listenOf, logFormOf, SERVE_OPTIONS, storeOf, tlsOf, tokenOf } from '../serve-options.ts';
import { trustOfStore } from '../../app/ports/release-trust.ts';
import { openStoreFor } from '../../app/ports/stores.ts';
import { toolVersion } from '../../app/version.ts';

const DETAILS = `A bundle is not made before it is asked for, and lies nowhere: its length and every byte are known from the packages. Interrupted downloads go on where they stopped, also after this server was started again.

ID is what curlew installer id prints of a spec, or the name of a file NAME.yaml among the specs. Specs come there by hand, or with --allow-post: curl -H "Authorization: Bearer $TOKEN" --data-binary @installer.yaml URL/installer.

On SIGTERM or SIGINT it takes no more connections, and ends when the running answers have left.`;

/** How long the store is believed not to have changed. */
const FRESH_MS = 2000;
/** How long the first plans are waited for before anybody is let in. */
const WARM_MS = 1000;
const SCRIPT_LIMIT = 1 << 20;

export const serve: Command<ServedTotals> = {
  name: 'serve',
  summary: 'Serve a store: bundles, packages, images, installs',
  operands: '',
  details: DETAILS,
  examples: [
    'curlew serve --store /srv/dist',
    'curlew serve --store s3://bucket/dist --redirect https://cdn.example/dist',
    'curlew serve --store /srv/dist --tls-cert site.crt --tls-key site.key',
    'curlew serve --store /srv/dist --allow-post --token-file token',
    'curlew serve --store s3://bucket/dist --key release.pub',
  ],
  options: { ...SERVE_OPTIONS, ...KEY_OPTIONS, ...WEB_OPTIONS },
  run: runServer,
  render: ({ requests, bytes }) => `${counted(requests, 'request')}, ${formatBytes(bytes)}`,
};

async function runServer(args: Arguments, context: CommandContext): Promise<ServedTotals> {
  const { report, signal, print = () => undefined } = context;
  const address = storeOf(args);
  const listen = listenOf(args);
  const form = logFormOf(args);
  const limits = limitsOf(args);
  const tls = await tlsOf(args, context);
  const token = await tokenOf(args, context);
  const publicUrl = addressOf(args, 'public-url');
  // What runs when the signal fires is to end by itself: it has no part in it.
  const running = new AbortController();
  const { signal: own } = running;
  await using opened = await openStores(args, { ...context, signal: own }, address);
  await using executables = openExecutables({ signal: own });
  const tool = toolVersion();
  const site = createSite(opened.store, {
    installers: opened.installers,
    executable: executables.of,
    functions: (await readLimited(join(ownScripts(), 'serve/start.sh'), SCRIPT_LIMIT)).toString('utf8'),
    redirect: addressOf(args, 'redirect'),
    allowInvalidSettings: args.flag('allow-invalid-settings'),
    tool,
    withExternal: async (catalogue) => withStoredExternal(opened.store, catalogue, { signal: own }),
    warn: (text) => report({ type: 'note', level: 'warning', text }),
    prove: await proveOf(args, { ...context, signal: own }, opened.store),
    freshMs: FRESH_MS,
    now: Date.now,
    signal: own,
  });
  // When all answers have left, nobody needs what is still being looked up.
  await using _over = { [Symbol.asyncDispose]: async () => running.abort() };
  const warmed = site.warm().catch((error: unknown) => {
    if (own.aborted) return;
    report({ type: 'note', level: 'warning', text: `${opened.store.address}: ${asError(error).message}` });
  });
  await Promise.race([warmed, setTimeout(WARM_MS, undefined, { ref: false })]);
  const log = (access: Access): void => print(form === 'json' ? printableJson(access) : formatAccess(access));
  const quiet = (): void => undefined;
  const options = { site, ...listen, tls, token, publicUrl, tool, limits, log: form === 'none' ? quiet : log };
  const server = await startServer({ ...options, now: Date.now });
  report({ type: 'note', level: 'info', text: `serving ${opened.store.address} on ${server.url}` });
  await aborted(signal);
  report({ type: 'note', level: 'info', text: 'waiting for running answers; a second signal ends at once' });
  return await server.stop();
}

/** What the keys prove of the store; undefined when nobody asks for signatures. */
async function proveOf(args: Arguments, context: CommandContext, store: Store): Promise<ProveRelease | undefined> {
  // Whoever asks for a release by its name decides; nodes refuse old ones by themselves.
  const trust = await trustOfStore(args.options, context, { address: store.address, allowOlder: true });
  if (trust === undefined) return undefined;
  const { signal } = context;
  return async (release) => readSigned(store, { release, trust: { ...trust, now: new Date() }, signal });
}

async function openStores(
  args: Arguments,
  context: CommandContext,
  address: string,
): Promise<{ readonly store: Store; readonly installers: Installers } & AsyncDisposable> {
  const specs = args.text('installers');
  const isWeb = [address, specs ?? ''].some(isWebAddress);
  const http = isWeb ? (await openHttp(args.options, context)).http : undefined;
  const store = await openStoreFor(address, args.options, context, { create: false, http });
  const installers =
    specs === undefined
      ? createInstallers(store, 'installers/')
      : createInstallers(
          await openStoreFor(specs, args.options, context, { create: args.flag('allow-post'), http }),
          '',
        );
  return { store, installers, [Symbol.asyncDispose]: async () => http?.close() };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
