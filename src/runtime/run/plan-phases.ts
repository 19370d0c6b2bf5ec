/** The actions of a run in their order (design: on the node; kurl.md 6.2, 6.3). Pure. */
import { formatRef, type AddonRef } from '../../core/ref.ts';
import {
  AROUND_KUBERNETES,
  hookFunction,
  isContainerRuntime,
  KUBERNETES,
  type AroundHook,
  type Hook,
} from '../hooks/hooks.ts';
import type { FileDifference } from '../node/placed-files.ts';
import type { Records } from '../node/records.ts';
import type {
  AlongFacts,
  LoadBalancerMove,
  PackageFacts,
  PlanOptions,
  PlannedAction,
  PlannedAddon,
  RunKind,
} from './run-plan.ts';

interface Phased {
  /** In the order of the run, like `addons`. */
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
  const beside = along(run).flatMap((one) => {
    const lacks = whyExtract(one, records);
    return lacks === undefined ? [] : [{ ...one, because: `${one.because}; ${lacks}` }];
  });
  return [
    ...fetches.map(({ ref, because }) => fetch(ref, because)),
    ...beside
      .filter(({ remote }) => remote)
      .map(({ ref, label, because }) => ({ ...fetch(ref, because), addon: label })),
    ...missing.map(({ ref, because }) => extract(ref, because)),
    ...beside.map(({ ref, label, because }) => ({ ...extract(ref, because), addon: label })),
    ...(kind === 'install' ? installPhases(run) : joinPhases(kind, run)),
    ...removed,
  ];
}

/** Whether a run removes an add-on, from the cluster or only from this node. */
export function isRemoved({ mode }: Pick<PlannedAddon, 'mode'>): boolean {
  return mode === 'remove' || mode === 'leave';
}

/** What add-ons have in the cluster goes first, while all that it may need is there. */
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
  const every = (hook: Hook): Actions => addons.flatMap((addon) => hookOf(run, addon, hook));
  const later = addons.filter(({ ref }) => !isContainerRuntime(ref) && ref.name !== KUBERNETES);
  return [
    ...every('pre_init'),
    ...addons.filter(({ ref }) => isContainerRuntime(ref)).flatMap((addon) => apply(run, addon)),
    ...facts.flatMap((one) => images(run, one)),
    ...alongImages(run),
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
    ...alongImages(run),
    ...others.flatMap((addon) => [
      ...facts.filter(({ ref }) => ref.name === addon.ref.name).flatMap((one) => images(run, one)),
      ...hookOf(run, addon, 'join'),
    ]),
    ...kubernetes(run, (addon) => hookOf(run, addon, kind)),
  ];
}

/** What is done to kubernetes, between the functions that other add-ons have for that moment. */
function kubernetes(run: Phased, act: (addon: PlannedAddon) => Actions): Actions {
  const found = run.addons.find(({ ref }) => ref.name === KUBERNETES);
  if (found === undefined) return [];
  const { variables, loadBalancer } = run.options;
  const isWanted = ({ ifSet, ifMoved }: AroundHook): boolean => {
    if (ifMoved !== undefined && (loadBalancer === undefined || (ifMoved === 'others' && !loadBalancer.others)))
      return false;
    return ifSet === undefined || variables.some(([name, value]) => name === ifSet && value !== '');
  };
  const around = (when: AroundHook['when']): Actions =>
    AROUND_KUBERNETES.filter((one) => one.when === when && isWanted(one)).flatMap((one) => {
      const addon = run.addons.find(({ ref }) => ref.name === one.addon);
      const idle = addon?.mode === 'already applied' && found.mode === 'already applied';
      if (addon === undefined || idle || (found.mode === 'join' && one.onJoin !== true)) return [];
      const actions = hookOf(run, addon, 'around', one.function);
      return one.ifMoved === undefined || loadBalancer === undefined ? actions : actions.map(toldOf(loadBalancer, one));
    });
  return [...around('before'), ...act(found), ...around('after')];
}

function toldOf(
  { before, now }: LoadBalancerMove,
  { isTold = false }: AroundHook,
): (action: PlannedAction) => PlannedAction {
  const because = `the load balancer was ${before} and is ${now}`;
  return (action) => ({ ...action, because, ...(isTold ? { words: [before, now] } : {}) });
}

function along({ options }: Phased): readonly AlongFacts[] {
  return options.along ?? [];
}

/** Steps load their own images when they are taken. */
function alongImages(run: Phased): Actions {
  return along(run)
    .filter(({ isStep }) => !isStep)
    .flatMap((one) => imagesOf(run, one.label, one.images.length));
}

/** Undefined when the files of the package lie in the install folder. */
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
  const lacks = known?.omitted?.filter((folder) => !omitted.includes(folder)) ?? [];
  // One in part has the identity of the whole: a plan that was made with the other is another plan.
  const comes = omitted.length === 0 ? '' : `; it comes without ${omitted.join(', ')}`;
  if (known?.digest === digest && lacks.length > 0) return `the node has it without ${lacks.join(', ')}${comes}`;
  if (known?.digest === digest && inPlace === digest) return undefined;
  if (known?.digest === digest && differs.length > 0) return `${differsText(differs)}${comes}`;
  return (known === undefined ? 'not on this node' : 'the node has another package of this version') + comes;
}

function differsText(differs: readonly FileDifference[]): string {
  const [first] = differs;
  const more = differs.length === 1 ? '' : `, and ${differs.length - 1} more`;
  return `its files on this node were changed: ${first?.path} (${first?.what.join(', ')})${more}`;
}

function fetch(ref: PackageFacts['ref'], because: string): PlannedAction {
  return { id: `fetch ${formatRef(ref)}`, kind: 'fetch', addon: ref.name, because };
}

function extract(ref: PackageFacts['ref'], because: string): PlannedAction {
  return { id: `extract ${formatRef(ref)}`, kind: 'extract', addon: ref.name, because };
}

function images(run: Phased, { ref, images: own }: PackageFacts): Actions {
  return imagesOf(run, ref.name, own.length);
}

function imagesOf({ options }: Phased, name: string, count: number): Actions {
  if (!options.images || count === 0) return [];
  return [{ id: `images ${name}`, kind: 'images', addon: name, because: `${count} images` }];
}

function apply(run: Phased, addon: PlannedAddon): Actions {
  return hookOf(run, addon, addon.mode === 'already applied' ? 'already_applied' : 'install');
}

function hookOf({ facts }: Phased, addon: PlannedAddon, hook: Hook, name?: string): Actions {
  if (!addon.hasInstallScript) return [];
  const words = name ?? hookFunction(addon.ref.name, hook);
  const isOwn = hook === 'install' || hook === 'already_applied' || isRemoved(addon);
  const because = isOwn ? addon.because : 'every run';
  const limit = facts.find(({ ref }) => ref.name === addon.ref.name)?.hookLimit;
  const common = { id: `hook ${words}`, because, kind: 'hook', addon: addon.ref.name, hook, function: words } as const;
  return [limit === undefined ? common : { ...common, limit }];
}
