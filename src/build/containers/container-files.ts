/** The files of `dockerout`: the output of the builds, or the files of an earlier package with the same inputs. */
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cancellable } from '../../core/cancellable.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { packagePath } from '../../core/layout.ts';
import { isOsId, osRow } from '../../core/os.ts';
import { compareText, formatRef, type AddonRef, type Arch } from '../../core/ref.ts';
import type { ContentFile } from '../compile.ts';
import { unpackFolder, type FinishedPackage } from '../earlier-package.ts';
import { filesOfFolder } from '../folder-files.ts';
import { depsOf } from '../host-packages/deps.ts';
import type { BuildPlace, BuildPorts } from '../ports.ts';
import type { PlannedContainerBuild } from '../resolve.ts';

export interface ContainerFilesRequest {
  readonly ref: AddonRef;
  readonly place: BuildPlace;
  readonly scratch: string;
  readonly earlier: FinishedPackage | undefined;
}

type Ports = Pick<BuildPorts, 'collector' | 'containerBuilder' | 'report'>;

/** A container build uses the whole machine; with two, one runs while the other waits for the network. */
const WIDTH = 2;

/** The output of one build in the package. */
export interface ContainerFiles {
  readonly files: readonly ContentFile[];
  /** Names that its packages require, if the system's packages are not resolved. */
  readonly requires: readonly string[];
}

/**
 * The output of all builds, in order. `MANIFEST_INVALID` if two builds write the same path, since the result would depend on
 * their order.
 */
export async function buildContainers(
  builds: readonly PlannedContainerBuild[],
  request: ContainerFilesRequest,
  ports: Ports,
  { signal }: Cancellable,
): Promise<readonly ContainerFiles[]> {
  const alone = (build: PlannedContainerBuild): boolean =>
    builds.filter(({ step }) => step.destination === build.step.destination).length === 1;
  const all = await mapLimited(
    [...builds.entries()],
    async ([at, build], within) => {
      const folder = join(request.scratch, `container-${at}`);
      await mkdir(folder).catch((error: unknown) => {
        throw fileError(`create ${folder}`, error);
      });
      const earlier = alone(build) ? await takeEarlier(build, request, folder, within) : undefined;
      return earlier ?? run(build, request, { folder, ports }, within);
    },
    { width: WIDTH, signal },
  );
  const paths = new Set<string>();
  for (const { path } of all.flatMap(({ files }) => files)) {
    if (paths.has(path)) throw new CurlewError('MANIFEST_INVALID', `two dockerout lines write the same file ${path}`);
    paths.add(path);
  }
  return all;
}

/** The files of an earlier package with the same inputs. */
async function takeEarlier(
  { step, inputs }: PlannedContainerBuild,
  { place, earlier }: ContainerFilesRequest,
  to: string,
  { signal }: Cancellable,
): Promise<ContainerFiles | undefined> {
  const { destination, dockerfile } = step;
  const before = earlier?.lock.containerBuilds.filter(({ folder }) => folder === destination) ?? [];
  const [only] = before;
  if (earlier === undefined || before.length !== 1 || only?.inputs !== inputs) return undefined;
  if (only.arch !== place.arch || only.dockerfile !== dockerfile) return undefined;
  const own = (path: string): boolean => path !== 'Deps' && !path.startsWith('archives/');
  if ((await unpackFolder(earlier, { folder: destination, to, select: own }, { signal })) === 0) return undefined;
  const files = await filesOfFolder(to, destination, { doing: `run dockerout ${destination}`, signal });
  return { files, requires: only.requires };
}

async function run(
  { step }: PlannedContainerBuild,
  { ref, place }: ContainerFilesRequest,
  { folder, ports }: { readonly folder: string; readonly ports: Ports },
  { signal }: Cancellable,
): Promise<ContainerFiles> {
  const { destination, dockerfile } = step;
  const { report } = ports;
  const builder = await ports.containerBuilder();
  const id = `${formatRef(ref)}/${destination}/${dockerfile}`;
  return reportStep(
    report,
    { id, title: `${formatRef(ref)}: ${dockerfile}` },
    async () => {
      const files = await builder.build(step, place, { id, folder, report, signal });
      const own = files.find(({ path }) => path === packagePath.deps(destination));
      const listed = own === undefined ? [] : await depsLines(join(folder, 'Deps'));
      const requires = await requiresOf({ id, destination, arch: place.arch, files, folder }, ports, { signal });
      const names = [...new Set([...listed, ...requires])].toSorted(compareText);
      return { files: files.filter((file) => file !== own), requires: names };
    },
    ({ files }) => `${files.length} files for ${destination}`,
  );
}

/** The lines of a `Deps` file that the build has written. */
async function depsLines(path: string): Promise<readonly string[]> {
  const { size } = await stat(path);
  if (size > DEPS_LIMIT) throw new CurlewError('CONTAINER_FAILED', `Deps has ${size} bytes, more than ${DEPS_LIMIT}`);
  const lines = (await readFile(path, 'utf8')).split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '');
}

const DEPS_LIMIT = 1 << 20;

/** Names that the operator must install: only for repositories of systems whose packages are not resolved. */
async function requiresOf(
  { id, destination, arch, files, folder }: BuiltFolder,
  { collector: open, report }: Ports,
  { signal }: Cancellable,
): Promise<readonly string[]> {
  const isRepository = files.some(({ path }) => path === `${destination}/repodata/repomd.xml`);
  if (!isRepository || !isOsId(destination) || osRow(destination).resolve !== 'none') return [];
  const collector = await open();
  const [empty, scratch] = [`${folder}-none`, `${folder}-scratch`];
  await mkdir(empty);
  await mkdir(scratch);
  const query = { id, task: 'requires', os: destination, arch, names: [] } as const;
  const collected = await collector.collect({ ...query, known: folder, folder: empty, scratch }, { report, signal });
  return depsOf({ direct: [], shipped: [], collected: [collected] });
}

interface BuiltFolder {
  readonly id: string;
  readonly destination: string;
  readonly arch: Arch;
  readonly files: readonly ContentFile[];
  readonly folder: string;
}
