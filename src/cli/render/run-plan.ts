/** Renders a dry run, wrapped to the screen. */
import { counted } from '../../core/counted.ts';
import { visible } from '../../core/diagnostic.ts';
import type { AddonOutlook, DryRun } from '../../runtime/run/dry-run.ts';
import type { HostChecks } from '../../runtime/host/host-checks.ts';
import { countsText, resultLines } from '../../runtime/preflight/report.ts';
import type { HostPlan } from '../../runtime/host/host-plan.ts';
import { clusterText } from '../../runtime/node/node-place.ts';
import { runName } from '../../runtime/plan/run-plan.ts';
import type { StayingAddon } from '../../runtime/plan/plan.ts';
import type { MountPlan } from '../../runtime/plan/disk.ts';
import { screen, wrap } from './columns.ts';
import { formatBytes } from './units.ts';

const LABEL = 11;

/** Completes the commands in a text, as `suggesting` does. */
export type Suggest = (text: string) => string;

/** `1.1.0`, or `1.0.0 → 1.1.0` if it replaces a version. */
export function versionText({ version, replaces }: Pick<AddonOutlook, 'version' | 'replaces'>): string {
  return replaces === undefined ? version : `${replaces} → ${version}`;
}

/** `stays` are installed add-ons that are not in the spec. */
export function renderDryRun(run: DryRun, stays: readonly StayingAddon[], suggest: Suggest): string {
  const { plan, directory, cluster, addons, along = [], host, checks, problems, out } = run;
  const removals = addons.filter(({ apply }) => apply.mode === 'remove' || apply.mode === 'leave').length;
  const isRemoval = plan.kind === 'uninstall' || plan.kind === 'reset';
  const pruned = isRemoval || removals === 0 ? '' : `, removal of ${removals}`;
  const count = counted(addons.length - (isRemoval ? 0 : removals), 'add-on');
  const title = `Plan: ${runName(plan)} of ${count}${pruned} in ${visible(directory)}`;
  const before = plan.continues === undefined ? [] : [`Resumes run ${plan.continues.run}.`];
  return [
    [title, ...before],
    cluster === undefined ? [] : wrap(`Cluster: ${visible(clusterText(cluster))}`, screen.columns),
    ...addons.map((addon) => addonLines(addon, suggest)),
    ...along.map(({ name, version, because }) => [`${name} ${version}`, ...entry('extra', because)]),
    ...stays.map(({ name, version }) => [`${name} ${version}`, ...entry('stays', 'not in the spec')]),
    ...(isRemoval ? [] : [diskLines(host.disk.mounts), portLines(host.ports), memoryLines(host.memory)]),
    checkLines(checks),
    endLines(problems, out),
  ]
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

/** A label and its wrapped text. */
function entry(label: string, text: string): readonly string[] {
  const lines = wrap(visible(text), screen.columns - LABEL);
  return lines.map((line, index) => `  ${(index === 0 ? label : '').padEnd(LABEL - 2)}${line}`);
}

function addonLines(addon: AddonOutlook, suggest: Suggest): readonly string[] {
  const { name, version, fetch, extract, images, back, noBack, apply, hooks, leaves, done } = addon;
  const last = [
    ...entry(apply.mode === 'already applied' ? 'skip' : apply.mode, apply.because),
    ...entry('hooks', hooks.length === 0 ? 'none' : hooks.join(' ')),
    ...(done.length === 0 ? [] : entry('done', done.join(' '))),
  ];
  if (apply.mode === 'remove' || apply.mode === 'leave')
    return [`${name} ${version}`, ...last, ...(leaves === undefined ? [] : entry('leaves', leaves))];
  return [
    `${name} ${versionText(addon)}`,
    ...(fetch === undefined ? [] : entry('fetch', `${fetch.because}: ${formatBytes(fetch.bytes)}`)),
    ...entry('extract', extract.because + (extract.wanted ? `: ${formatBytes(extract.bytes)}` : '')),
    ...entry('images', imageText(images)),
    ...last,
    ...(back === undefined
      ? []
      : entry('back', suggest(`curlew rollback ${name} restores ${back}, whose package is kept`))),
    ...(noBack === undefined ? [] : entry('back', `not possible after this run: ${noBack}`)),
  ];
}

function imageText({ total, missing, bytes, skipped }: AddonOutlook['images']): string {
  if (total === 0) return 'none';
  if (skipped !== undefined) return `not loaded: ${skipped}`;
  if (missing.length === 0) return total === 1 ? 'already loaded' : `all ${total} already loaded`;
  return `${missing.length} of ${total} to load, ${formatBytes(bytes)}: ${missing.join(' ')}`;
}

function diskLines(mounts: readonly MountPlan[]): readonly string[] {
  return [
    'Disk usage at the peak of the run',
    ...mounts.flatMap(mountLines),
    '  Files written by hooks are unknown and not included.',
  ];
}

const MAX_NEEDS = 5;

function mountLines(mount: MountPlan): readonly string[] {
  const { mountPoint, total, free, peak, reserve, short, inodes, needs } = mount;
  const files = inodes === undefined || inodes.peak === 0 ? '' : `, ${inodes.peak} of ${inodes.free} possible files`;
  const texts = [
    `${formatBytes(peak)} of ${formatBytes(free)} free (${formatBytes(total)} total)${files}`,
    ...(reserve === 0 ? [] : [`15% of it, ${formatBytes(reserve)}, must stay free; otherwise kubelet removes images`]),
    ...needs.slice(0, MAX_NEEDS).map(needText),
    ...(needs.length > MAX_NEEDS ? [`and ${needs.length - MAX_NEEDS} smaller ones`] : []),
    ...(short === 0 ? [] : [`${formatBytes(short)} more needed`]),
    ...(inodes === undefined || inodes.short === 0 ? [] : [`${inodes.short} more inodes needed`]),
  ];
  const fits = mountPoint.length < LABEL - 2;
  const lines = texts.flatMap((text, index) => entry(index === 0 && fits ? visible(mountPoint) : '', text));
  return fits ? lines : [`  ${visible(mountPoint)}`, ...lines];
}

/** Explains estimates; the size of an extracted package needs no explanation. */
function needText({ use, addon, bytes, because }: MountPlan['needs'][number]): string {
  return `${formatBytes(bytes)}: ${use} of ${addon}${use === 'package' ? '' : `, ${because}`}`;
}

function portLines(ports: HostPlan['ports']): readonly string[] {
  if (ports.length === 0) return [];
  return [
    'Ports',
    ...ports.map(({ port, protocol, addon, what, state, process }) => {
      const who = process === undefined ? '' : ` by ${visible(process)}`;
      return `  ${`${port}/${protocol}`.padEnd(LABEL)}${`${addon}, ${what}`.padEnd(36)}${state}${who}`;
    }),
  ];
}

function memoryLines(memory: HostPlan['memory']): readonly string[] {
  if (memory === undefined) return [];
  return [`Memory: ${formatBytes(memory.available)} of ${formatBytes(memory.total)} available`];
}

function checkLines(checks: HostChecks | undefined): readonly string[] {
  if (checks === undefined) return [];
  const { mode, counts, results, leftOut } = checks;
  const ignored = mode === 'ignore' ? '; the run ignores the results' : '';
  return [
    ...wrap(`Host preflights: ${countsText(counts)}${ignored}`, screen.columns),
    ...results
      .filter(({ verdict }) => verdict !== 'pass')
      .flatMap((result) => resultLines(result, { width: screen.columns - 2 }))
      .map((line) => `  ${line}`),
    ...(leftOut.length === 0 ? [] : entry('', `not checked in a dry run: ${leftOut.map(visible).join(', ')}`)),
  ];
}

function endLines(problems: readonly string[], out: string | undefined): readonly string[] {
  return [
    ...problems.flatMap((text) => wrap(`Problem: ${visible(text)}`, screen.columns)),
    out === undefined ? 'Nothing has changed.' : `Nothing has changed; the plan is in ${visible(out)}`,
  ];
}
