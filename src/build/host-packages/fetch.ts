/** From the steps for host packages of one add-on to the files of its OS folders: one transaction a system. */
import { mkdir } from 'node:fs/promises';
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
import { unpackFolder, type FinishedPackage } from '../finished.ts';
import { folderFiles } from '../folder-files.ts';
import type { BuildPorts } from '../ports.ts';
import type { Collected } from './collector.ts';
import { depsOf } from './deps.ts';

/** What one operating system's folder gets from the Manifest's package lines. */
export interface HostPackages {
  readonly os: OsId;
  /** What the collector fetched and made; `Deps` is not among them. */
  readonly files: readonly ContentFile[];
  readonly locked: LockedHostPackages;
  /** Bytes that came over the network. */
  readonly fetched: number;
}

export interface HostPackagesOptions {
  readonly ref: AddonRef;
  readonly arch: Arch;
  /** Folder of the add-on's own, removed when its build ends. */
  readonly scratch: string;
  /** Package of an earlier build, whose package files need not be fetched again. */
  readonly earlier: FinishedPackage | undefined;
  readonly signal: AbortSignal;
}

export type HostPackagesPorts = Pick<BuildPorts, 'collector' | 'report'>;

/** Names asked for one system, in the order of the Manifest. */
export interface AskedPackages {
  readonly os: OsId;
  readonly archives: readonly string[];
  readonly deps: readonly string[];
}

/** The steps by system, in the order of their first. */
export function askedPackages(steps: readonly OsPackagesStep[]): readonly AskedPackages[] {
  const names = (os: OsId, output: OsPackagesStep['output']): readonly string[] =>
    steps.filter((step) => step.os === os && step.output === output).flatMap(({ packages }) => packages);
  return [...new Set(steps.map(({ os }) => os))].map((os) => ({
    os,
    archives: names(os, 'archives'),
    deps: names(os, 'deps'),
  }));
}

/** Fetches the packages of all systems at once. A system that ends up with nothing has no folder and no files. */
export async function fetchHostPackages(
  steps: readonly OsPackagesStep[],
  options: HostPackagesOptions,
  ports: HostPackagesPorts,
): Promise<readonly HostPackages[]> {
  const asked = askedPackages(steps);
  return mapLimited(asked, async (one, { signal }) => fetchForOs(one, { ...options, signal }, ports), {
    width: Math.max(1, asked.length),
    signal: options.signal,
  });
}

async function fetchForOs(
  asked: AskedPackages,
  options: HostPackagesOptions,
  ports: HostPackagesPorts,
): Promise<HostPackages> {
  const { os, archives, deps } = asked;
  const nothing = { inputs: '', collected: NOTHING, files: [] };
  const { inputs, collected, files } = archives.length === 0 ? nothing : await collect(asked, options, ports);
  const required = requiredNames(asked, collected);
  const { packages, fetched } = collected;
  return {
    os,
    files,
    locked: { os, arch: options.arch, archives, deps, inputs, files: packages, required },
    fetched,
  };
}

const NOTHING: Collected = { packages: [], requires: [], fetched: 0 };

/** The lines of `Deps`. Where packages bring all they need, only names of directives that ask for names stand there. */
function requiredNames({ os, archives, deps }: AskedPackages, collected: Collected): readonly string[] {
  const { family, resolve } = osRow(os);
  if (family === 'debian' || resolve !== 'none') return [...new Set(deps)].toSorted(compareText);
  return depsOf({ direct: deps, shipped: archives, collected: [collected] });
}

const PACKAGE_FILE = /^[^/]+\.(?:deb|rpm)$/;

async function collect(
  { os, archives }: AskedPackages,
  { ref, arch, scratch, earlier, signal }: HostPackagesOptions,
  { collector: open, report }: HostPackagesPorts,
): Promise<{ readonly inputs: string; readonly collected: Collected; readonly files: readonly ContentFile[] }> {
  const collector = await open();
  const base = join(scratch, `packages-${os}`);
  const [folder, state, known] = [join(base, 'archives'), join(base, 'state'), join(base, 'known')];
  try {
    for (const path of [folder, state, known]) await mkdir(path, { recursive: true });
  } catch (error) {
    throw fileError(`make ${base}`, error);
  }
  const part = { folder: packagePath.archives(os), to: known, wanted: (path: string) => PACKAGE_FILE.test(path) };
  if (earlier !== undefined) await unpackFolder(earlier, part, { signal });
  const id = `${formatRef(ref)}/${os}`;
  return reportStep(
    report,
    { id, title: `${formatRef(ref)}: packages for ${osRow(os).title}` },
    async () => {
      const inputs = await collector.inputs(os, { signal });
      const asked = { id, task: 'collect', os, arch, names: archives } as const;
      const request = { ...asked, known: earlier === undefined ? undefined : known, folder, scratch: state };
      const collected = await collector.collect(request, { report, signal });
      const doing = `read packages for ${os}`;
      return { inputs, collected, files: await folderFiles(folder, packagePath.archives(os), { doing, signal }) };
    },
    ({ collected }) => counted(collected.packages.length, 'file'),
  );
}
