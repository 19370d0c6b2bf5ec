/** Fetches the host packages of an add-on for its OS folders: one transaction per system. */
import { join } from 'node:path';
import { counted } from '../../core/counted.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { fileError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { packagePath } from '../../core/layout.ts';
import { osRow, type OsId } from '../../core/os.ts';
import { compareText, formatRef, type AddonRef, type Arch } from '../../core/ref.ts';
import type { LockedHostPackages } from '../../manifest/lock.ts';
import type { OsPackagesStep } from '../../manifest/step.ts';
import type { ContentFile } from '../compile.ts';
import { unpackFolder, type FinishedPackage } from '../earlier-package.ts';
import { filesOfFolder } from '../folder-files.ts';
import type { BuildPorts } from '../ports.ts';
import type { Collected } from './collector.ts';
import { depsOf } from './deps.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

/** The result of the Manifest's package lines for one operating system. */
export interface HostPackages {
  readonly os: OsId;
  /** Files that the collector fetched and created, without `Deps`. */
  readonly files: readonly ContentFile[];
  readonly locked: LockedHostPackages;
  /** Bytes fetched over the network. */
  readonly fetched: number;
}

export interface HostPackagesOptions {
  readonly ref: AddonRef;
  readonly arch: Arch;
  /** Temporary folder of the add-on, removed when its build ends. */
  readonly scratch: string;
  /** Package of an earlier build, whose package files can be reused. */
  readonly earlier: FinishedPackage | undefined;
  readonly signal: AbortSignal;
}

export type HostPackagesPorts = Pick<BuildPorts, 'collector' | 'report'>;

/** Requested names for one system, in the order of the Manifest. */
export interface RequestedPackages {
  readonly os: OsId;
  readonly archives: readonly string[];
  readonly deps: readonly string[];
}

/** The steps by system, in the order of their first. */
export function requestedPackages(steps: readonly OsPackagesStep[]): readonly RequestedPackages[] {
  const names = (os: OsId, output: OsPackagesStep['output']): readonly string[] =>
    steps.filter((step) => step.os === os && step.output === output).flatMap(({ packages }) => packages);
  return [...new Set(steps.map(({ os }) => os))].map((os) => ({
    os,
    archives: names(os, 'archives'),
    deps: names(os, 'deps'),
  }));
}

/** Fetches the packages of all systems at once. A system without files has no folder. */
export async function fetchHostPackages(
  steps: readonly OsPackagesStep[],
  options: HostPackagesOptions,
  ports: HostPackagesPorts,
): Promise<readonly HostPackages[]> {
  const requested = requestedPackages(steps);
  return mapLimited(requested, async (one, { signal }) => fetchForOs(one, { ...options, signal }, ports), {
    width: Math.max(1, requested.length),
    signal: options.signal,
  });
}

async function fetchForOs(
  requested: RequestedPackages,
  options: HostPackagesOptions,
  ports: HostPackagesPorts,
): Promise<HostPackages> {
  const { os, archives, deps } = requested;
  const none = { inputs: '', collected: NO_PACKAGES, files: [] };
  const { inputs, collected, files } = archives.length === 0 ? none : await collect(requested, options, ports);
  const required = requiredNames(requested, collected);
  const { packages, fetched } = collected;
  return { os, files, locked: { os, arch: options.arch, archives, deps, inputs, files: packages, required }, fetched };
}

const NO_PACKAGES: Collected = { packages: [], requires: [], fetched: 0 };

/** The lines of `Deps`. If packages include their dependencies, only the names of `deps` directives are listed. */
function requiredNames({ os, archives, deps }: RequestedPackages, collected: Collected): readonly string[] {
  const { family, resolve } = osRow(os);
  if (family === 'debian' || resolve !== 'none') return [...new Set(deps)].toSorted(compareText);
  return depsOf({ direct: deps, shipped: archives, collected: [collected] });
}

const PACKAGE_FILE = /^[^/]+\.(?:deb|rpm)$/;

async function collect(
  { os, archives }: RequestedPackages,
  { ref, arch, scratch, earlier, signal }: HostPackagesOptions,
  { collector: open, report }: HostPackagesPorts,
): Promise<{ readonly inputs: string; readonly collected: Collected; readonly files: readonly ContentFile[] }> {
  const collector = await open();
  const base = join(scratch, `packages-${os}`);
  const [folder, state, known] = [join(base, 'archives'), join(base, 'state'), join(base, 'known')];
  try {
    for (const path of [folder, state, known]) await makeMissing(path);
  } catch (error) {
    throw fileError(`create ${base}`, error);
  }
  const part = { folder: packagePath.archives(os), to: known, select: (path: string) => PACKAGE_FILE.test(path) };
  if (earlier !== undefined) await unpackFolder(earlier, part, { signal });
  const id = `${formatRef(ref)}/${os}`;
  return reportStep(
    report,
    { id, title: `${formatRef(ref)}: packages for ${osRow(os).title}` },
    async () => {
      const inputs = await collector.inputs(os, { signal });
      const query = { id, task: 'collect', os, arch, names: archives } as const;
      const request = { ...query, known: earlier === undefined ? undefined : known, folder, scratch: state };
      const collected = await collector.collect(request, { report, signal });
      const doing = `read packages for ${os}`;
      return { inputs, collected, files: await filesOfFolder(folder, packagePath.archives(os), { doing, signal }) };
    },
    ({ collected }) => counted(collected.packages.length, 'file'),
  );
}
