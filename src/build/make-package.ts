/** Builds one package: fetches the sources of its steps, lays it out, and writes everything. */
import type { Cancellable } from '../core/cancellable.ts';
import type { PlacedEntry } from '../formats/archive/entry.ts';
import { placeArchive, type ArchivePlan } from '../formats/archive/place.ts';
import { openFileSource, readPayload } from '../formats/archive/read.ts';
import { createArchiveWriter, partialPath } from '../formats/archive/write.ts';
import { join } from 'node:path';
import { eachLimited } from '../platform/limit/each.ts';
import { asError, CurlewError, type ErrorCode } from '../core/errors.ts';
import { MANIFEST_LOCK, packagePath } from '../core/layout.ts';
import { PACKAGE_FORMAT, type AddonJson } from '../core/package.ts';
import { compareText, formatRef } from '../core/ref.ts';
import { formatLock, type ManifestLock } from '../manifest/lock.ts';
import type { ImageStep } from '../manifest/step.ts';
import type { SendBlob } from '../formats/oci/image.ts';
import { ownFiles, unlessEmpty } from './package-metadata.ts';
import { placeBlob } from './blobs.ts';
import { isWorthKeeping } from './cache.ts';
import { bytesFile, compile, fileChanged, type CompiledEntry, type ContentFile } from './compile.ts';
import { buildContainers, type ContainerFiles } from './containers/container-files.ts';
import { dockerArchiveFiles } from './docker-archives.ts';
import type { FinishedPackage } from './earlier-package.ts';
import { depsText } from './host-packages/deps.ts';
import { layersOfImage, layoutFiles, packageImageOf, resolveImages, type StepImage } from './images.ts';
import type { BuildPlan } from './plan.ts';
import type { BuildPorts } from './ports.ts';
import { requireLocked, resolveSteps, stepsOf, type Resolved, type ResolveRequest } from './resolve.ts';

export interface PackageRequest extends Pick<ResolveRequest, 'source' | 'steps' | 'scratch' | 'earlier'> {
  readonly plan: BuildPlan;
  /** Path of the package. */
  readonly target: string;
  /** The lock that the package must match. */
  readonly required: ManifestLock | undefined;
}

interface Made extends Pick<FinishedPackage, 'index' | 'addon' | 'lock'> {
  readonly fetched: number;
}

/** Builds the package file. On failure leaves nothing, except resumable files after a network failure. */
export async function makePackage(request: PackageRequest, ports: BuildPorts, { signal }: Cancellable): Promise<Made> {
  const { source, steps, plan, scratch } = request;
  const { ref } = source;
  const images = await resolveImages(stepsOf<ImageStep>(steps, 'image'), ports, {
    root: source.folder,
    arch: plan.arch,
    scratch,
    signal,
  });
  const counter = createCounter(formatRef(ref), images, ports);
  try {
    const { earlier, required } = request;
    const reported = { onBytes: counter.add, onExpected: counter.expect };
    const resolving = { source, steps, arch: plan.arch, scratch, images, earlier, ...reported };
    const resolved = await resolveSteps(resolving, ports, { signal });
    if (required !== undefined) requireLocked(required, resolved.lock, plan.arch);
    for (const { fetched } of resolved.hostPackages) counter.cameOverNetwork(fetched);
    const place = { folder: source.folder, root: source.root, arch: plan.arch };
    const building = { ref, place, scratch, earlier };
    const built = await buildContainers(resolved.containerBuilds, building, ports, { signal });
    const parts = { images, resolved, built, lock: withRequires(resolved.lock, built) };
    const files = await contentFiles(request, parts, ports, { signal });
    const about = describe(request, parts, files, ports.tool);
    const { addon, entries } = await compile(ref, about, files, { pool: ports.pool, scratch, signal });
    const layout = placeArchive(entries.map(({ entry }) => entry));
    await writePackage(request, { layout, entries, images, counter }, ports, { signal });
    counter.done();
    return { addon, lock: parts.lock, index: layout.index, fetched: counter.fetched() };
  } catch (error) {
    counter.failed(asError(error));
    throw error;
  }
}

/** Counts bytes and reports the progress of the package. */
function createCounter(id: string, images: readonly StepImage[], { report }: BuildPorts) {
  const sizes = new Map(images.flatMap(({ image }) => image.layers.map(({ digest, size }) => [digest, size] as const)));
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  let done = 0;
  let fetched = 0;
  let total = bytes === 0 ? undefined : bytes;
  report({ type: 'step-started', id, title: id, bytes: total });
  return {
    add: (count: number): void => {
      done += count;
      report({ type: 'step-progress', id, bytes: done, total });
    },
    expect: (count: number): void => {
      total = (total ?? 0) + count;
      report({ type: 'step-progress', id, bytes: done, total });
    },
    cameOverNetwork: (count: number): void => {
      fetched += count;
    },
    fetched: () => fetched,
    done: (): void => {
      report({ type: 'step-done', id, outcome: 'built' });
    },
    failed: (error: Error): void => {
      report({ type: 'step-failed', id, error });
    },
  };
}

type Counter = ReturnType<typeof createCounter>;

/** Everything in the package apart from the add-on's own files. */
interface Parts {
  readonly images: readonly StepImage[];
  readonly resolved: Resolved;
  /** One for each container build, in their order. */
  readonly built: readonly ContainerFiles[];
  readonly lock: ManifestLock;
}

function withRequires(lock: ManifestLock, built: readonly ContainerFiles[]): ManifestLock {
  const containerBuilds = lock.containerBuilds.map((one, at) => ({ ...one, requires: built[at]?.requires ?? [] }));
  return { ...lock, containerBuilds };
}

/** Names that the operator must install, by operating system: listed in the Manifest, or required by included packages. */
function depsByOs({ lock }: Parts): Readonly<Record<string, readonly string[]>> {
  const { hostPackages, containerBuilds } = lock;
  const folders = new Set([...hostPackages.map(({ os }) => os), ...containerBuilds.map(({ folder }) => folder)]);
  const named = [...folders].map((folder) => {
    const required = hostPackages.filter(({ os }) => os === folder).flatMap((one) => one.required);
    const needed = containerBuilds.filter((one) => one.folder === folder).flatMap(({ requires }) => requires);
    return [folder, [...new Set([...required, ...needed])].toSorted(compareText)] as const;
  });
  return Object.fromEntries(named.filter(([, names]) => names.length > 0));
}

async function contentFiles(
  { source, plan, scratch }: PackageRequest,
  parts: Parts,
  ports: BuildPorts,
  { signal }: Cancellable,
): Promise<readonly ContentFile[]> {
  const { images, resolved, built, lock } = parts;
  const imageFiles =
    plan.imageFormat === 'oci' ? layoutFiles(images) : await dockerArchiveFiles(images, { scratch, ports, signal });
  return [
    ...ownFiles(source).map((file): ContentFile => ({
      ...file,
      content: { kind: 'path', path: join(source.folder, file.path) },
    })),
    bytesFile(MANIFEST_LOCK, formatLock(lock)),
    ...resolved.hostPackages.flatMap(({ files }) => files),
    ...built.flatMap(({ files }) => files),
    ...Object.entries(depsByOs(parts)).map(([os, names]) => bytesFile(packagePath.deps(os), depsText(names))),
    ...resolved.assets.map(({ step, size, digest, path }): ContentFile => ({
      path: packagePath.asset(step.fileName),
      mode: 0o644,
      size,
      digest,
      content: { kind: 'path', path },
    })),
    ...imageFiles,
  ];
}

/** Folders of operating systems that have files, sorted. */
function osFolders(files: readonly ContentFile[], { hostPackages, containerBuilds }: Resolved): readonly string[] {
  const folders = [...hostPackages.map(({ os }) => os), ...containerBuilds.map(({ step }) => step.destination)];
  const filled = folders.filter((folder) => files.some(({ path }) => path.startsWith(`${folder}/`)));
  return [...new Set(filled)].toSorted(compareText);
}

function describe(
  { source, plan }: PackageRequest,
  parts: Parts,
  files: readonly ContentFile[],
  tool: string,
): Omit<AddonJson, 'digest'> {
  const { ref, hooks, requires, fulfills, settings } = source;
  const { images, resolved } = parts;
  const sum = (chosen: readonly ContentFile[]): number => chosen.reduce((total, { size }) => total + size, 0);
  const inImages = files.filter(({ path }) => path.startsWith('images/'));
  return {
    format: PACKAGE_FORMAT,
    ...ref,
    arch: plan.arch,
    os: osFolders(files, resolved),
    hooks,
    images: images.map(packageImageOf),
    imageFormat: plan.imageFormat,
    deps: depsByOs(parts),
    unpacked: { files: sum(files) - sum(inImages), images: sum(inImages) },
    requires,
    fulfills,
    ...unlessEmpty(source),
    settings,
    tool,
  };
}

interface Laid {
  readonly layout: ArchivePlan;
  readonly entries: readonly CompiledEntry[];
  readonly images: readonly StepImage[];
  readonly counter: Counter;
}

async function writePackage(
  { target }: PackageRequest,
  { layout, entries, images, counter }: Laid,
  ports: BuildPorts,
  { signal }: Cancellable,
): Promise<void> {
  const writer = await createArchiveWriter(target, layout, { pool: ports.pool, signal });
  let path = partialPath(target);
  try {
    await eachLimited(
      layout.index.entries.entries(),
      async ([at, placed], { signal }) => {
        const payload = entries[at]?.payload;
        if (payload === undefined || placed.packed === 0) return;
        if (payload.kind === 'member') return writer.putMember(placed, payload.member);
        if (payload.kind === 'member-file') return writer.putMemberFile(placed, payload.path);
        const isBlob = payload.kind === 'blob';
        const send = isBlob ? payload.send : sendFile(payload.path);
        const onBytes = isBlob ? counter.add : (): void => undefined;
        try {
          const request = { writer, entry: placed, send, path: () => path, onBytes };
          const outcome = await placeBlob(request, ports, { signal });
          if (isBlob && outcome !== 'copied') counter.cameOverNetwork(placed.size);
          if (isBlob) await checkLayer(images, placed, { path, ports, signal });
        } catch (error) {
          throw signal.aborted ? error : placingError(payload, placed.path, error);
        }
      },
      { width: entries.length > 64 ? 16 : 8, signal },
    );
    await writer.commit();
    path = target;
  } catch (error) {
    await writer.abandon({ keep: isWorthKeeping(error, signal) });
    throw error;
  }
}

/** Unpacks a blob that has been written, for each image that has it as a layer. */
async function checkLayer(
  images: readonly StepImage[],
  entry: PlacedEntry,
  { path, ports, signal }: { readonly path: string; readonly ports: BuildPorts } & Cancellable,
): Promise<void> {
  const layers = images.flatMap(layersOfImage).filter(({ descriptor }) => descriptor.digest === entry.digest);
  await using file = await openFileSource(path);
  for (const layer of layers) {
    await ports.layers.check(layer, (options) => readPayload(file, entry, options), { signal });
  }
}

/** Errors that mean that a measured file has changed: other bytes, fewer bytes, another file type, or missing. */
const CHANGED: readonly ErrorCode[] = [
  'DIGEST_MISMATCH',
  'FETCH_FAILED',
  'PACKAGE_INVALID',
  'NOT_FOUND',
  'FILE_UNUSABLE',
];

/** Names the source of wrong bytes: the image, or a file that has changed. */
function placingError(payload: CompiledEntry['payload'], path: string, error: unknown): unknown {
  if (!(error instanceof CurlewError)) return error;
  if (payload.kind !== 'blob') return CHANGED.includes(error.code) ? fileChanged(path) : error;
  if (error.code !== 'DIGEST_MISMATCH') return error;
  return error.with({ message: `image ${payload.of}: ${error.message}`, hint: payload.ifAltered });
}

function sendFile(path: string): SendBlob {
  return async ({ from, write, signal }) => {
    await using source = await openFileSource(path);
    for await (const chunk of source.read(from, source.size - from, { signal })) await write(chunk);
    return undefined;
  };
}
