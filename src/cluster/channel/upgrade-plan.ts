/** Versions of add-ons along an upgrade of Kubernetes: which add-on moves before which step. Pure. */
import { CurlewError } from '../../core/errors.ts';
import { compareVersions } from '../../core/ref.ts';
import { byName, entryTitle, type Candidate, type Compat, type Identity, type Requirement } from './channel.ts';
import { bestOf, entriesOf, runsOn, meets, replaces } from './choose.ts';
import { contains, formatRange, kubernetesTriple, parseRange, type Triple } from './range.ts';

type Planned = Candidate & { readonly requires?: readonly Requirement[] };

type Step<T> =
  | { readonly type: 'kubernetes'; readonly version: string }
  | {
      readonly type: 'addon';
      readonly addon: string;
      readonly entry: T;
      readonly because: string;
      /** It moves after a step of Kubernetes that the version before it does not fit. */
      readonly afterGap: boolean;
    };

/** An entry that would have been an answer, and why it is not one. */
export interface NearEntry<T> {
  readonly entry: T;
  readonly fits: 'old' | 'new' | 'both';
  readonly because: string;
}

/** Where an upgrade cannot pass. */
export interface Gap<T> {
  readonly addon: string;
  /** The Kubernetes versions before and after the step. */
  readonly from: string;
  readonly at: string;
  /** `gap at v1.31.0: …`. */
  readonly message: string;
  readonly near: readonly NearEntry<T>[];
  /** The change that closes it. */
  readonly hint: string | undefined;
}

export interface UpgradePlan<T> {
  /** Empty if there are gaps: nothing is to be touched then. */
  readonly steps: readonly Step<T>[];
  readonly gaps: readonly Gap<T>[];
  /** Installed add-ons that the channel does not have: the plan says nothing about them. */
  readonly unknown: readonly string[];
}

export interface UpgradeRequest {
  /** The version of the cluster, then each version that it is upgraded to, in order. Each must be a version. */
  readonly kubernetes: readonly string[];
  readonly installed: ReadonlyMap<string, Identity>;
  readonly compat: Compat;
  readonly allowDowngrade?: boolean;
  /** Where no version of an add-on fits both sides of a step, it moves right after the step, as by kops. */
  readonly allowGap?: boolean;
}

const MAX_NEAR = 3;

/**
 * For each step of Kubernetes: add-ons that also fit the new version stay. Others move before the step, to the newest version
 * that fits the old and the new one and from which the rest of the upgrade is possible. If there is none, there is a gap. After
 * the last step each add-on moves to the newest version that fits. Add-ons that others require move before these.
 */
export function planUpgrade<T extends Planned>(entries: readonly T[], request: UpgradeRequest): UpgradePlan<T> {
  const stages = request.kubernetes.map((text) => ({ text, version: kubernetesTriple(text) }));
  const gaps: Gap<T>[] = [];
  const unknown: string[] = [];
  const moves = stages.map((): T[] => []);
  const late = new Set<T>();
  const addons = byName(entries);
  for (const [addon, installed] of request.installed) {
    const own = addons.get(addon);
    if (own === undefined) unknown.push(addon);
    else {
      const { way, gap } = planAddon(own, { ...request, stages, installed });
      if (gap !== undefined) gaps.push(gap);
      for (const { before, entry, afterGap } of way) {
        moves[before]?.push(entry);
        if (afterGap) late.add(entry);
      }
    }
  }
  if (gaps.length === 0) gaps.push(...unmet(moves, addons, { ...request, stages }));
  if (gaps.length > 0) return { steps: [], gaps, unknown };
  const steps = moves.flatMap((moved, index): readonly Step<T>[] => {
    const next = stages[index + 1]?.text;
    const because = next === undefined ? 'the newest that fits' : `what is installed does not fit ${next}`;
    const after = `GAP: until now, what is installed does not fit ${stages[index]?.text ?? ''}`;
    const before = inOrder(moved).map((entry) => {
      const afterGap = late.has(entry);
      return { type: 'addon', addon: entry.name, entry, because: afterGap ? after : because, afterGap } as const;
    });
    return next === undefined ? before : [...before, { type: 'kubernetes', version: next }];
  });
  return { steps, gaps, unknown };
}

interface Stage {
  readonly text: string;
  readonly version: Triple;
}

interface AddonRequest extends Pick<UpgradeRequest, 'compat' | 'allowDowngrade' | 'allowGap'> {
  readonly stages: readonly Stage[];
  readonly installed: Identity;
}

interface Move<T> {
  /** Index of the version of Kubernetes at which the add-on moves: before the step to the next one. */
  readonly before: number;
  readonly entry: T;
  readonly afterGap?: boolean;
}

function planAddon<T extends Planned>(
  own: readonly T[],
  request: AddonRequest,
): { readonly way: readonly Move<T>[]; readonly gap?: Gap<T> } {
  const { stages, installed, compat } = request;
  const { reaches, bestBefore, bestAfter } = lookAhead(own, request);
  const same = entriesOf(own, own[0]?.name ?? '', installed);
  const [first, last] = [stages[0], stages.at(-1)];
  const fitting = (stage: Stage | undefined, among: readonly T[]): readonly T[] =>
    among.filter((entry) => stage !== undefined && runsOn(entry, stage.version));
  let current = bestOf(fitting(first, same), compat) ?? bestOf(same, compat);
  const way: Move<T>[] = [];
  for (const [index, next] of stages.slice(1).entries()) {
    const target = bestBefore(index, current ?? installed);
    const stays = current !== undefined && runsOn(current, next.version);
    if (stays && current !== undefined && (target === undefined || reaches(index + 1, current))) continue;
    const later =
      target === undefined && request.allowGap === true ? bestAfter(index, current ?? installed) : undefined;
    if (later !== undefined) {
      way.push({ before: index + 1, entry: later, afterGap: true });
      current = later;
      continue;
    }
    if (target === undefined) {
      const [old] = stages.slice(index);
      return { way: [], gap: gapOf(own, { old: old ?? next, next }, { current: current ?? installed, compat }) };
    }
    way.push({ before: index, entry: target });
    current = target;
  }
  const newest = bestOf(fitting(last, own), compat);
  if (newest !== undefined && newest !== current && replaces(current ?? installed, newest, compat).replaces) {
    way.push({ before: stages.length - 1, entry: newest });
  }
  return { way };
}

interface LookAhead<T> {
  /** Can the last version of Kubernetes be reached from a stage with this entry? */
  readonly reaches: (stage: number, entry: T) => boolean;
  /** The entry to move to before the step from a stage, if the add-on moves there. */
  readonly bestBefore: (stage: number, current: Identity) => T | undefined;
  /** The entry to move to after the step from a stage. */
  readonly bestAfter: (stage: number, current: Identity) => T | undefined;
}

/** From the end to the start: the newest that fits now may be one that nothing later follows. */
function lookAhead<T extends Planned>(
  own: readonly T[],
  { stages, compat, allowDowngrade }: AddonRequest,
): LookAhead<T> {
  const isUp = (entry: T, than: Identity): boolean => allowDowngrade === true || !isLowerThan(entry, than, compat);
  const tops: (T | undefined)[] = [];
  const reaches = (stage: number, entry: T): boolean => {
    const [next, top] = [stages[stage + 1], tops[stage]];
    if (next === undefined || (runsOn(entry, next.version) && reaches(stage + 1, entry))) return true;
    return top !== undefined && isUp(top, entry);
  };
  const both = stages.slice(1).map((next, index) => {
    const [old] = stages.slice(index);
    return own.filter((entry) => old !== undefined && runsOn(entry, old.version) && runsOn(entry, next.version));
  });
  for (let stage = both.length - 1; stage >= 0; stage -= 1) {
    tops[stage] = bestOf(both[stage]?.filter((entry) => reaches(stage + 1, entry)) ?? [], compat);
  }
  const bestBefore = (stage: number, current: Identity): T | undefined => {
    const top = tops[stage];
    if (top !== undefined && isUp(top, current)) return top;
    // The end is not reached: the gap is shown where it is, further on.
    return bestOf(both[stage]?.filter((entry) => isUp(entry, current)) ?? [], compat);
  };
  const bestAfter = (stage: number, current: Identity): T | undefined => {
    const next = stages[stage + 1];
    const able = own.filter((entry) => next !== undefined && runsOn(entry, next.version) && isUp(entry, current));
    return (
      bestOf(
        able.filter((entry) => reaches(stage + 1, entry)),
        compat,
      ) ?? bestOf(able, compat)
    );
  };
  return { reaches, bestBefore, bestAfter };
}

function isLowerThan(entry: Identity, than: Identity, compat: Compat): boolean {
  if (compat === 'kops' || entry.version === undefined || than.version === undefined) return false;
  return replaces(than, entry, compat).reason === 'version-lower';
}

function gapOf<T extends Planned>(
  own: readonly T[],
  { old, next }: { readonly old: Stage; readonly next: Stage },
  { current, compat }: { readonly current: Identity; readonly compat: Compat },
): Gap<T> {
  const addon = own[0]?.name ?? '';
  const near: NearEntry<T>[] = [];
  for (const which of ['both', 'new', 'old'] as const) {
    const candidates = own.filter((entry) => nearness(entry, old, next) === which);
    for (let pool = candidates; pool.length > 0 && candidates.length - pool.length < MAX_NEAR;) {
      const entry = bestOf(pool, compat) as T;
      near.push({ entry, fits: which, because: whyNot(entry, which, { old, next, current }) });
      pool = pool.filter((one) => one !== entry);
    }
  }
  const what = current.version === undefined ? addon : `${addon} ${current.version}`;
  const message = `gap at ${next.text}: ${what} does not fit it, and no version to move to fits ${old.text} as well`;
  return { addon, from: old.text, at: next.text, message, near, hint: gapHint(near, { old, next }) };
}

function gapHint<T extends Planned>(
  near: readonly NearEntry<T>[],
  { old, next }: { readonly old: Stage; readonly next: Stage },
): string | undefined {
  const [lower, newer, older] = (['both', 'new', 'old'] as const).map(
    (which) => near.find((one) => one.fits === which)?.entry,
  );
  if (lower !== undefined) return `--allow-downgrade moves to ${entryTitle(lower)}`;
  const ways = [
    ...(newer === undefined ? [] : [`let the range of ${entryTitle(newer)} include ${old.text}`]),
    ...(older === undefined ? [] : [`let the range of ${entryTitle(older)} include ${next.text}`]),
  ];
  if (ways.length === 0) return undefined;
  const after = newer === undefined ? '' : `; --allow-gap moves ${newer.name} right after the step, as kops does`;
  return `if it runs there, ${ways.join(', or ')}${after}`;
}

function nearness(entry: Candidate, old: Stage, next: Stage): NearEntry<unknown>['fits'] | undefined {
  const [before, after] = [runsOn(entry, old.version), runsOn(entry, next.version)];
  if (before && after) return 'both';
  return before ? 'old' : after ? 'new' : undefined;
}

function whyNot(
  entry: Candidate,
  which: NearEntry<unknown>['fits'],
  { old, next, current }: { readonly old: Stage; readonly next: Stage; readonly current: Identity },
): string {
  if (which === 'both') return `it is lower than the installed ${current.version ?? ''}`;
  const missing = which === 'new' ? old : next;
  return `it is for Kubernetes ${formatRange(entry.range ?? [])}, not ${missing.text}`;
}

/** Required add-ons first; otherwise in the order given. Circles are left as they are. Not recursive: chains may be long. */
export function inOrder<T extends Planned>(entries: readonly T[]): readonly T[] {
  const names = byName(entries);
  const ordered = new Set<T>();
  const open = new Set<T>();
  const stack = entries.toReversed();
  for (let entry = stack.at(-1); entry !== undefined; entry = stack.at(-1)) {
    const required = open.has(entry) ? [] : (entry.requires ?? []).flatMap(({ name }) => names.get(name) ?? []);
    open.add(entry);
    const before = required.filter((other) => !open.has(other));
    if (before.length === 0) ordered.add(entry);
    if (before.length === 0) stack.pop();
    else stack.push(...before.toReversed());
  }
  return [...ordered];
}

/** Requirements of what moves that the versions at that time do not meet. */
function unmet<T extends Planned>(
  moves: readonly (readonly T[])[],
  addons: ReadonlyMap<string, readonly T[]>,
  { installed, stages }: Pick<UpgradeRequest, 'installed'> & Pick<AddonRequest, 'stages'>,
): readonly Gap<T>[] {
  const versions = new Map([...installed].map(([name, { version }]) => [name, version]));
  return moves.flatMap((moved, index) => {
    for (const { name, version } of moved) versions.set(name, version);
    const from = stages[index]?.text ?? '';
    const at = stages[index + 1]?.text ?? from;
    return moved.flatMap((entry) =>
      (entry.requires ?? []).flatMap((required): readonly Gap<T>[] => {
        const version = versions.get(required.name);
        if (meets(required, version)) return [];
        const near = (addons.get(required.name) ?? [])
          .filter((other) => meets(required, other.version))
          .toSorted((a, b) => compareVersions(b.version ?? '', a.version ?? ''))
          .slice(0, MAX_NEAR)
          .map((other) => ({ entry: other, fits: 'both', because: `${entryTitle(entry)} requires it` }) as const);
        const has = version === undefined ? 'it is not installed' : `it would be ${version}`;
        const wanted = `${required.name} ${required.version}`.trim();
        return [
          {
            addon: entry.name,
            from,
            at,
            message: `gap at ${at}: ${entryTitle(entry)} requires ${wanted}, and ${has}`,
            near,
            hint: undefined,
          },
        ];
      }),
    );
  });
}

/**
 * The versions of Kubernetes on the way `from` a cluster's `to` another, both included: the newest available patch of each
 * minor in between. `to` may be `v1.35.x`. Throws `NOT_FOUND` if a minor is not available, and `USAGE` if the way is not
 * upward.
 */
export function kubernetesSteps(from: string, to: string, available: readonly string[]): readonly string[] {
  const [major, first, patch] = kubernetesTriple(from);
  const isNewest = to.endsWith('.x');
  const [lastMajor, last, lastPatch] = kubernetesTriple(to.replace(/\.x$/, '.0'));
  if (lastMajor !== major || last < first || (last === first && !isNewest && lastPatch < patch)) {
    throw new CurlewError('USAGE', `Kubernetes ${from} cannot be upgraded to ${to}`, {
      hint: 'name a later version of the same major',
    });
  }
  const steps = [from];
  for (let minor = first === last ? last : first + 1; minor <= last; minor += 1) {
    const range = parseRange(`${major}.${minor}.x`, 'native').range ?? [];
    const patches = available.filter((version) => contains(range, kubernetesTriple(version)));
    const newest = minor === last && !isNewest ? to : patches.toSorted(compareVersions).at(-1);
    if (newest === undefined) {
      throw new CurlewError('NOT_FOUND', `gap at v${major}.${minor}: no Kubernetes of this minor is available`, {
        hint: 'Kubernetes is upgraded minor by minor: add a version of it to the channel, or name one with --available',
      });
    }
    if (compareVersions(newest, from) > 0) steps.push(newest);
  }
  return steps;
}
