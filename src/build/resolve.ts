/** Resolves and locks the steps of an add-on: fetches everything except image layers and container builds. */
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError } from '../core/errors.ts';
import type { Digest } from '../core/digest.ts';
import type { Arch } from '../core/ref.ts';
import type { ManifestLock } from '../manifest/lock.ts';
import { lockChanges, type LockChange } from '../manifest/lock-changes.ts';
import type { AddonSource } from '../manifest/read-addon.ts';
import type { AssetStep, ContainerBuildStep, OsPackagesStep, BuilderStep } from '../manifest/step.ts';
import { fetchAsset, type FetchedAsset } from './assets.ts';
import { fetchHostPackages, type HostPackages } from './host-packages/fetch.ts';
import type { StepImage } from './images.ts';
import type { BuildPorts } from './ports.ts';
import type { FinishedPackage } from './earlier-package.ts';

export interface ResolveRequest {
  readonly source: AddonSource;
  readonly steps: readonly BuilderStep[];
  readonly arch: Arch;
  /** Temporary folder; the caller removes it. */
  readonly scratch: string;
  readonly images: readonly StepImage[];
  /** The package of an earlier build, whose files can be reused. */
  readonly earlier: FinishedPackage | undefined;
  readonly onBytes: (bytes: number) => void;
  /** Called with additional expected bytes. */
  readonly onExpected: (bytes: number) => void;
}

/** A container build that must be run, or whose files are in an earlier package. */
export interface PlannedContainerBuild {
  readonly step: ContainerBuildStep;
  readonly inputs: Digest;
}

export interface Resolved {
  readonly assets: readonly FetchedAsset[];
  readonly hostPackages: readonly HostPackages[];
  readonly containerBuilds: readonly PlannedContainerBuild[];
  readonly lock: ManifestLock;
}

const ASSETS_AT_ONCE = 4;

export function stepsOf<Kind extends BuilderStep>(steps: readonly BuilderStep[], kind: Kind['kind']): readonly Kind[] {
  return steps.filter((step): step is Kind => step.kind === kind);
}

export async function resolveSteps(
  { source, steps, arch, scratch, images, earlier, onBytes, onExpected }: ResolveRequest,
  ports: BuildPorts,
  { signal }: { readonly signal: AbortSignal },
): Promise<Resolved> {
  const containerBuilds = await planContainerBuilds(stepsOf(steps, 'container-build'), source, ports, { arch, signal });
  const assets = await mapLimited(
    stepsOf<AssetStep>(steps, 'asset'),
    async (step, within) => fetchAsset(step, { root: source.folder, scratch, onBytes, onExpected }, ports, within),
    { width: ASSETS_AT_ONCE, signal },
  );
  const { ref } = source;
  const packages = stepsOf<OsPackagesStep>(steps, 'os-packages');
  const hostPackages = await fetchHostPackages(packages, { ref, arch, scratch, earlier, signal }, ports);
  const lock: ManifestLock = {
    format: 1,
    images: images.map(({ locked }) => locked),
    assets: assets.map(({ step, size, digest }) => ({ name: step.fileName, source: step.source, size, digest })),
    hostPackages: hostPackages.map(({ locked }) => locked),
    containerBuilds: containerBuilds.map(({ step: { destination, dockerfile, version }, inputs }) => ({
      folder: destination,
      arch,
      dockerfile,
      version,
      inputs,
      requires: [],
    })),
  };
  return { assets, hostPackages, containerBuilds, lock };
}

async function planContainerBuilds(
  steps: readonly ContainerBuildStep[],
  { folder, root }: AddonSource,
  ports: Pick<BuildPorts, 'containerBuilder'>,
  { arch, signal }: { readonly arch: Arch; readonly signal: AbortSignal },
): Promise<readonly PlannedContainerBuild[]> {
  if (steps.length === 0) return [];
  const builder = await ports.containerBuilder();
  return mapLimited(
    steps,
    async (step, within) => ({ step, inputs: await builder.inputs(step, { folder, root, arch }, within) }),
    { width: steps.length, signal },
  );
}

const MAX_CHANGES = 20;

/** One change as a line: its kind, the locked value, the current value. */
function changeText({ kind, name, locked, now }: LockChange): string {
  if (locked === undefined) return `${kind} ${name} is not in the lock: ${now ?? ''}`;
  if (now === undefined) return `${kind} ${name} is in the lock only: ${locked}`;
  return `${kind} ${name}: locked ${locked}, now ${now}`;
}

/** `LOCK_MISMATCH`, with every difference, unless everything matches the lock. */
export function requireLocked(committed: ManifestLock, now: ManifestLock, arch: Arch): void {
  const changes = lockChanges(committed, now, arch);
  if (changes.length === 0) return;
  const lines = changes.slice(0, MAX_CHANGES).map((change) => `  ${changeText(change)}`);
  const more = changes.length > MAX_CHANGES ? [`  and ${changes.length - MAX_CHANGES} more`] : [];
  const count = changes.length === 1 ? '1 entry differs' : `${changes.length} entries differ`;
  throw new CurlewError('LOCK_MISMATCH', [`${count} from Manifest.lock:`, ...lines, ...more].join('\n'), {
    hint: 'update it with curlew build --update-lock; list differences of all add-ons with curlew outdated',
  });
}
