/** `dockerout`: builds a Dockerfile, runs the image, and collects its output in `/out`. */
import { join } from 'node:path';
import type { Reporting } from '../../core/cancellable.ts';
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { PackageFile } from '../../core/package.ts';
import type { Arch } from '../../core/ref.ts';
import type { ContainerBuildStep } from '../../manifest/step.ts';
import { readBuildContext, type BuildContext, type SourceRoots } from './build-context.ts';
import type { ContentFile } from '../compile.ts';
import type { Containers, EndedContainer } from './containers.ts';
import { baseImages } from './dockerfile.ts';
import { quoteLines } from '../../platform/process/program-lines.ts';

export interface ContainerBuildOptions extends Reporting {
  /** The step of the lines that build and program print. */
  readonly id: string;
  readonly roots: SourceRoots;
  readonly arch: Arch;
  /** Empty folder that receives the files; the caller keeps it until the package is built. */
  readonly into: string;
  /** Time limit for the build, and again for the run. */
  readonly limitMs: number;
}

/** Limits on a container's output: far above real package folders. */
const LIMITS = { bytes: 2 ** 35, files: 50_000 };
const OUT = '/out';

/** The step's name in events and messages. */
function nameOf({ destination, dockerfile }: ContainerBuildStep): string {
  return `run dockerout ${destination} (${dockerfile})`;
}

/** Linux on the package's architecture, if it differs from this machine's. */
function platformOf(arch: Arch): string | undefined {
  const own = process.arch === 'x64' ? 'amd64' : process.arch;
  return arch === own ? undefined : `linux/${arch}`;
}

function argsOf({ argument = 'VERSION', version }: ContainerBuildStep): Readonly<Record<string, string>> {
  return { [argument]: version };
}

async function inputsOf(
  { version, argument }: ContainerBuildStep,
  { digest }: BuildContext,
  bases: readonly string[],
  { arch, identify }: { readonly arch: Arch; readonly identify: (base: string) => Promise<Digest> },
): Promise<Digest> {
  const images: (readonly [string, Digest])[] = [];
  for (const base of bases) images.push([base, await identify(base)]);
  return digestOf(
    canonicalJson({ version, ...(argument === undefined ? {} : { argument }), arch, context: digest, images }),
  );
}

function basesOf(step: ContainerBuildStep, { dockerfile }: BuildContext): readonly string[] {
  const bases = baseImages(dockerfile, argsOf(step));
  if (bases.includes('')) {
    throw new CurlewError('CONTAINER_FAILED', `cannot ${nameOf(step)}: FROM uses a variable without a value`, {
      hint: 'give it a default: ARG NAME=value before FROM; only the argument of the directive is set from outside',
    });
  }
  return bases;
}

/**
 * The inputs of the result, without building it: Dockerfile, files that it can copy, version, architecture, and the current
 * digests of the base images (of the engine's image if it has one, or else the registry's). Equal inputs need not be built
 * again.
 */
export async function containerInputs(
  step: ContainerBuildStep,
  { containers }: { readonly containers: Pick<Containers, 'identify'> },
  { roots, arch, signal }: Pick<ContainerBuildOptions, 'roots' | 'arch' | 'signal'>,
): Promise<Digest> {
  const context = await readBuildContext(step.dockerfile, roots, nameOf(step), { signal });
  const identify = async (base: string): Promise<Digest> => containers.identify(base, { signal });
  return inputsOf(step, context, basesOf(step, context), { arch, identify });
}

/**
 * Builds, runs and collects. Throws `NOT_FOUND` without a Dockerfile, `FETCH_FAILED` without an engine or base image,
 * `CONTAINER_FAILED` if a step fails, the program fails or does not end, or `/out` is empty or contains something that a
 * package cannot contain. Leaves nothing in the engine.
 */
export async function buildContainer(
  step: ContainerBuildStep,
  { containers }: { readonly containers: Containers },
  options: ContainerBuildOptions,
): Promise<readonly ContentFile[]> {
  const { id, roots, arch, limitMs, report, signal } = options;
  const { destination, dockerfile } = step;
  const doing = nameOf(step);
  const context = await readBuildContext(dockerfile, roots, doing, { signal });
  const bases = new Set<string>();
  for (const base of basesOf(step, context)) bases.add(await containers.bring(base, { id, report, signal }));
  const request = {
    id,
    doing,
    dockerfile: context.dockerfile,
    context: context.entries,
    args: argsOf(step),
    platform: platformOf(arch),
    bases,
    limitMs,
  };
  const files = await containers.build(request, async (image) => runImage(image, { id, doing }, containers, options), {
    report,
    signal,
  });
  return files.map((file) => ({
    ...file,
    path: `${destination}/${file.path}`,
    content: { kind: 'path', path: join(options.into, file.path) },
  }));
}

async function runImage(
  image: Digest,
  { id, doing }: { readonly id: string; readonly doing: string },
  containers: Pick<Containers, 'run'>,
  { into, limitMs, report, signal }: ContainerBuildOptions,
): Promise<readonly PackageFile[]> {
  const take = async ({ status, lastLines, collect }: EndedContainer): Promise<readonly PackageFile[]> => {
    if (status !== 0) {
      const message = `cannot ${doing}: the container's program ended with status ${status}${quoteLines(lastLines)}`;
      throw new CurlewError('CONTAINER_FAILED', message);
    }
    const files = await collect(OUT, { into, limits: LIMITS });
    if (files.length > 0) return files;
    throw new CurlewError(
      'CONTAINER_FAILED',
      `cannot ${doing}: the container wrote no files to ${OUT}${quoteLines(lastLines)}`,
      { hint: `files that the image's CMD copies to ${OUT} become part of the package` },
    );
  };
  // Any user in the container may write there, as to the folder that kURL mounts.
  const out = { kind: 'folder', path: OUT.slice(1), mode: 0o777 } as const;
  return containers.run({ id, doing, image, files: [out], limitMs }, take, { report, signal });
}
