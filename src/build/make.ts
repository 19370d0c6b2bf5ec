/** Makes one package: fetch what its steps name, lay it out, put everything to its place. */
import type { ArchiveIndex } from '../archive/entry.ts';
import { placeArchive, type ArchivePlan } from '../archive/place.ts';
import { createArchiveWriter, partialPath } from '../archive/write.ts';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { eachLimited, mapLimited } from '../core/each.ts';
import { asError, CurlewError } from '../core/errors.ts';
import { MANIFEST_LOCK, packagePath } from '../core/layout.ts';
import { PACKAGE_FORMAT, type AddonJson } from '../core/package.ts';
import { formatRef } from '../core/ref.ts';
import { formatLock } from '../manifest/lock.ts';
import type { AddonSource } from '../manifest/read-addon.ts';
import type { AssetStep, ImageStep, Step } from '../manifest/step.ts';
import type { SendBlob } from '../registry/image.ts';
import { depsOf, osFolders, ownFiles } from './about.ts';
import { fetchAsset, type FetchedAsset } from './assets.ts';
import { placeBlob } from './blobs.ts';
import { isWorthKeeping } from './cache.ts';
import { bytesFile, compile, fileChanged, type CompiledEntry, type ContentFile } from './compile.ts';
import { dockerArchiveFiles } from './docker-archives.ts';
import { layoutFiles, packageImageOf, resolveImages, type StepImage } from './images.ts';
import type { BuildPlan } from './plan.ts';
import type { BuildPorts } from './ports.ts';

export interface PackageRequest {
  readonly source: AddonSource;
  readonly steps: readonly Step[];
  readonly plan: BuildPlan;
  /** Path of the package. */
  readonly target: string;
  /** Folder for what must wait on disk; the caller removes it. */
  readonly scratch: string;
}

interface Made {
  readonly addon: AddonJson;
  readonly index: ArchiveIndex;
  readonly fetched: number;
}

interface Options {
  readonly signal: AbortSignal;
}

const ASSETS_AT_ONCE = 4;

/** Makes the package and gives the file its name, or leaves nothing but, after a network failure, what can be resumed. */
export async function makePackage(request: PackageRequest, ports: BuildPorts, { signal }: Options): Promise<Made> {
  const { source, steps, plan, scratch } = request;
  const { ref } = source;
  refuseUnsupported(steps);
  const images = await resolveImages(stepsOf<ImageStep>(steps, 'image'), ports, {
    root: source.folder,
    arch: plan.arch,
    scratch,
    signal,
  });
  const counter = createCounter(formatRef(ref), images, ports);
  try {
    const assets = await mapLimited(
      stepsOf<AssetStep>(steps, 'asset'),
      async (step, { signal }) =>
        fetchAsset(step, { root: source.folder, scratch, onBytes: counter.add }, ports, { signal }),
      { width: ASSETS_AT_ONCE, signal },
    );
    const files = await contentFiles(request, { images, assets, counter }, ports, { signal });
    const about = describe(request, images, files, ports.tool);
    const { addon, entries } = await compile(ref, about, files, { pool: ports.pool, scratch, signal });
    const layout = placeArchive(entries.map(({ entry }) => entry));
    await writePackage(request, { layout, entries, counter }, ports, { signal });
    counter.done(layout.index.size);
    return { addon, index: layout.index, fetched: counter.fetched() };
  } catch (error) {
    counter.failed(asError(error));
    throw error;
  }
}

function stepsOf<Kind extends Step>(steps: readonly Step[], kind: Kind['kind']): readonly Kind[] {
  return steps.filter((step): step is Kind => step.kind === kind);
}

/** Names what this version cannot fetch, before anything is fetched. */
function refuseUnsupported(steps: readonly Step[]): void {
  for (const step of steps) {
    if (step.kind === 'container-build') {
      throw new CurlewError('UNSUPPORTED', `dockerout ${step.destination}: container builds are not supported`);
    }
    if (step.kind === 'os-packages' && step.output === 'archives') {
      throw new CurlewError('UNSUPPORTED', `packages for ${step.os} cannot be fetched: ${step.packages.join(', ')}`, {
        hint: 'only directives that list names in Deps (apt24, apt26) are supported for OS packages',
      });
    }
  }
}

/** Counts bytes and tells how far the package is. */
function createCounter(id: string, images: readonly StepImage[], { report }: BuildPorts) {
  const sizes = new Map(images.flatMap(({ image }) => image.layers.map(({ digest, size }) => [digest, size] as const)));
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  let done = 0;
  let fetched = 0;
  report({ type: 'step-started', id, title: id, bytes: bytes === 0 ? undefined : bytes });
  return {
    add: (count: number): void => {
      done += count;
      report({ type: 'step-progress', id, bytes: done });
    },
    cameOverNetwork: (count: number): void => {
      fetched += count;
    },
    fetched: () => fetched,
    done: (size: number): void => {
      report({ type: 'step-done', id, outcome: `built, ${size} bytes` });
    },
    failed: (error: Error): void => {
      report({ type: 'step-failed', id, error });
    },
  };
}

type Counter = ReturnType<typeof createCounter>;

async function contentFiles(
  { source, steps, plan, scratch }: PackageRequest,
  fetched: {
    readonly images: readonly StepImage[];
    readonly assets: readonly FetchedAsset[];
    readonly counter: Counter;
  },
  ports: BuildPorts,
  { signal }: Options,
): Promise<readonly ContentFile[]> {
  const { images, assets } = fetched;
  const deps = depsOf(steps);
  const lock = formatLock({
    format: 1,
    images: images.map(({ locked }) => locked),
    assets: assets.map(({ step, size, digest }) => ({ name: step.fileName, source: step.source, size, digest })),
    deps: Object.entries(deps).map(([os, names]) => ({ os, names })),
  });
  const imageFiles =
    plan.imageFormat === 'oci' ? layoutFiles(images) : await dockerArchiveFiles(images, { scratch, ports, signal });
  return [
    ...ownFiles(source).map((file): ContentFile => ({
      ...file,
      content: { kind: 'path', path: join(source.folder, file.path) },
    })),
    bytesFile(MANIFEST_LOCK, lock),
    ...Object.entries(deps).map(([os, names]) => bytesFile(packagePath.deps(os), `${names.join('\n')}\n`)),
    ...assets.map(({ step, size, digest, path }): ContentFile => ({
      path: packagePath.asset(step.fileName),
      mode: 0o644,
      size,
      digest,
      content: { kind: 'path', path },
    })),
    ...imageFiles,
  ];
}

function describe(
  { source, steps, plan }: PackageRequest,
  images: readonly StepImage[],
  files: readonly ContentFile[],
  tool: string,
): Omit<AddonJson, 'digest'> {
  const { ref, hooks, requires, fulfills, settings } = source;
  const sum = (chosen: readonly ContentFile[]): number => chosen.reduce((total, { size }) => total + size, 0);
  const inImages = files.filter(({ path }) => path.startsWith('images/'));
  return {
    format: PACKAGE_FORMAT,
    ...ref,
    arch: plan.arch,
    os: osFolders(steps),
    hooks,
    images: images.map(packageImageOf),
    imageFormat: plan.imageFormat,
    deps: depsOf(steps),
    unpacked: { files: sum(files) - sum(inImages), images: sum(inImages) },
    requires,
    fulfills,
    settings,
    tool,
  };
}

interface Laid {
  readonly layout: ArchivePlan;
  readonly entries: readonly CompiledEntry[];
  readonly counter: Counter;
}

async function writePackage(
  { target }: PackageRequest,
  { layout, entries, counter }: Laid,
  ports: BuildPorts,
  { signal }: Options,
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

/** Says whose bytes are wrong: the image's, or those of a file that has others, or more, or fewer than it had. */
function placingError(payload: CompiledEntry['payload'], path: string, error: unknown): unknown {
  if (!(error instanceof CurlewError)) return error;
  const { code, message, hint, cause } = error;
  if (payload.kind !== 'blob') {
    return code === 'DIGEST_MISMATCH' || code === 'FETCH_FAILED' ? fileChanged(path) : error;
  }
  return code === 'DIGEST_MISMATCH' ? new CurlewError(code, `image ${payload.of}: ${message}`, { hint, cause }) : error;
}

function sendFile(path: string): SendBlob {
  return async ({ from, write, signal }) => {
    const stream = createReadStream(path, { start: from, highWaterMark: 1 << 20, signal });
    for await (const chunk of stream as AsyncIterable<Buffer>) await write(chunk);
    return undefined;
  };
}
