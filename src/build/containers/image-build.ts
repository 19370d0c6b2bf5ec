/**
 * Builds an image with the engine's classic builder: its intermediate containers and images are in the engine, so labels find
 * them, and its log has a line for each step.
 */
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { sendTar, type SentEntry } from '../../formats/archive/send-tar.ts';
import { isDigest, type Digest } from '../../core/digest.ts';
import { asError, CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { fieldsOf, isObject } from '../../core/json.ts';
import { callError, type Engine } from './docker.ts';
import type { Dockerfile } from './dockerfile.ts';
import { labelled } from './dockerfile.ts';
import {
  killLabelled,
  listImages,
  PART,
  removeBuiltImages,
  removeLabelled,
  RUN_LABEL,
  tidy,
  type ContainerLabels,
  type EngineObject,
} from './left-overs.ts';
import { keepLastLines, linesOf, plainLine, quoteLines, type LastLines } from '../../platform/process/program-lines.ts';
import { withLastLines } from './time-limit.ts';

export interface ImageBuildRequest {
  /** The step of the log lines. */
  readonly id: string;
  /** The operation, for messages. */
  readonly doing: string;
  readonly dockerfile: Dockerfile;
  /** The files for `COPY` and `ADD`. */
  readonly context: readonly SentEntry[];
  readonly args: Readonly<Record<string, string>>;
  /** `linux/arm64`, if it is not the engine's platform. */
  readonly platform?: string | undefined;
}

export interface ImageBuildOptions {
  readonly engine: Engine;
  /** The labels of this build, including {@link PART}. */
  readonly labels: ContainerLabels;
  /** Ids of the base images. */
  readonly bases: ReadonlySet<string>;
  readonly network: string | undefined;
  readonly report: Report;
  /** Cancels the build once the engine is idle. */
  readonly signal: AbortSignal;
}

/** A canceled build ends its steps one after the other; after this time it closes the connection instead. */
const CUT_MS = 10_000;
const KILL_EVERY_MS = 100;
const LINE_LIMIT = 1 << 20;

/** State of reading the log. */
interface Log {
  image: Digest | undefined;
  /** Number and text of the running step, as numbered in the Dockerfile. */
  step: { readonly number: number; readonly text: string } | undefined;
  /** Number of added labels so far: steps for the engine, but not in the Dockerfile. */
  hidden: number;
  /** A base image has added steps (ONBUILD). */
  triggers: boolean;
  readonly last: LastLines;
}

/**
 * Builds the image; returns its id, and a function that removes it with everything created for it. After a failure or an
 * abort nothing is left. A failed step is `CONTAINER_FAILED` with the step and its last lines.
 */
export async function buildImage(
  request: ImageBuildRequest,
  options: ImageBuildOptions,
): Promise<{ readonly image: Digest; readonly remove: () => Promise<void> }> {
  const { engine, labels, bases, report, signal } = options;
  const log: Log = { image: undefined, step: undefined, hidden: 0, triggers: false, last: keepLastLines() };
  const known = new Set((await listImages(engine, signal)).map(({ id }) => id));
  const remove = async (): Promise<void> =>
    tidy(report, async (later) => {
      const part = labels[PART] ?? '';
      for (let again = true; again;) again = (await removeLabelled(engine, PART, part, later)).found;
      if (log.triggers) await removeTriggered(engine, { bases, known }, later);
    });
  try {
    await runBuild(request, log, options);
    if (log.image === undefined)
      throw new CurlewError('CONTAINER_FAILED', `cannot ${request.doing}: the engine returned no image`);
    return { image: log.image, remove };
  } catch (error) {
    await remove();
    throw withLastLines(withOwnLines(error, request.dockerfile, log), log.last.lines(), signal);
  }
}

/**
 * Removes the images of steps that a base image adds (ONBUILD). They run before the label is set, and the log does not name
 * their images: new images without a name that descend from a base.
 */
async function removeTriggered(
  engine: Engine,
  { bases, known }: { readonly bases: ReadonlySet<string>; readonly known: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<void> {
  const fresh = (await listImages(engine, signal)).filter(({ id, named }) => !known.has(id) && !named);
  const ids = new Set<string>(bases);
  const ours: EngineObject[] = [];
  for (let before = -1; before < ours.length;) {
    before = ours.length;
    for (const image of fresh) {
      if (ids.has(image.id) || !ids.has(image.parent)) continue;
      ids.add(image.id);
      ours.push(image);
    }
  }
  await removeBuiltImages(engine, ours, signal);
}

/** Maps the line of an error before the first step to the original Dockerfile: the builder names lines of the labelled text. */
function withOwnLines(error: unknown, dockerfile: Dockerfile, { step }: Log): unknown {
  if (!(error instanceof CurlewError) || error.code !== 'CONTAINER_FAILED' || step !== undefined) return error;
  const message = error.message.replaceAll(
    /\bline (\d+)/g,
    (_, line: string) => `line ${dockerfile.lineOf(Number(line))}`,
  );
  return error.with({ message });
}

async function runBuild(request: ImageBuildRequest, log: Log, options: ImageBuildOptions): Promise<void> {
  const { engine, signal } = options;
  const { doing, dockerfile, context, args, platform } = request;
  signal.throwIfAborted();
  const name = `.curlew-${options.labels[PART] ?? ''}.Dockerfile`;
  const text = labelled(dockerfile, options.labels);
  const size = Buffer.byteLength(text);
  const file: SentEntry = {
    kind: 'file',
    path: name,
    mode: 0o644,
    size,
    content: { kind: 'bytes', data: Buffer.from(text) },
  };
  const query = {
    dockerfile: name,
    buildargs: args,
    rm: true,
    forcerm: true,
    // No cache, so that all images in the log were created by this build.
    nocache: true,
    ...(options.network === undefined ? {} : { networkmode: options.network }),
    ...(platform === undefined ? {} : { platform }),
  };
  const body = Readable.from(sendTar([...context, file], { signal }));
  const cut = new AbortController();
  const stop = endSteps(options, cut);
  try {
    const answer = await engine.open({ doing, method: 'POST', path: '/build', query, body }, { signal: cut.signal });
    await readLog(answer.body, request, log, options);
    signal.throwIfAborted();
  } catch (error) {
    throw callError(doing, error, signal);
  } finally {
    await stop();
  }
}

/** After an abort, ends the container of each step until the builder stops, so that nothing continues unnoticed. */
function endSteps({ engine, labels, signal }: ImageBuildOptions, cut: AbortController): () => Promise<void> {
  const over = new AbortController();
  let loop: Promise<void> | undefined;
  const begin = (): void => {
    const limit = AbortSignal.timeout(CUT_MS);
    const quiet = AbortSignal.any([limit, over.signal]);
    limit.addEventListener('abort', () => {
      cut.abort(signal.reason);
    });
    loop = (async () => {
      while (!quiet.aborted) {
        await killLabelled(engine, PART, labels[PART] ?? '', limit).catch(() => undefined);
        await pause(KILL_EVERY_MS, undefined, { signal: quiet }).catch(() => undefined);
      }
    })();
  };
  signal.addEventListener('abort', begin, { once: true });
  return async () => {
    over.abort();
    signal.removeEventListener('abort', begin);
    await loop;
  };
}

async function readLog(
  body: AsyncIterable<Uint8Array>,
  { id, doing, dockerfile }: ImageBuildRequest,
  log: Log,
  { report }: ImageBuildOptions,
): Promise<void> {
  let pending = '';
  for await (const line of linesOf(body, { limit: LINE_LIMIT })) {
    const value = parseLine(line);
    const { stream, aux, error } = value;
    if (typeof error === 'string') throw buildError(doing, error, log);
    if (isObject(aux) && typeof aux['ID'] === 'string' && isDigest(aux['ID'])) log.image = aux['ID'];
    if (typeof stream !== 'string') continue;
    const pieces = (pending + stream).split('\n');
    pending = (pieces.pop() ?? '').slice(0, LINE_LIMIT);
    for (const piece of pieces) {
      const message = readLine(plainLine(piece), log, dockerfile);
      if (message === undefined) continue;
      if (message.isStep) log.last.clear();
      else log.last.add(message.text);
      report({ type: 'step-log', id, text: message.text });
    }
  }
}

function parseLine(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    return fieldsOf(value);
  } catch (error) {
    throw asError(error);
  }
}

/** Processes one line of the log; returns the text to report, if any. */
function readLine(
  line: string,
  log: Log,
  { bases }: Dockerfile,
): { readonly text: string; readonly isStep: boolean } | undefined {
  const [, number, total, text] = /^Step (\d+)\/(\d+) : (.*)$/.exec(line) ?? [];
  if (number !== undefined && total !== undefined && text !== undefined) {
    if (text.startsWith(`LABEL ${RUN_LABEL}=`)) {
      log.hidden += 1;
      return undefined;
    }
    log.step = { number: Number(number) - log.hidden, text };
    return { text: `step ${log.step.number} of ${Number(total) - bases.length}: ${text}`, isStep: true };
  }
  if (/^# Executing \d+ build trigger/.test(line)) log.triggers = true;
  if (/^ ---> |^Removing intermediate container |^Successfully (?:built|tagged) /.test(line)) return undefined;
  return { text: line, isStep: false };
}

function buildError(doing: string, error: string, { step, last }: Log): CurlewError {
  const hint = /buildkit|--mount|heredoc/i.test(error)
    ? "the engine's classic builder is used, which does not support RUN --mount and here-documents"
    : undefined;
  const where = step === undefined ? '' : `step ${step.number}, ${step.text.slice(0, 200)}: `;
  const message = `cannot ${doing}: ${where}${error.slice(0, 2000).trim()}${quoteLines(last.lines())}`;
  return new CurlewError('CONTAINER_FAILED', message, { hint });
}
