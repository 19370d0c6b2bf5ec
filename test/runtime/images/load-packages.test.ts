import type { Digest } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import type { ProgressEvent } from '../../../src/core/events.ts';
import { FailedImages } from '../../../src/runtime/images/failed-images.ts';
import type { ImageRuntime } from '../../../src/runtime/images/image-runtime.ts';
import { loadPackages, type PackageImages } from '../../../src/runtime/images/load-packages.ts';
import type { RequiredImage } from '../../../src/runtime/images/required-images.ts';
import { createKeyedMutex } from '../../../src/platform/limit/keyed-mutex.ts';
import { createSemaphore } from '../../../src/platform/limit/semaphore.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';

const test = suite('images of packages');
const digest: Digest = `sha256:${'a'.repeat(64)}`;
const names = ['quay.io/shop/web:1', 'quay.io/shop/db:2'];
const packages: readonly PackageImages[] = names.map((name) => {
  const form = async (): Promise<never> => Promise.reject(new Error('not to be read'));
  return { id: name, title: name, images: [{ reference: name, names: [name], digest, form }] };
});

/** It has all images. */
function complete(protect: ImageRuntime['protect']): ImageRuntime {
  return {
    name: 'containerd',
    width: 2,
    namesOf: async (image: { readonly names: readonly string[] }) => image.names,
    lookUp: async () => new Map(names.map((name) => [name, { id: digest, ready: true, complete: true }])),
    isImage: async () => true,
    protect,
  } as unknown as ImageRuntime;
}

const refuses = complete(async () =>
  Promise.reject(new CurlewError('IMAGE_LOAD_FAILED', 'cannot pin the images: ctr: image not found')),
);

test('all images are protected once they are there, also those that an attempt before has loaded', async () => {
  const seen: string[] = [];
  const runtime = complete(async (given) => void seen.push(...given));
  await loadPackages(runtime, packages, { report: noReport, signal: never });
  assert.equal(seen, names);
});

test('where images cannot be protected, the load succeeds with a warning', async () => {
  const events: ProgressEvent[] = [];
  const report = (event: ProgressEvent): void => void events.push(event);
  const loaded = await loadPackages(refuses, packages, { report, signal: never });
  assert.is(loaded.length, 2);
  const notes = events.filter((event) => event.type === 'note');
  assert.is(notes.length, 1);
  assert.is(notes[0]?.level, 'warning');
  assert.match(notes[0]?.text ?? '', /^cannot pin the images: ctr: image not found; a kubelet/);
});

test('the failure of an image is the error, also where images cannot be protected', async () => {
  const full = new CurlewError('NO_SPACE', 'no space left on device');
  const around = async (one: PackageImages): Promise<never> => {
    throw new FailedImages([full.with({ message: `${one.title}: ${full.message}` })]);
  };
  const load = loadPackages(refuses, packages, { report: noReport, around, signal: never });
  const error = await assert.rejectsWith(load, 'NO_SPACE', /^quay\.io\/shop\/web:1: no space left on device; /);
  assert.ok(error instanceof FailedImages);
  // What is loaded is pinned before.
  const seen: string[] = [];
  const runtime = complete(async (given) => void seen.push(...given));
  await assert.rejectsWith(loadPackages(runtime, packages, { report: noReport, around, signal: never }), 'NO_SPACE');
  assert.equal(seen, names);
});

test('a cancellation while images are protected is no warning', async () => {
  const stop = new AbortController();
  const runtime = complete(async () => {
    stop.abort();
    return Promise.reject(new CurlewError('IMAGE_LOAD_FAILED', 'ctr was terminated'));
  });
  const load = loadPackages(runtime, packages, { report: noReport, signal: stop.signal });
  assert.is(await load.catch((error: unknown) => (error as Error).name), 'AbortError');
});

test('names that a failed load has made of an incomplete image are removed, and no others', async () => {
  const web = { reference: names[0] ?? '', names: [names[0] ?? '', 'quay.io/shop/web:stable', 'quay.io/shop/web:old'] };
  const form = async () => ({ kind: 'archive', layers: 1, bytes: 1, open: () => ReadableStream.from([]) });
  const image = { ...web, digest, form } as unknown as RequiredImage;
  const known = new Map([['quay.io/shop/web:old', { id: digest, ready: false, complete: false }]]);
  const removed: string[] = [];
  const runtime = {
    ...complete(async () => undefined),
    loads: createSemaphore(1),
    layers: createKeyedMutex(),
    lookUp: async (asked: readonly string[]) => new Map([...known].filter(([name]) => asked.includes(name))),
    listContent: async () => () => new Set(),
    importTar: async () => {
      known.set(web.reference, { id: digest, ready: false, complete: false });
      known.set('quay.io/shop/web:stable', { id: digest, ready: false, complete: true });
      throw new CurlewError('IMAGE_INVALID', 'a blob is not the file that its package contains');
    },
    remove: async (some: readonly string[]) => {
      removed.push(...some);
      return { removed: some, used: [] };
    },
  } as unknown as ImageRuntime;
  const load = loadPackages(runtime, [{ id: 'web', title: 'web', images: [image] }], {
    report: noReport,
    signal: never,
  });
  await assert.rejectsWith(load, 'IMAGE_INVALID', /not the file that its package contains/);
  assert.equal(removed, [web.reference]);
});

test.run();
