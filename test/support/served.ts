/** A server over a folder store, as `curlew serve` starts one, and requests as raw as a test wants them. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { memorySource } from '../../src/archive/read.ts';
import type { Access } from '../../src/serve/access.ts';
import { createInstallers } from '../../src/serve/installers.ts';
import { DEFAULT_LIMITS, startServer, type ListenOptions, type ServeLimits } from '../../src/serve/server.ts';
import { createSite, type SiteOptions } from '../../src/serve/site.ts';
import type { Store } from '../../src/store/store.ts';
import { TOOL } from './bundles.ts';
import type { Tree } from './tree.ts';

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

const START = join(import.meta.dirname, '../../scripts/serve/start.sh');

/** Serves the store; specs lie below `installers/` in it. Nothing is believed for longer than a request. */
export async function serveStore(store: Store, { site, limits, listen }: ServedOptions = {}): Promise<Served> {
  const own = new AbortController();
  const log: Access[] = [];
  const made = createSite(store, {
    installers: createInstallers(store, 'installers/'),
    executable: async () => ({ source: memorySource('the tool', TOOL.bytes), index: TOOL.plan.index }),
    functions: await readFile(START, 'utf8'),
    redirect: undefined,
    prove: undefined,
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
