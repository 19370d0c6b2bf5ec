/** What is wrong with a fleet across its files. Pure. */
import type { Findings } from '../cluster/channel/findings.ts';
import { idleFields } from './effects.ts';
import { circleOf } from './rollout/depends.ts';
import { compareNames, selects, type Selector } from './rollout/groups.ts';
import { windowProblem } from './rollout/windows.ts';
import type { Path } from '../formats/yaml/yaml.ts';
import { channelEntries, identityOf, type WrittenAddon, type FleetCluster, type WrittenFleet } from './fleet.ts';

const NAME: Path = ['metadata', 'name'];

/** Adds its findings to those of the documents. */
export function checkTogether(fleet: WrittenFleet): void {
  const { clusters, addons } = fleet;
  checkNames('cluster', clusters);
  checkNames('add-on', addons);
  for (const { fields, findings } of clusters) checkWindows(fields.spec.windows, ['spec', 'windows'], findings);
  const selected = new Map(addons.map((addon) => [addon, selectedBy(addon, clusters)]));
  for (const [addon, chosen] of selected) {
    checkSelectors(addon, chosen);
    checkRollout(addon, chosen);
    checkChannel(addon, fleet);
    checkEffects(addon, fleet);
    checkDependencies(addon, addons);
  }
  checkIdentities(selected, fleet);
}

/** Names of properties of every object in JavaScript: the state of a fleet is an object by name. */
const RESERVED = ['constructor', 'prototype'];

function checkNames(what: string, all: readonly (FleetCluster | WrittenAddon)[]): void {
  const first = new Map<string, FleetCluster | WrittenAddon>();
  for (const one of all) {
    if (RESERVED.includes(one.name))
      one.findings.error('name', NAME, `no ${what} can have the name ${one.name}`, 'give it another name');
    const twin = first.get(one.name);
    if (twin === undefined) first.set(one.name, one);
    else
      one.findings.error('duplicate', NAME, `${what} ${one.name} is already in ${spotOf(twin)}`, 'delete one of them');
  }
}

function spotOf({ findings }: FleetCluster | WrittenAddon): string {
  const { file, line } = findings.placeOf(NAME);
  return `${file}:${line}`;
}

function selectedBy({ fields }: WrittenAddon, clusters: readonly FleetCluster[]): readonly FleetCluster[] {
  return clusters.filter(({ labels }) => selects(fields.spec.clusterSelector, labels));
}

function checkSelectors(
  { name, kind, fields, findings, problem }: WrittenAddon,
  chosen: readonly FleetCluster[],
): void {
  const { clusterSelector, rollout = {}, config = {} } = fields.spec;
  const at = ['spec', 'clusterSelector'];
  const isOwn = kind === 'FleetAddon' || (kind === 'HelmChartProxy' && !selects(clusterSelector, {}));
  const isSound = !isOwn || checkSelector(clusterSelector, at, findings);
  if (isSound && problem === undefined && chosen.length === 0)
    findings.add('warning', 'selector', at, `no cluster has the labels that ${name} selects`);
  if (kind !== 'FleetAddon') return;
  for (const [index, { selector }] of (rollout.groups ?? []).entries()) {
    checkSelector(selector, ['spec', 'rollout', 'groups', index, 'selector'], findings);
  }
  for (const [index, { selector }] of (config.groups ?? []).entries()) {
    checkSelector(selector, ['spec', 'config', 'groups', index, 'selector'], findings);
  }
}

function checkSelector({ matchLabels = {}, matchExpressions = [] }: Selector, path: Path, findings: Findings): boolean {
  if (Object.keys(matchLabels).length + matchExpressions.length === 0) {
    const hint = 'to select all of them, write matchExpressions with a label that each has, and operator: Exists';
    findings.error('selector', path, 'an empty selector would select every cluster, also those that come later', hint);
    return false;
  }
  let isSound = true;
  for (const [index, { operator, values = [] }] of matchExpressions.entries()) {
    const needs = operator === 'In' || operator === 'NotIn';
    if (needs === values.length > 0) continue;
    const message = needs ? `${operator} needs values` : `${operator} takes no values`;
    findings.error('selector', [...path, 'matchExpressions', index], message);
    isSound = false;
  }
  return isSound;
}

function checkRollout({ fields, findings, compat }: WrittenAddon, chosen: readonly FleetCluster[]): void {
  const { rollout = {} } = fields.spec;
  const { groups = [], mandatoryDecisionGroups = [], approval = [] } = rollout;
  checkWindows(rollout.windows, ['spec', 'rollout', 'windows'], findings);
  const names = new Set(groups.map(({ name }) => name));
  const isFilled = (name: string): boolean =>
    chosen.some(({ labels }) => groups.find(({ selector }) => selects(selector, labels))?.name === name);
  for (const [index, { groupName = '', groupIndex }] of mandatoryDecisionGroups.entries()) {
    const path = ['spec', 'rollout', 'mandatoryDecisionGroups', index, 'groupName'];
    // A group that does not exist, or is empty, is passed over there.
    if (compat === 'ocm' || (groupName === '' && groupIndex !== undefined)) continue;
    if (!names.has(groupName))
      findings.error('group', path, `there is no group ${groupName}`, 'name one of rollout.groups');
    else if (chosen.length > 0 && !isFilled(groupName)) {
      const hint = 'without it, the rollout would begin with the next group: correct its selector, or label a cluster';
      findings.error('group', path, `no selected cluster is in the mandatory group ${groupName}`, hint);
    }
  }
  for (const [index, name] of approval.entries()) {
    const path = ['spec', 'rollout', 'approval', index];
    if (!names.has(name)) findings.error('group', path, `there is no group ${name}`, 'name one of rollout.groups');
  }
}

type Windows = FleetCluster['fields']['spec']['windows'];

function checkWindows(windows: Windows = [], path: Path, findings: Findings): void {
  for (const [index, window] of windows.entries()) {
    const problem = windowProblem(window);
    if (problem !== undefined) findings.error('window', [...path, index, 'cron'], problem);
  }
}

function checkChannel(addon: WrittenAddon, fleet: WrittenFleet): void {
  const { channel: wanted } = addon.fields.spec.source;
  if (wanted === undefined) return;
  const path = ['spec', 'source', 'channel'];
  if (!fleet.channels.has(wanted.name)) {
    const hint = 'give its file to the command, too; its metadata.name must be this name';
    addon.findings.error('channel', [...path, 'name'], `there is no channel ${wanted.name}`, hint);
  } else if (channelEntries(addon, fleet).length === 0) {
    const message = `the channel ${wanted.name} has no add-on ${wanted.addon ?? addon.name}`;
    addon.findings.error('channel', [...path, 'addon'], message);
  }
}

/** What the documents of other programs become has no field that does nothing. */
function checkEffects(addon: WrittenAddon, fleet: WrittenFleet): void {
  const { kind, entry, fields, findings } = addon;
  if (kind !== 'FleetAddon') return;
  const entries = entry ? [entry] : channelEntries(addon, fleet);
  const contents = entries.flatMap(({ source }) => source?.type ?? []);
  for (const { field, why } of idleFields(fields.spec, contents)) findings.ignored(['spec', field], field, why);
  const { source, dependsOn = [] } = fields.spec;
  const required = entries.flatMap(({ requires }) => requires.map(({ name }) => name));
  const missing = new Set(required.filter((name) => !dependsOn.includes(name)));
  if (missing.size === 0) return;
  const what = `requires in the entry of the channel ${source.channel?.name}`;
  const why = 'the order of add-ons of a fleet is in their dependsOn';
  findings.ignored(['spec', 'source', 'channel'], what, why, `write dependsOn: [${[...missing].join(', ')}]`);
}

function checkDependencies(addon: WrittenAddon, addons: readonly WrittenAddon[]): void {
  const byKey = new Map(addons.map((one) => [one.name, one]));
  const own = addon.fields.spec.dependsOn ?? [];
  for (const [index, name] of own.entries()) {
    if (!byKey.has(name))
      addon.findings.error('dependency', ['spec', 'dependsOn', index], `there is no add-on ${name}`);
  }
  const circle = circleOf(addon.name, (name) => byKey.get(name)?.fields.spec.dependsOn);
  // Once for each circle.
  if (circle === undefined || circle.some((other) => compareNames(other, addon.name, 'native') < 0)) return;
  const path = ['spec', 'dependsOn', own.indexOf(circle[1] ?? '')];
  addon.findings.error(
    'circle',
    path,
    `these depend on each other: ${circle.join(' -> ')}`,
    'remove one of the dependencies',
  );
}

/** Two add-ons with one release on one cluster. */
function checkIdentities(selected: ReadonlyMap<WrittenAddon, readonly FleetCluster[]>, fleet: WrittenFleet): void {
  const owners = new Map<string, WrittenAddon>();
  for (const [addon, clusters] of selected) {
    const identity = identityOf(addon, fleet);
    if (identity === undefined) continue;
    for (const cluster of clusters) {
      const key = `${cluster.name} ${identity}`;
      const owner = owners.get(key);
      owners.set(key, owner ?? addon);
      if (owner === undefined || owner.name === addon.name) continue;
      const message = `${owner.name} in ${spotOf(owner)} has the same ${identity} on ${cluster.name}`;
      addon.findings.error('identity', ['spec', 'source'], message, 'let one of them select other clusters');
      break;
    }
  }
}
