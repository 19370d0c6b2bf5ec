/** What a run will do, and why, before anything is done. Pure: packages, records and spec in, plain data out. */
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import type { PackageImage } from '../core/package.ts';
import { formatRef, type AddonRef } from '../core/ref.ts';
import { orderAddons } from '../installer/order.ts';
import { CONTAINER_RUNTIMES, hookFunction, type Hook } from './hooks.ts';
import { settingsDigest, type AppliedRecord, type Records } from './records.ts';

/** What the plan needs to know of a package. */
export interface PackageFacts {
  readonly ref: AddonRef;
  readonly digest: Digest;
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
  readonly images: readonly PackageImage[];
  readonly hasInstallScript: boolean;
  /** The add-on's settings in the installer spec. */
  readonly settings: unknown;
  /** Digest of the package whose files lie in the install folder, whatever the records say. */
  readonly inPlace: Digest | undefined;
}

export interface PlannedAddon {
  readonly ref: AddonRef;
  readonly digest: Digest;
  readonly settings: Digest;
  readonly mode: 'install' | 'already applied';
  readonly because: string;
  readonly hasInstallScript: boolean;
}

export type PlannedAction = { readonly id: string; readonly because: string } & (
  | { readonly kind: 'extract'; readonly addon: string }
  | { readonly kind: 'images'; readonly addon: string }
  | { readonly kind: 'hook'; readonly addon: string; readonly hook: Hook; readonly function: string }
);

/** `install` is for a primary, the others are for the nodes beside it. */
export type RunKind = 'install' | 'join' | 'upgrade';

export interface RunPlan {
  readonly format: 1;
  readonly kind: RunKind;
  /** In the order of the run, each once. */
  readonly addons: readonly PlannedAddon[];
  readonly actions: readonly PlannedAction[];
}

export interface PlanOptions {
  /** Install everything, whatever the records say. */
  readonly reapply: boolean;
  readonly images: boolean;
}

/** An add-on that stands in the spec twice is `SPEC_INVALID`, and so is a cycle of `requires`. */
export function planRun(
  kind: RunKind,
  packages: readonly PackageFacts[],
  records: Records,
  options: PlanOptions,
): RunPlan {
  const names = new Set<string>();
  for (const { ref } of packages) {
    if (names.has(ref.name)) throw new CurlewError('SPEC_INVALID', `plan: ${ref.name} stands in the spec twice`);
    names.add(ref.name);
  }
  const ordered = orderAddons(packages.map((facts) => ({ ...facts, name: facts.ref.name })));
  const addons = ordered.map((facts) => planAddon(facts, records, options));
  const extracts = ordered.flatMap((facts) => planExtract(facts, records));
  const runtimes = addons.filter(({ ref }) => CONTAINER_RUNTIMES.includes(ref.name));
  const others = addons.filter(({ ref }) => !CONTAINER_RUNTIMES.includes(ref.name));
  const withImages = options.images ? ordered.filter(({ images }) => images.length > 0) : [];
  return {
    format: 1,
    kind,
    addons,
    actions: [
      ...extracts,
      ...addons.flatMap((addon) => planHook(addon, 'pre_init')),
      ...runtimes.flatMap(planApply),
      ...withImages.map(planImages),
      ...others.flatMap(planApply),
      ...addons.flatMap((addon) => planHook(addon, 'post_init')),
      ...addons.flatMap((addon) => planHook(addon, 'outro')),
    ],
  };
}

function planAddon(facts: PackageFacts, records: Records, { reapply }: PlanOptions): PlannedAddon {
  const { ref, digest, hasInstallScript } = facts;
  const settings = settingsDigest(facts.settings);
  // Not every name that an object answers to is one of its own: `constructor` is a valid name of an add-on.
  const record = Object.hasOwn(records.applied, ref.name) ? records.applied[ref.name] : undefined;
  const because = whyInstall({ ref, digest, settings }, record, reapply);
  const common = { ref, digest, settings, hasInstallScript };
  return because === undefined
    ? { ...common, mode: 'already applied', because: 'same version, package and settings, and its last run finished' }
    : { ...common, mode: 'install', because };
}

/** Undefined when nothing is to be installed. */
function whyInstall(
  { ref, digest, settings }: Pick<PlannedAddon, 'ref' | 'digest' | 'settings'>,
  record: AppliedRecord | undefined,
  reapply: boolean,
): string | undefined {
  if (record === undefined) return 'it was not installed';
  if (record.version !== ref.version) return `version ${record.version} was installed`;
  if (record.digest !== digest) return 'another package of this version was installed';
  if (record.settings !== settings) return 'its settings have changed';
  if (!record.finished) return 'its last run did not finish';
  return reapply ? 'asked for by --reapply' : undefined;
}

function planExtract(facts: PackageFacts, { extracted }: Records): readonly PlannedAction[] {
  const { ref, digest, inPlace } = facts;
  const known = extracted.find(
    ({ tree, name, version }) => tree === ref.tree && name === ref.name && version === ref.version,
  );
  if (known?.digest === digest && inPlace === digest) return [];
  const because = known === undefined ? 'not on this node' : 'the node has another package of this version';
  return [{ id: `extract ${formatRef(ref)}`, kind: 'extract', addon: ref.name, because }];
}

function planImages({ ref, images }: PackageFacts): PlannedAction {
  return { id: `images ${ref.name}`, kind: 'images', addon: ref.name, because: `${images.length} images` };
}

function planHook(addon: PlannedAddon, hook: Hook): readonly PlannedAction[] {
  const { name } = addon.ref;
  if (!addon.hasInstallScript) return [];
  const words = hookFunction(name, hook);
  const because = hook === 'install' || hook === 'already_applied' ? addon.because : 'every run';
  return [{ id: `hook ${words}`, kind: 'hook', addon: name, hook, function: words, because }];
}

function planApply(addon: PlannedAddon): readonly PlannedAction[] {
  return planHook(addon, addon.mode === 'install' ? 'install' : 'already_applied');
}
