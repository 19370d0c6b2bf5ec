/** The actions of a run in their order (kurl.md 6.2, 6.3). Pure. */
import { counted } from '../../core/counted.ts';
import { formatRef, type AddonRef } from '../../core/ref.ts';
import { actionId } from './action-id.ts';
import {
  AROUND_KUBERNETES,
  hookCall,
  isContainerRuntime,
  KUBERNETES,
  type AroundHook,
  type HookKind,
} from './hooks.ts';
import type {
  FileDifference,
  CompanionFacts,
  LoadBalancerMove,
  PackageFacts,
  PlanOptions,
  PlannedAction,
  PlannedAddon,
  RunKind,
} from './run-plan.ts';
import type { Records } from './records.ts';

interface Phased {
  /** Facts in the order of the run, like `addons`. */
  readonly facts: readonly PackageFacts[];
  readonly addons: readonly PlannedAddon[];
  readonly records: Records;
  readonly options: PlanOptions;
}

type Actions = readonly PlannedAction[];

export function phases(kind: RunKind, whole: Phased): Actions {
  const removed = removalPhases(kind, whole);
  if (kind === 'reset' || kind === 'uninstall') return removed;
  const names = new Set(whole.addons.filter(isRemoved).map(({ ref }) => ref.name));
  const stays = ({ ref }: { readonly ref: AddonRef }): boolean => !names.has(ref.name);
  const run = { ...whole, facts: whole.facts.filter(stays), addons: whole.addons.filter(stays) };
  const { facts, records } = run;
  const missing = facts.flatMap((one) => {
    const because = whyExtract(one, records);
    return because === undefined ? [] : [{ ...one, because }];
  });
  const fetches = missing.filter(({ remote }) => remote);
  const companions = companionsOf(run).flatMap((one) => {
    const because = whyExtract(one, records);
    return because === undefined ? [] : [{ ...one, because: `${one.because}; ${because}` }];
  });
  return [
    ...fetches.map(({ ref, because }) => fetch(ref, because)),
    ...companions
      .filter(({ remote }) => remote)
      .map(({ ref, label, because }) => ({ ...fetch(ref, because), addon: label })),
    ...missing.map(({ ref, because }) => extract(ref, because)),
    ...companions.map(({ ref, label, because }) => ({ ...extract(ref, because), addon: label })),
    ...(kind === 'install' ? installPhases(run) : joinPhases(kind, run)),
    ...removed,
  ];
}

/** True if a run removes an add-on, from the cluster or only from this node. */
export function isRemoved({ mode }: Pick<PlannedAddon, 'mode'>): boolean {
  return mode === 'remove' || mode === 'leave';
}

/** Objects in the cluster are removed first, while everything they may need still runs. */
function removalPhases(kind: RunKind, run: Phased): Actions {
  const addons = run.addons.filter(isRemoved);
  return [
    ...addons.flatMap((addon) => {
      if (addon.mode === 'remove') return hookOf(run, addon, 'pre_remove');
      return kind === 'reset' ? hookOf(run, addon, 'leave') : [];
    }),
    ...addons.flatMap((addon) => hookOf(run, addon, 'uninstall')),
  ];
}

function installPhases(run: Phased): Actions {
  const { facts, addons } = run;
  const every = (hook: HookKind): Actions => addons.flatMap((addon) => hookOf(run, addon, hook));
  const later = addons.filter(({ ref }) => !isContainerRuntime(ref) && ref.name !== KUBERNETES);
  return [
    ...every('pre_init'),
    ...addons.filter(({ ref }) => isContainerRuntime(ref)).flatMap((addon) => apply(run, addon)),
    ...facts.flatMap((one) => images(run, one)),
    ...companionImages(run),
    ...kubernetes(run, (addon) => apply(run, addon)),
    ...later.flatMap((addon) => apply(run, addon)),
    ...every('post_init'),
    ...every('outro'),
  ];
}

function joinPhases(kind: 'join' | 'upgrade', run: Phased): Actions {
  const { facts, addons } = run;
  const others = addons.filter(({ ref }) => ref.name !== KUBERNETES);
  return [
    ...addons.filter(({ ref }) => isContainerRuntime(ref)).flatMap((addon) => apply(run, addon)),
    ...addons.filter(({ ref }) => ref.name === KUBERNETES).flatMap((addon) => hookOf(run, addon, 'pre_init')),
    ...facts.filter(({ ref }) => ref.name === KUBERNETES).flatMap((one) => images(run, one)),
    ...companionImages(run),
    ...others.flatMap((addon) => [
      ...facts.filter(({ ref }) => ref.name === addon.ref.name).flatMap((one) => images(run, one)),
      ...hookOf(run, addon, 'join'),
    ]),
    ...kubernetes(run, (addon) => hookOf(run, addon, kind)),
  ];
}

/** The actions of kubernetes, between the hooks that other add-ons define for before and after them. */
function kubernetes(run: Phased, actionsOf: (addon: PlannedAddon) => Actions): Actions {
  const planned = run.addons.find(({ ref }) => ref.name === KUBERNETES);
  if (planned === undefined) return [];
  const { variables, loadBalancer } = run.options;
  const isCalled = ({ ifSet, ifMoved }: AroundHook): boolean => {
    if (ifMoved !== undefined && (loadBalancer === undefined || (ifMoved === 'others' && !loadBalancer.others)))
      return false;
    return ifSet === undefined || variables.some(([name, value]) => name === ifSet && value !== '');
  };
  const around = (when: AroundHook['when']): Actions =>
    AROUND_KUBERNETES.filter((one) => one.when === when && isCalled(one)).flatMap((one) => {
      const addon = run.addons.find(({ ref }) => ref.name === one.addon);
      const idle = addon?.mode === 'already applied' && planned.mode === 'already applied';
      if (addon === undefined || idle || (planned.mode === 'join' && one.onJoin !== true)) return [];
      const actions = hookOf(run, addon, 'around', one.function);
      return one.ifMoved === undefined || loadBalancer === undefined
        ? actions
        : actions.map(withMove(loadBalancer, one));
    });
  return [...around('before'), ...actionsOf(planned), ...around('after')];
}

function withMove(
  { before, now }: LoadBalancerMove,
  { passesAddresses = false }: AroundHook,
): (action: PlannedAction) => PlannedAction {
  const because = `the load balancer was ${before} and is ${now}`;
  return (action) => ({ ...action, because, ...(passesAddresses ? { words: [before, now] } : {}) });
}

function companionsOf({ options }: Phased): readonly CompanionFacts[] {
  return options.companions ?? [];
}

/** Hooks load the images of upgrade steps themselves. */
function companionImages(run: Phased): Actions {
  return companionsOf(run)
    .filter(({ isStep }) => !isStep)
    .flatMap((one) => imagesOf(run, one.label, one.images.length));
}

/** Undefined if the files of the package are in place. */
function whyExtract(
  {
    ref,
    digest,
    omitted = [],
    inPlace,
    differs = [],
  }: Pick<PackageFacts, 'ref' | 'digest' | 'omitted' | 'inPlace' | 'differs'>,
  { extracted }: Records,
): string | undefined {
  const known = extracted.find(
    ({ tree, name, version }) => tree === ref.tree && name === ref.name && version === ref.version,
  );
  const missing = known?.omitted?.filter((folder) => !omitted.includes(folder)) ?? [];
  // A partial package has the identity of the whole one, but its plan is another plan.
  const suffix = omitted.length === 0 ? '' : `; the package omits ${omitted.join(', ')}`;
  if (known?.digest === digest && missing.length > 0) return `on this node without ${missing.join(', ')}${suffix}`;
  if (known?.digest === digest && inPlace === digest) return undefined;
  if (known?.digest === digest && differs.length > 0) return `${differsText(differs)}${suffix}`;
  return (known === undefined ? 'not on this node' : 'the node has another package of this version') + suffix;
}

function differsText(differs: readonly FileDifference[]): string {
  const [first] = differs;
  const more = differs.length === 1 ? '' : `, and ${differs.length - 1} more`;
  return `its files on this node were changed: ${first?.path} (${first?.what.join(', ')})${more}`;
}

function fetch(ref: PackageFacts['ref'], because: string): PlannedAction {
  return { id: actionId('fetch', formatRef(ref)), kind: 'fetch', addon: ref.name, because };
}

function extract(ref: PackageFacts['ref'], because: string): PlannedAction {
  return { id: actionId('extract', formatRef(ref)), kind: 'extract', addon: ref.name, because };
}

function images(run: Phased, { ref, images: own }: PackageFacts): Actions {
  return imagesOf(run, ref.name, own.length);
}

function imagesOf({ options }: Phased, name: string, count: number): Actions {
  if (!options.images || count === 0) return [];
  return [{ id: actionId('images', name), kind: 'images', addon: name, because: counted(count, 'image') }];
}

function apply(run: Phased, addon: PlannedAddon): Actions {
  return hookOf(run, addon, addon.mode === 'already applied' ? 'already_applied' : 'install');
}

function hookOf({ facts }: Phased, addon: PlannedAddon, hook: HookKind, name?: string): Actions {
  if (!addon.hasInstallScript) return [];
  const called = name ?? hookCall(addon.ref.name, hook);
  const isOwn = hook === 'install' || hook === 'already_applied' || isRemoved(addon);
  const because = isOwn ? addon.because : 'every run';
  const limit = facts.find(({ ref }) => ref.name === addon.ref.name)?.hookLimit;
  const id = actionId('hook', called);
  const common = { id, because, kind: 'hook', addon: addon.ref.name, hook, function: called } as const;
  return [limit === undefined ? common : { ...common, limit }];
}
