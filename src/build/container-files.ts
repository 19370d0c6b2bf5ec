/** The files of `dockerout`: what the builds leave behind, or what an earlier package has of the same inputs. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { mapLimited } from '../core/each.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { reportStep } from '../core/events.ts';
import { formatRef, type AddonRef } from '../core/ref.ts';
import type { ContentFile } from './compile.ts';
import { unpackFolder, type FinishedPackage } from './finished.ts';
import { folderFiles } from './folder-files.ts';
import type { BuildPlace, BuildPorts } from './ports.ts';
import type { PlannedContainerBuild } from './resolve.ts';

export interface ContainerFilesRequest {
  readonly ref: AddonRef;
  readonly place: BuildPlace;
  readonly scratch: string;
  readonly earlier: FinishedPackage | undefined;
}

type Ports = Pick<BuildPorts, 'containerBuilder' | 'report'>;

interface Options {
  readonly signal: AbortSignal;
}

/** A container build uses what a whole machine has; two keep one busy while the other waits for its network. */
const WIDTH = 2;

/** Files of all builds. Two builds that leave the same path are `MANIFEST_INVALID`: which one counts would be chance. */
export async function buildContainers(
  builds: readonly PlannedContainerBuild[],
  request: ContainerFilesRequest,
  ports: Ports,
  { signal }: Options,
): Promise<readonly ContentFile[]> {
  const alone = (build: PlannedContainerBuild): boolean =>
    builds.filter(({ step }) => step.destination === build.step.destination).length === 1;
  const all = await mapLimited(
    [...builds.entries()],
    async ([at, build], within) => {
      const folder = join(request.scratch, `container-${at}`);
      await mkdir(folder).catch((error: unknown) => {
        throw fileError(`make ${folder}`, error);
      });
      const kept = alone(build) && (await takeEarlier(build, request, folder, within));
      if (!kept) return run(build, request, { folder, ports }, within);
      const doing = `dockerout ${build.step.destination}`;
      return folderFiles(folder, build.step.destination, { doing, ...within });
    },
    { width: WIDTH, signal },
  );
  const files = all.flat();
  const paths = new Set<string>();
  for (const { path } of files) {
    if (paths.has(path)) throw new CurlewError('MANIFEST_INVALID', `two dockerout lines leave the same file ${path}`);
    paths.add(path);
  }
  return files;
}

/** The files of an earlier package, when the same inputs went into them. */
async function takeEarlier(
  { step, inputs }: PlannedContainerBuild,
  { place, earlier }: ContainerFilesRequest,
  to: string,
  { signal }: Options,
): Promise<boolean> {
  const { destination, dockerfile } = step;
  const before = earlier?.lock.containerBuilds.filter(({ folder }) => folder === destination) ?? [];
  const [only] = before;
  if (earlier === undefined || before.length !== 1 || only?.inputs !== inputs || only.arch !== place.arch) return false;
  if (only.dockerfile !== dockerfile) return false;
  const own = (path: string): boolean => path !== 'Deps' && !path.startsWith('archives/');
  return (await unpackFolder(earlier, { folder: destination, to, wanted: own }, { signal })) > 0;
}

async function run(
  { step }: PlannedContainerBuild,
  { ref, place }: ContainerFilesRequest,
  { folder, ports }: { readonly folder: string; readonly ports: Ports },
  { signal }: Options,
): Promise<readonly ContentFile[]> {
  const { destination, dockerfile } = step;
  const { report } = ports;
  const builder = await ports.containerBuilder();
  return reportStep(
    report,
    { id: `${formatRef(ref)}/${destination}/${dockerfile}`, title: `${formatRef(ref)}: ${dockerfile}` },
    async () => builder.build(step, place, { folder, report, signal }),
    ({ length }) => `${length} files for ${destination}`,
  );
}
