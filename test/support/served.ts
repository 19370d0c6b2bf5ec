/** A server over a folder store, as `curlew serve` starts one, and requests as raw as a test wants them. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { memorySource } from '../../src/formats/archive/read.ts';
import { withStoredExternal } from '../../src/ship/release/merged-catalog.ts';
import type { Access } from '../../src/ship/serve/access.ts';
import { createInstallers } from '../../src/ship/serve/installers.ts';
import { DEFAULT_LIMITS, startServer, type ListenOptions, type ServeLimits } from '../../src/ship/serve/server.ts';
import { createSite, type SiteOptions } from '../../src/ship/serve/site.ts';
import type { Store } from '../../src/ship/store/store.ts';
import { publishTestPackages, specOf, TOOL } from './bundles.ts';
import { noise } from './packages.ts';
import { tree, type Tree } from './tree.ts';

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly log: Access[];
  readonly stop: () => Promise<unknown>;
  readonly warm: () => Promise<void>;
}

interface ServedOptions {
  readonly site?: Partial<SiteOptions>;
  readonly limits?: Partial<ServeLimits>;
  readonly listen?: Partial<Omit<ListenOptions, 'limits'>>;
}

const SCRIPTS = join(import.meta.dirname, '../../scripts/serve');

/** Serves the store; specs lie below `installers/` in it. Nothing is believed for longer than a request. */
export async function serveStore(store: Store, { site, limits, listen }: ServedOptions = {}): Promise<Served> {
  const own = new AbortController();
  const log: Access[] = [];
  const made = createSite(store, {
    installers: createInstallers(store, 'installers/'),
    executable: async () => ({ source: memorySource('the tool', TOOL.bytes), index: TOOL.plan.index }),
    functions: await readFile(join(SCRIPTS, 'start.sh'), 'utf8'),
    page: {
      style: await readFile(join(SCRIPTS, 'page.css'), 'utf8'),
      behavior: await readFile(join(SCRIPTS, 'page.js'), 'utf8'),
    },
    redirect: undefined,
    withExternal: async (catalog) => withStoredExternal(store, catalog, { signal: own.signal }),
    verify: undefined,
    tool: '1.2.3',
    freshMs: 0,
    now: Date.now,
    signal: own.signal,
    ...site,
  });
  const server = await startServer({
    site: made,
    host: '127.0.0.1',
    port: 0,
    token: undefined,
    publicUrl: undefined,
    tool: '1.2.3',
    limits: { ...DEFAULT_LIMITS, graceMs: 0, ...limits },
    log: (access) => log.push(access),
    now: Date.now,
    ...listen,
  });
  const stop = async (): Promise<unknown> => server.stop();
  return {
    url: server.url,
    port: Number(new URL(server.url).port),
    log,
    stop,
    warm: made.warm,
    [Symbol.asyncDispose]: async () => {
      await stop();
      own.abort();
    },
  };
}

/** Bytes in the package of {@link onePackage}: nothing in them can be deflated. */
const SIZE = 5_000_000;
/** Its address. */
export const FILE = '/dist/r1/alpha-1.0-k1.tar.gz';

/** A store with one package, and the spec `one` that means it. */
export async function onePackage(signal: AbortSignal): Promise<{ readonly box: Tree; readonly store: Store }> {
  const box = await tree();
  const files = [{ path: 'images/a', data: noise(SIZE) }];
  const store = await publishTestPackages(box, [{ name: 'alpha', version: '1.0+k1', files }], signal);
  await keepSpec(box, 'one', specOf({ alpha: 'latest' }));
  return { box, store };
}

/** Keeps a spec as people do: a file below the store. */
export async function keepSpec(box: Tree, id: string, text: string): Promise<void> {
  await mkdir(box.at('store/installers'), { recursive: true });
  await writeFile(box.at('store/installers', `${id}.yaml`), text);
}

/** Sends these bytes and hands back all that comes until the server closes: nothing when it refuses. */
export async function rawRequest(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  const parts: Buffer[] = [];
  socket.on('data', (part: Buffer) => parts.push(part));
  socket.write(bytes);
  await new Promise((resolve) => socket.once('close', resolve));
  return Buffer.concat(parts).toString('latin1');
}
