/**
 * Worker thread that reads specs and plans bundles, so that many specs and long tables of contents do not block other requests of
 * the server.
 * Reads the store through the server, which has the connections, the credentials and the limits.
 */
import { parentPort, type MessagePort } from 'node:worker_threads';
import { memorySource, readTocText } from '../../formats/archive/read.ts';
import { planSplice, type Segment, type SplicePlan } from '../../formats/archive/splice.ts';
import {
  checkSettings,
  openIndex,
  openPackages,
  readPackageAddon,
  readSchemas,
  type OpenOptions,
} from '../bundle/open-packages.ts';
import { planFrom } from '../bundle/plan-from.ts';
import { checkPackage } from '../bundle/bundle-plan.ts';
import { digestOf } from '../../core/digest.ts';
import { asError } from '../../core/errors.ts';
import { prefixOf } from '../../core/layout.ts';
import { storeSource, type SourceStore } from '../store/source.ts';
import { blobTable } from './blob-table.ts';
import { readSpecText } from './installers.ts';
import { specOfChoice } from './page/choice.ts';
import {
  errorOf,
  errorParts,
  type BlobsJob,
  type BundleJob,
  type DescribeJob,
  type Description,
  type FoundBlobs,
  type FromPlanner,
  type Layout,
  type PackagesJob,
  type PlanJob,
  type PlanOrder,
  type PlanResult,
  type StoreAnswer,
  type StoreQuestion,
  type ToPlanner,
} from './plan-protocol.ts';

interface Waiting {
  readonly resolve: (answer: StoreAnswer) => void;
  readonly reject: (error: Error) => void;
}

/** The store at the other end of a port. The signal is aborted when the server closes the port. */
function storeOfPort(
  port: MessagePort,
  { address, place }: PlanOrder['store'],
): { readonly store: SourceStore; readonly signal: AbortSignal } {
  const gone = new AbortController();
  const waiting = new Map<number, Waiting>();
  let last = 0;
  const ask = async (question: StoreQuestion): Promise<StoreAnswer> => {
    gone.signal.throwIfAborted();
    last += 1;
    const id = last;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      port.postMessage({ type: 'ask', id, question } satisfies FromPlanner);
    });
  };
  port.on('message', (message: ToPlanner) => {
    const one = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.type === 'answer') one?.resolve(message.answer);
    else one?.reject(errorOf(message.error));
  });
  port.once('close', () => {
    gone.abort();
    for (const { reject } of waiting.values()) reject(asError(gone.signal.reason));
  });
  const store: SourceStore = {
    address,
    place,
    head: async (key) => {
      const answer = await ask({ kind: 'head', key });
      return answer.object;
    },
    get: async (key, { range = { offset: 0, length: 0 }, ifMatch }) => {
      const answer = await ask({ kind: 'get', key, range, ifMatch });
      if (answer.kind !== 'get') throw new Error(`requested bytes of ${key}, but received its head`);
      return { ...answer.object, body: oneChunk(answer.data) };
    },
  };
  return { store, signal: gone.signal };
}

async function* oneChunk(data: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  if (data.byteLength > 0) yield data;
}

async function planBundleJob(job: BundleJob, store: SourceStore, options: OpenOptions): Promise<Layout> {
  // Only the server reads its bytes.
  const open = { index: job.executable, source: memorySource('the tool for nodes', new Uint8Array(0)) };
  await using planned = await planFrom(store, job.installer, {
    ...job,
    ...options,
    executable: async () => ({ ...open, [Symbol.asyncDispose]: async () => undefined }),
  });
  return layoutOf(
    planned.plan.splice,
    planned.sources.map(({ object }) => object),
  );
}

async function planPackagesJob({ resolved }: PackagesJob, store: SourceStore, options: OpenOptions): Promise<Layout> {
  const packages = await openPackages(store, resolved, options);
  for (const one of packages) checkPackage(one.resolved, one.index);
  const splice = planSplice(packages.map(({ index }, source) => ({ kind: 'archive', source, index })));
  return layoutOf(
    splice,
    packages.map(({ source }) => source.object),
  );
}

async function findBlobs({ key, prefix }: BlobsJob, store: SourceStore, options: OpenOptions): Promise<FoundBlobs> {
  const { source, index } = await openIndex(store, key, options);
  return { object: source.object, blobs: blobTable(index.entries, prefix) };
}

/** Most files of a package in its description. */
const MAX_FILES = 1000;
/** Larger schemas are not checked either. */
const MAX_SCHEMA = 128 * 1024;

async function describePackage(
  { resolved }: DescribeJob,
  store: SourceStore,
  options: OpenOptions,
): Promise<Description> {
  const [opened] = await openPackages(store, [resolved], options);
  if (opened === undefined) throw new Error('one package was opened');
  checkPackage(resolved, opened.index);
  const { settings, ...addon } = await readPackageAddon(opened, options);
  const prefix = prefixOf(resolved);
  const files = opened.index.entries
    .map(({ path, size }) => ({ path: path.slice(prefix.length), size }))
    .filter(({ path }) => !path.startsWith('images/'));
  const schema = JSON.stringify(settings ?? null).length > MAX_SCHEMA ? undefined : settings;
  return { addon: { ...addon, settings: schema }, files: files.slice(0, MAX_FILES), count: files.length };
}

function layoutOf({ segments, size, index }: SplicePlan, sources: Layout['sources']): Layout {
  return { size, tocDigest: index.tocDigest, segments: mergeBytes(segments), sources };
}

/** Merges adjacent segments of bytes, and moves all bytes to one buffer. */
function mergeBytes(segments: readonly Segment[]): readonly Segment[] {
  const total = segments.reduce((sum, one) => sum + (one.kind === 'bytes' ? one.data.byteLength : 0), 0);
  const memory = new Uint8Array(total);
  const merged: Segment[] = [];
  let done = 0;
  for (const segment of segments) {
    if (segment.kind === 'range') {
      merged.push(segment);
      continue;
    }
    memory.set(segment.data, done);
    const last = merged.at(-1);
    const start = last?.kind === 'bytes' ? last.data.byteOffset : done;
    done += segment.data.byteLength;
    const data = memory.subarray(start, done);
    if (last?.kind === 'bytes') merged[merged.length - 1] = { ...last, data };
    else merged.push({ at: segment.at, kind: 'bytes', data });
  }
  return merged;
}

async function perform(job: PlanJob, store: SourceStore, options: OpenOptions): Promise<PlanResult> {
  switch (job.kind) {
    case 'bundle':
      return planBundleJob(job, store, options);
    case 'packages':
      return planPackagesJob(job, store, options);
    case 'settings': {
      const packages = await openPackages(store, job.resolved, options);
      return checkSettings(await readSchemas(job.installer, packages, options), options);
    }
    case 'blobs':
      return findBlobs(job, store, options);
    case 'toc':
      return digestOf(await readTocText(storeSource(store, job.object), options));
    case 'describe':
      return describePackage(job, store, options);
    case 'spec':
      return readSpecText(job.data, job.name);
    case 'choice':
      return specOfChoice(job.choice);
  }
}

/** The buffers of a result, to transfer with it. */
function memoryOf(result: PlanResult): readonly ArrayBuffer[] {
  if (typeof result !== 'object') return [];
  const buffers = new Set<ArrayBufferLike>();
  if ('blobs' in result) buffers.add(result.blobs.digests.buffer).add(result.blobs.places.buffer);
  if ('segments' in result) {
    for (const segment of result.segments) if (segment.kind === 'bytes') buffers.add(segment.data.buffer);
  }
  return [...buffers].filter((memory) => memory instanceof ArrayBuffer);
}

parentPort?.on('message', ({ job, store: known, maxTocBytes, port }: PlanOrder) => {
  const { store, signal } = storeOfPort(port, known);
  const answer = (message: FromPlanner, moved: readonly ArrayBuffer[] = []): void => port.postMessage(message, moved);
  perform(job, store, { maxTocBytes, signal }).then(
    (result) => answer({ type: 'done', result }, memoryOf(result)),
    (error: unknown) => answer({ type: 'failed', error: errorParts(error) }),
  );
});
