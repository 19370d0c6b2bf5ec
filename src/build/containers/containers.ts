/**
 * Containers for a build: created from an image, given files, attached to, and always removed. Does not mount files of this
 * machine into them; input and output are archive streams. Load this module only when a container is needed: loading the
 * engine client takes longer than a build without changes.
 */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { receiveTar } from '../../formats/archive/receive-tar.ts';
import { sendTar, type SentEntry } from '../../formats/archive/send-tar.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { isObject } from '../../core/json.ts';
import type { PackageFile } from '../../core/package.ts';
import { callError, connectDocker, type Engine } from './docker.ts';
import { createEngineImages, type EngineImages, type ImagesOptions } from './engine-images.ts';
import { buildImage, type ImageBuildRequest } from './image-build.ts';
import { ownLabels, PART, removeContainer, removeLabelled, RUN_LABEL, sweepDeadRuns, tidy } from './left-overs.ts';
import { containerLines, keepLastLines, plainLine, type LastLines } from '../../platform/process/program-lines.ts';
import { withLastLines, withLimit } from './time-limit.ts';

interface Options {
  readonly report: Report;
  readonly signal: AbortSignal;
}

export interface ContainerRequest {
  /** The step of the container's output. */
  readonly id: string;
  /** The operation, for messages. */
  readonly doing: string;
  /** Reference or id of an image in the engine; see `bring`. */
  readonly image: string;
  /** Replaces entry point and command of the image. */
  readonly command?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>>;
  /** Copied in before it starts; paths relative to the container's root. */
  readonly files: readonly SentEntry[];
  readonly limitMs: number;
}

interface CollectOptions {
  /** Empty folder that receives the files. */
  readonly into: string;
  readonly limits: { readonly bytes: number; readonly files: number };
}

/** A container whose program has ended. */
export interface EndedContainer {
  readonly status: number;
  readonly lastLines: readonly string[];
  /**
   * Copies an existing folder of the container (absolute path) out of it. `CONTAINER_FAILED` for anything but regular
   * files, paths that lead outside, and more than the limits.
   */
  readonly collect: (path: string, options: CollectOptions) => Promise<readonly PackageFile[]>;
}

export interface Containers extends AsyncDisposable, Pick<EngineImages, 'bring' | 'identify'> {
  /** Runs a container to its end, then `use`. Always removes the container; after success, at the latest on disposal. */
  readonly run: <Result>(
    request: ContainerRequest,
    use: (ended: EndedContainer) => Promise<Result>,
    options: Options,
  ) => Promise<Result>;
  /** Builds an image, then `use`. Always removes the image and everything created for it. */
  readonly build: <Result>(
    request: ImageBuildRequest & { readonly limitMs: number; readonly bases: ReadonlySet<string> },
    use: (image: Digest) => Promise<Result>,
    options: Options,
  ) => Promise<Result>;
}

export interface ContainersOptions {
  /** For `DOCKER_HOST` and the proxies of containers. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly registry: ImagesOptions['registry'];
  /** The engine's network for containers and builds; default: the engine's default. */
  readonly network?: string | undefined;
  /** Receives warnings about failed cleanup. */
  readonly report: Report;
}

const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'] as const;

/** Proxy variables for containers, except for proxies on this machine's loopback, which containers cannot reach. */
export function proxyVariables(
  env: Readonly<Record<string, string | undefined>>,
  network: string | undefined,
): Readonly<Record<string, string>> {
  const set = PROXIES.flatMap((name) => {
    const value = env[name];
    if (value === undefined || value === '') return [];
    const host = URL.canParse(value) ? new URL(value).hostname : '';
    const isLoopback = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(host);
    return isLoopback && network !== 'host' ? [] : [[name, value] as const];
  });
  return Object.fromEntries(set);
}

/**
 * The containers of one run. Removes leftovers of killed runs on first use. Dispose of it at the end, which also removes
 * pulled images.
 */
export function createContainers({ env, registry, network, report }: ContainersOptions): Containers {
  const engine = connectDocker(env);
  const run = randomBytes(8).toString('hex');
  const images = createEngineImages({ engine, registry, run, report });
  const proxies = proxyVariables(env, network);
  const removals = new Set<Promise<void>>();
  let parts = 0;
  let begun: Promise<void> | undefined;
  const begin = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    // Not the caller's signal, because other callers also wait for it.
    begun ??= tidy(report, async (own) => sweepDeadRuns(engine, Date.now, own));
    await begun;
    signal.throwIfAborted();
  };
  const partLabels = () => ({ ...ownLabels(run), [PART]: `${run}.${(parts += 1)}` });
  return {
    bring: async (reference, options) => {
      await begin(options.signal);
      return images.bring(reference, options);
    },
    identify: images.identify,
    run: async (request, use, options) => {
      await begin(options.signal);
      if (removals.size >= REMOVALS_AT_ONCE) await Promise.race(removals);
      const removeLater = (name: string): void => {
        const removal = removeNow(engine, report, name).then(() => {
          removals.delete(removal);
        });
        removals.add(removal);
      };
      const container = { engine, labels: partLabels(), network, proxies, removeLater };
      return withLimit(request, options.signal, async (signal) =>
        runContainer(request, use, container, { ...options, signal }),
      );
    },
    build: async (request, use, { report, signal }) => {
      await begin(signal);
      const { bases, limitMs } = request;
      const built = await withLimit({ ...request, limitMs }, signal, async (limited) =>
        buildImage(
          { ...request, args: { ...proxies, ...request.args } },
          { engine, labels: partLabels(), bases, network, report, signal: limited },
        ),
      );
      try {
        return await use(built.image);
      } finally {
        await built.remove();
      }
    },
    [Symbol.asyncDispose]: async () => {
      if (begun === undefined) return;
      await Promise.all(removals);
      await tidy(report, async (signal) => {
        await images.release(signal);
        await removeLabelled(engine, RUN_LABEL, run, signal);
      });
    },
  };
}

/** Removals are slow: creating more containers waits. */
const REMOVALS_AT_ONCE = 8;

interface ContainerOf {
  readonly engine: Engine;
  readonly labels: Readonly<Record<string, string>>;
  readonly network: string | undefined;
  readonly proxies: Readonly<Record<string, string>>;
  /** Starts removing a container without waiting. */
  readonly removeLater: (name: string) => void;
}

async function removeNow(engine: Engine, report: Report, name: string): Promise<void> {
  await tidy(report, async (signal) => removeContainer(engine, name, signal));
}

async function runContainer<Result>(
  request: ContainerRequest,
  use: (ended: EndedContainer) => Promise<Result>,
  { engine, labels, network, proxies, removeLater }: ContainerOf,
  { report, signal }: Options,
): Promise<Result> {
  const { doing } = request;
  const name = `curlew-${(labels[PART] ?? '').replace('.', '-')}`;
  const at = `/containers/${name}`;
  const last = keepLastLines();
  try {
    const body = containerBody(request, { labels, network, proxies });
    // Not canceled: otherwise it would be unknown whether the container exists.
    await engine.request(
      { doing, method: 'POST', path: '/containers/create', query: { name }, body },
      { signal: AbortSignal.timeout(CREATE_MS) },
    );
    signal.throwIfAborted();
    const status = await runToEnd(engine, request, { at, last, report, signal });
    const result = await use({
      status,
      lastLines: last.lines(),
      collect: async (path, options) => collect(engine, { doing, at, path }, options, signal),
    });
    removeLater(name);
    return result;
  } catch (error) {
    await removeNow(engine, report, name);
    throw withLastLines(error, last.lines(), signal);
  }
}

function containerBody(
  { image, command, env = {} }: ContainerRequest,
  { labels, network, proxies }: Pick<ContainerOf, 'labels' | 'network' | 'proxies'>,
): Readonly<Record<string, unknown>> {
  return {
    Image: image,
    ...(command === undefined ? {} : { Entrypoint: [], Cmd: command }),
    Env: Object.entries({ ...proxies, ...env }).map(([variable, value]) => `${variable}=${value}`),
    Labels: labels,
    // The engine keeps no log, since the output is read directly, and an endless log would fill the disk.
    HostConfig: { LogConfig: { Type: 'none' }, ...(network === undefined ? {} : { NetworkMode: network }) },
  };
}

/** Copies the files, starts the program, reports its output, and returns its status. */
async function runToEnd(
  engine: Engine,
  { id, doing, files }: ContainerRequest,
  { at, last, report, signal }: Options & { readonly at: string; readonly last: LastLines },
): Promise<number> {
  const archive = { doing, method: 'PUT', path: `${at}/archive`, query: { path: '/' } } as const;
  await engine.request({ ...archive, body: Readable.from(sendTar(files, { signal })) }, { signal });
  const query = { stream: true, stdout: true, stderr: true };
  const attached = await engine.open({ doing, method: 'POST', path: `${at}/attach`, query }, { signal });
  await engine.request({ doing, method: 'POST', path: `${at}/start` }, { signal });
  try {
    for await (const line of containerLines(attached.body)) {
      const text = plainLine(line);
      last.add(text);
      report({ type: 'step-log', id, text });
    }
  } catch (error) {
    throw callError(doing, error, signal);
  }
  const { value } = await engine.request({ doing, method: 'POST', path: `${at}/wait` }, { signal });
  return isObject(value) && typeof value['StatusCode'] === 'number' ? value['StatusCode'] : 1;
}

const CREATE_MS = 120_000;

async function collect(
  engine: Engine,
  { doing, at, path }: { readonly doing: string; readonly at: string; readonly path: string },
  { into, limits }: CollectOptions,
  signal: AbortSignal,
): Promise<readonly PackageFile[]> {
  const request = { doing, method: 'GET', path: `${at}/archive`, query: { path }, expected: [404] } as const;
  const { status, body } = await engine.open(request, { signal });
  const refuse = (what: string, hint?: string): CurlewError =>
    new CurlewError('CONTAINER_FAILED', `cannot ${doing}: copying ${path} from the container failed: ${what}`, {
      hint,
    });
  if (status === 404) {
    body.destroy();
    throw refuse('it does not exist');
  }
  try {
    return await receiveTar(body, { top: path.slice(path.lastIndexOf('/') + 1), into, limits, refuse, signal });
  } catch (error) {
    signal.throwIfAborted();
    const broken = errnoOf(error) === 'ECONNRESET' || errnoOf(error) === 'EPIPE';
    throw broken ? callError(doing, error, signal) : fileError(doing, error);
  }
}
