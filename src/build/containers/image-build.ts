/**
 * Builds an image with the engine's classic builder: its intermediate containers and images are the engine's own, so
 * labels find them, and its log has a line for each step.
 */
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { sendTar, type SentEntry } from '../../formats/archive/send-tar.ts';
import { isDigest, type Digest } from '../../core/digest.ts';
import { asError, CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { isObject } from '../../core/json.ts';
import { callError, type Engine } from './docker.ts';
import type { Dockerfile } from './dockerfile.ts';
import { labelled } from './dockerfile.ts';
import {
  killLabelled,
  listImages,
  PART,
  removeImages,
  removeLabelled,
  RUN,
  tidy,
  type Labels,
  type Thing,
} from './left-overs.ts';
import { keepLastLines, linesOf, plainLine, quoteLines, type LastLines } from '../../platform/process/program-lines.ts';
import { withLastLines } from './time-limit.ts';

export interface ImageBuildRequest {
  /** The step that lines of the log belong to. */
  readonly id: string;
  /** What is being done, for messages. */
  readonly doing: string;
  readonly dockerfile: Dockerfile;
  /** What `COPY` and `ADD` can see. */
  readonly context: readonly SentEntry[];
  readonly args: Readonly<Record<string, string>>;
  /** `linux/arm64`, when it is not the engine's own. */
  readonly platform?: string | undefined;
}

export interface ImageBuildOptions {
  readonly engine: Engine;
  /** The labels of this build: they have one under {@link PART}. */
  readonly labels: Labels;
  /** Ids of the images that it starts from. */
  readonly bases: ReadonlySet<string>;
  readonly network: string | undefined;
  readonly report: Report;
  /** Ends the build at the next moment at which the engine is known to be quiet. */
  readonly signal: AbortSignal;
}

/** Once a build is cancelled, its steps are ended one after another; after this long the connection is cut instead. */
const CUT_MS = 10_000;
const KILL_EVERY_MS = 100;
const LINE_LIMIT = 1 << 20;

/** What has been read of the log. */
interface Log {
  image: Digest | undefined;
  /** Number and text of the step that runs, as the Dockerfile counts them. */
  step: { readonly number: number; readonly text: string } | undefined;
  /** Labels added so far; they are steps to the engine, but not to the reader of the Dockerfile. */
  hidden: number;
  /** A base image has brought steps along. */
  triggers: boolean;
  readonly last: LastLines;
}

/**
 * Builds the image and hands back its id and how to remove it with all that was made on the way. After a failure or an
 * abort nothing of it is left. A step that fails is `CONTAINER_FAILED` with the step and its last lines.
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
      throw new CurlewError('CONTAINER_FAILED', `${request.doing}: the engine gave no image`);
    return { image: log.image, remove };
  } catch (error) {
    await remove();
    throw withLastLines(withOwnLines(error, request.dockerfile, log), log.last.lines(), signal);
  }
}

/**
 * Steps that a base image brings along (ONBUILD) come before the label, and the log does not name what they make: images
 * that are new, have no name, and come from a base.
 */
async function removeTriggered(
  engine: Engine,
  { bases, known }: { readonly bases: ReadonlySet<string>; readonly known: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<void> {
  const fresh = (await listImages(engine, signal)).filter(({ id, named }) => !known.has(id) && !named);
  const found = new Set<string>(bases);
  const ours: Thing[] = [];
  for (let before = -1; before < ours.length;) {
    before = ours.length;
    for (const image of fresh) {
      if (found.has(image.id) || !found.has(image.parent)) continue;
      found.add(image.id);
      ours.push(image);
    }
  }
  await removeImages(engine, ours, signal);
}

/** A mistake that the builder finds before the first step is told with a line of what it was sent. */
function withOwnLines(error: unknown, dockerfile: Dockerfile, { step }: Log): unknown {
  if (!(error instanceof CurlewError) || error.code !== 'CONTAINER_FAILED' || step !== undefined) return error;
  const { code, message, hint, cause } = error;
  const text = message.replaceAll(/\bline (\d+)/g, (_, line: string) => `line ${dockerfile.lineOf(Number(line))}`);
  return new CurlewError(code, text, { hint, cause });
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
    // Nothing is taken from earlier builds, so that what the log names was made by this one.
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

/** From an abort on, ends the container of whatever step runs, until the builder gives up: then nothing goes on unseen. */
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
      const said = readLine(plainLine(piece), log, dockerfile);
      if (said === undefined) continue;
      if (said.isStep) log.last.clear();
      else log.last.add(said.text);
      report({ type: 'step-log', id, text: said.text });
    }
  }
}

function parseLine(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : {};
  } catch (error) {
    throw asError(error);
  }
}

/** Takes one line of the log in; what is to be told of it, if anything. */
function readLine(
  line: string,
  log: Log,
  { bases }: Dockerfile,
): { readonly text: string; readonly isStep: boolean } | undefined {
  const [, number, total, text] = /^Step (\d+)\/(\d+) : (.*)$/.exec(line) ?? [];
  if (number !== undefined && total !== undefined && text !== undefined) {
    if (text.startsWith(`LABEL ${RUN}=`)) {
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
    ? 'containers are built by the classic builder of the engine, which knows no RUN --mount and no here-documents'
    : undefined;
  const where = step === undefined ? '' : `step ${step.number}, ${step.text.slice(0, 200)}: `;
  const message = `${doing}: ${where}${error.slice(0, 2000).trim()}${quoteLines(last.lines())}`;
  return new CurlewError('CONTAINER_FAILED', message, { hint });
}
