/**
 * The table of commands: the request of each, and its module, which is loaded on demand, so that `--help` loads none. A name of
 * two words, such as `installer validate`, belongs to the family of its first word.
 */
import * as archive from '../requests/archive.ts';
import * as build from '../requests/build.ts';
import * as dev from '../requests/dev.ts';
import * as bundle from '../requests/bundle.ts';
import * as channel from '../requests/channel.ts';
import * as cluster from '../requests/cluster.ts';
import * as fleet from '../requests/fleet.ts';
import * as machine from '../requests/machine.ts';
import * as agent from '../requests/agent.ts';
import * as hub from '../requests/hub.ts';
import * as registration from '../requests/registration.ts';
import * as installer from '../requests/installer.ts';
import * as node from '../requests/node.ts';
import * as own from '../requests/own.ts';
import * as release from '../requests/release.ts';
import * as repository from '../requests/repository.ts';
import * as serve from '../requests/serve.ts';
import { CurlewError, ERRORS } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { Request } from '../core/request.ts';
import { ownPages } from '../own/scripts.ts';
import type { Command } from './command.ts';
import type { MissingAt } from './suggested-commands.ts';
import { walkWords } from './walk-words.ts';

interface Row {
  readonly of: Request;
  /** Headline in the list of commands. */
  readonly group: string;
  readonly load: () => Promise<Command>;
}

/** The cast removes the result type, because the table contains commands with different results. */
function row<Result>(of: Request, load: () => Promise<Command<Result>>): Omit<Row, 'group'> {
  return { of, load: load as () => Promise<Command> };
}

function grouped(group: string, rows: readonly Omit<Row, 'group'>[]): readonly (readonly [string, Row])[] {
  return rows.map((one) => [one.of.name, { ...one, group }]);
}

export const COMMANDS: ReadonlyMap<string, Row> = new Map([
  ...grouped('Add-ons', [
    row(repository.NEW, async () => (await import('./commands/new.ts')).command),
    row(repository.GENERATE, async () => (await import('./commands/generate.ts')).command),
    row(repository.LINT, async () => (await import('./commands/lint.ts')).command),
    row(build.BUILD, async () => (await import('./commands/build.ts')).command),
    row(dev.DEV, async () => (await import('./commands/dev.ts')).command),
    row(build.OUTDATED, async () => (await import('./commands/outdated.ts')).command),
    row(build.CHANGED, async () => (await import('./commands/changed.ts')).command),
    row(repository.IMPORT, async () => (await import('./commands/import.ts')).command),
  ]),
  ...grouped('Stores', [
    row(build.PUBLISH, async () => (await import('./commands/publish.ts')).command),
    row(release.PROMOTE, async () => (await import('./commands/promote.ts')).command),
    row(release.VERSIONS, async () => (await import('./commands/versions.ts')).command),
    row(release.PRUNE, async () => (await import('./commands/prune.ts')).command),
    row(release.REINDEX, async () => (await import('./commands/reindex.ts')).command),
    row(release.IMPORT_EXTERNAL, async () => (await import('./commands/import-external.ts')).command),
    row(serve.SERVE, async () => (await import('./commands/serve.ts')).command),
  ]),
  ...grouped('Bundles', [
    row(installer.INSTALLER_VALIDATE, async () => (await import('./commands/installer.ts')).validate),
    row(installer.INSTALLER_MERGE, async () => (await import('./commands/installer.ts')).merge),
    row(installer.INSTALLER_ENV, async () => (await import('./commands/installer.ts')).env),
    row(installer.INSTALLER_ID, async () => (await import('./commands/installer.ts')).id),
    row(installer.INSTALLER_RESOLVE, async () => (await import('./commands/installer.ts')).resolve),
    row(bundle.BUNDLE, async () => (await import('./commands/bundle.ts')).command),
    row(bundle.INVENTORY, async () => (await import('./commands/inventory.ts')).command),
    row(bundle.APPLY, async () => (await import('./commands/apply.ts')).command),
    row(bundle.SPLIT, async () => (await import('./commands/split.ts')).command),
    row(bundle.JOIN_PARTS, async () => (await import('./commands/join-parts.ts')).command),
    row(archive.PULL, async () => (await import('./commands/pull.ts')).command),
    row(archive.INSPECT, async () => (await import('./commands/inspect.ts')).command),
    row(archive.VERIFY, async () => (await import('./commands/verify.ts')).command),
    row(archive.SBOM, async () => (await import('./commands/sbom.ts')).command),
    row(archive.PROVENANCE, async () => (await import('./commands/provenance.ts')).command),
    row(archive.KEYGEN, async () => (await import('./commands/keygen.ts')).command),
    row(archive.SIGN, async () => (await import('./commands/sign.ts')).command),
  ]),
  ...grouped('On a node', [
    row(node.INSTALL, async () => (await import('./commands/install.ts')).command),
    row(node.JOIN, async () => (await import('./commands/join.ts')).command),
    row(node.JOIN_TOKEN, async () => (await import('./commands/join-token.ts')).command),
    row(node.UPGRADE, async () => (await import('./commands/upgrade.ts')).command),
    row(node.RESUME, async () => (await import('./commands/resume.ts')).command),
    row(node.ROLLBACK, async () => (await import('./commands/rollback.ts')).command),
    row(node.PREFLIGHT, async () => (await import('./commands/preflight.ts')).command),
    row(node.UNINSTALL, async () => (await import('./commands/uninstall.ts')).command),
    row(node.RESET, async () => (await import('./commands/reset.ts')).command),
    row(node.NODE_DRAIN, async () => (await import('./commands/node-drain.ts')).command),
    row(node.NODE_REMOVE, async () => (await import('./commands/node-remove.ts')).command),
    row(node.NODE_REPAIR, async () => (await import('./commands/node-repair.ts')).command),
    row(node.ETCD_SNAPSHOT, async () => (await import('./commands/etcd.ts')).snapshot),
    row(node.ETCD_RESTORE, async () => (await import('./commands/etcd.ts')).restore),
    row(node.CERTIFICATES_RENEW, async () => (await import('./commands/certificates-renew.ts')).command),
    row(node.STATUS, async () => (await import('./commands/status.ts')).command),
    row(node.WHY, async () => (await import('./commands/why.ts')).command),
    row(node.LOGS, async () => (await import('./commands/logs.ts')).command),
    row(node.LOAD_IMAGES, async () => (await import('./commands/load-images.ts')).command),
  ]),
  ...grouped('Clusters', [
    row(channel.CHANNEL_CHECK, async () => (await import('./commands/channel.ts')).check),
    row(channel.CHANNEL_APPLY, async () => (await import('./commands/channel-cluster.ts')).apply),
    row(channel.CHANNEL_STATUS, async () => (await import('./commands/channel-cluster.ts')).status),
    row(channel.CHANNEL_REMOVE, async () => (await import('./commands/channel-cluster.ts')).remove),
    row(channel.CHANNEL_EXPLAIN, async () => (await import('./commands/channel.ts')).explain),
    row(channel.CHANNEL_PLAN, async () => (await import('./commands/channel.ts')).plan),
    row(cluster.CLUSTER_DIFF, async () => (await import('./commands/cluster.ts')).diff),
    row(cluster.CLUSTER_PLAN, async () => (await import('./commands/cluster.ts')).plan),
    row(cluster.CLUSTER_APPLY, async () => (await import('./commands/cluster.ts')).apply),
    row(cluster.CLUSTER_STATUS, async () => (await import('./commands/cluster-status.ts')).status),
    row(cluster.CLUSTER_ADOPT, async () => (await import('./commands/cluster-adopt.ts')).command),
    row(cluster.CLUSTER_DELETE, async () => (await import('./commands/cluster-delete.ts')).command),
    row(cluster.CLUSTER_NODES, async () => (await import('./commands/cluster.ts')).nodes),
    row(machine.MACHINE_ADD, async () => (await import('./commands/machine.ts')).add),
    row(machine.MACHINE_DRAIN, async () => (await import('./commands/machine.ts')).drain),
    row(machine.MACHINE_UPGRADE, async () => (await import('./commands/machine.ts')).upgrade),
    row(machine.MACHINE_REPAIR, async () => (await import('./commands/machine.ts')).repair),
    row(machine.MACHINE_REMOVE, async () => (await import('./commands/machine.ts')).remove),
    row(fleet.FLEET_INIT, async () => (await import('./commands/fleet.ts')).init),
    row(fleet.FLEET_CHECK, async () => (await import('./commands/fleet.ts')).check),
    row(fleet.FLEET_PLAN, async () => (await import('./commands/fleet.ts')).plan),
    row(fleet.FLEET_APPLY, async () => (await import('./commands/fleet.ts')).apply),
    row(fleet.FLEET_STATUS, async () => (await import('./commands/fleet.ts')).status),
    row(fleet.FLEET_REMOVE, async () => (await import('./commands/fleet.ts')).remove),
    row(fleet.FLEET_APPROVE, async () => (await import('./commands/fleet-order.ts')).approve),
    row(fleet.FLEET_PAUSE, async () => (await import('./commands/fleet-order.ts')).pause),
    row(fleet.FLEET_RESUME, async () => (await import('./commands/fleet-order.ts')).resume),
    row(fleet.FLEET_RETRY, async () => (await import('./commands/fleet-order.ts')).retry),
    row(fleet.FLEET_ROLLBACK, async () => (await import('./commands/fleet-order.ts')).rollback),
    row(hub.HUB_MANIFESTS, async () => (await import('./commands/hub.ts')).manifests),
    row(registration.HUB_TOKEN, async () => (await import('./commands/hub.ts')).token),
    row(registration.FLEET_ACCEPT, async () => (await import('./commands/registration.ts')).accept),
    row(registration.FLEET_DETACH, async () => (await import('./commands/registration.ts')).detach),
    row(registration.AGENT_REGISTER, async () => (await import('./commands/registration.ts')).register),
    row(registration.AGENT_UNREGISTER, async () => (await import('./commands/registration.ts')).unregister),
    row(hub.CONTROLLER, async () => (await import('./commands/hub.ts')).controller),
    row(agent.AGENT_RUN, async () => (await import('./commands/agent.ts')).run),
  ]),
  ...grouped('Help', [
    row(own.HELP, async () => (await import('./commands/own.ts')).help),
    row(own.VERSION, async () => (await import('./commands/own.ts')).version),
    row(own.DOCTOR, async () => (await import('./commands/doctor.ts')).command),
    row(node.SUPPORT_BUNDLE, async () => (await import('./commands/support-bundle.ts')).command),
    row(own.COMPLETION, async () => (await import('./commands/completion.ts')).command),
  ]),
]);

export const REQUESTS: readonly Request[] = [...COMMANDS.values()].map(({ of }) => of);

interface Split {
  readonly name: string;
  readonly args: readonly string[];
}

/**
 * Splits a command line into the name of a command, which may not exist, and its arguments. Options of the command may
 * precede its name.
 */
export function splitName(words: readonly string[]): Split {
  for (const [at, word] of words.entries()) {
    const { name, args } = splitFirst(words.slice(at));
    const of = COMMANDS.get(name)?.of ?? familyOf(word)[0]?.[1].of;
    const before = words.slice(0, at);
    if (of !== undefined && walkWords(of, before).onlyOptions) return { name, args: [...before, ...args] };
  }
  return splitFirst(words);
}

function splitFirst([first = '', ...rest]: readonly string[]): Split {
  const [second, ...args] = rest;
  const isPair = second !== undefined && !second.startsWith('-') && familyOf(first).length > 0;
  return isPair ? { name: `${first} ${second}`, args } : { name: first, args: rest };
}

/** The commands of two words that begin with this one. */
export function familyOf(word: string): readonly (readonly [name: string, row: Row])[] {
  return [...COMMANDS].filter(([name]) => name.startsWith(`${word} `));
}

/** The executable for nodes cannot make bundles, and nodes have neither the sources of add-ons nor a store. */
const NOT_ON_NODE: ReadonlySet<string> = new Set(['Add-ons', 'Stores', 'bundle']);

/** The commands that lists and hints name: on a node, where no pages are, only those for nodes. */
export function offeredCommands(hasPages = ownPages() !== undefined): ReadonlyMap<string, Row> {
  if (hasPages) return COMMANDS;
  return new Map([...COMMANDS].filter(([name, { group }]) => !NOT_ON_NODE.has(group) && !NOT_ON_NODE.has(name)));
}

/** `curlew COMMAND`, or `curlew help TOPIC`. */
const NAMED = /(?<![\w/.-])curlew (?:help [\w-]+(?:\.md)?|[a-z]+(?:-[a-z]+)*)/y;

/** What `help` shows besides commands and pages. */
const TOPICS: ReadonlySet<string> = new Set(['COMMAND', 'commands', ...Object.keys(ERRORS)]);

/** The one rule for what hints may name: finds what a text names and this program does not have. With pages, it has everything. */
export function missingHere(hasPages = ownPages() !== undefined): MissingAt {
  if (hasPages) return () => undefined;
  const offered = offeredCommands(false);
  const isOffered = (name: string): boolean => offered.has(name) || familyOf(name).length > 0;
  return (text, at) => {
    NAMED.lastIndex = at;
    const [named = ''] = NAMED.exec(text) ?? [];
    const [, word = '', topic] = named.split(' ');
    if (topic !== undefined) return TOPICS.has(topic) || isOffered(topic) ? undefined : named;
    return COMMANDS.has(word) && !isOffered(word) ? named : undefined;
  };
}

/** A hint, with where to run what it names and this program does not have. */
export function withPlace(hint: string, missingAt: MissingAt = missingHere()): string {
  for (const { index } of hint.matchAll(/curlew /g)) {
    const missing = missingAt(hint, index);
    if (missing !== undefined) return `${hint}; run ${missing} on the machine that makes bundles`;
  }
  return hint;
}

/** What is wrong with a call of a command that is not for this machine, before what is wrong with its options. */
export function withOffer(error: Error, name: string, hasPages = ownPages() !== undefined): Error {
  const isHere = !COMMANDS.has(name) || offeredCommands(hasPages).has(name);
  if (isHere || !(error instanceof CurlewError) || error.code !== 'USAGE') return error;
  const hint = 'run it on the machine that makes bundles';
  return new CurlewError('USAGE', `curlew ${name} is not offered on a node`, { hint });
}

/** Names of the commands in zarf, helm, kubectl, docker and others. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  new: ['init', 'create', 'add'],
  lint: ['check', 'test'],
  dev: ['try', 'watch'],
  changed: ['diff', 'compare'],
  build: ['pack', 'package', 'make'],
  publish: ['push', 'upload', 'release'],
  promote: ['copy', 'mirror', 'sync'],
  versions: ['list', 'ls', 'search', 'releases'],
  'versions --since': ['diff', 'compare', 'changelog'],
  prune: ['gc', 'cleanup'],
  bundle: ['airgap', 'save', 'export'],
  pull: ['fetch', 'download'],
  inspect: ['show', 'info', 'cat'],
  'installer validate': ['validate'],
  'installer resolve': ['template', 'render'],
  install: ['deploy', 'run', 'setup'],
  upgrade: ['update'],
  resume: ['continue', 'retry'],
  rollback: ['undo', 'revert'],
  uninstall: ['remove', 'delete', 'rm', 'del'],
  'etcd snapshot': ['backup', 'snapshot'],
  'etcd restore': ['restore'],
  reset: ['destroy', 'purge', 'teardown', 'down'],
  'join-token': ['token', 'invite'],
  'node drain': ['drain', 'evict'],
  'node remove': ['leave'],
  status: ['ps', 'installed', 'get', 'list', 'ls'],
  why: ['describe', 'explain'],
  logs: ['log', 'journal', 'history', 'runs'],
  'load-images': ['load'],
  doctor: ['diagnose', 'troubleshoot', 'env'],
};

/** Empty if the commands of other tools have another meaning. */
function namesHere(name: string): readonly string[] {
  const offered = offeredCommands();
  const isOffered = (own: string): boolean => offered.has(own.replace(/ --.*/, ''));
  return Object.keys(OTHER_NAMES).filter((own) => OTHER_NAMES[own]?.includes(name) && isOffered(own));
}

/** The command with this name; throws `USAGE` if it does not exist. `asked` begins a proposal: `curlew`, or `curlew help`. */
export async function commandOf(name: string, asked = 'curlew'): Promise<Command> {
  const command = COMMANDS.get(name);
  if (command !== undefined) return command.load();
  if (name.startsWith('-')) {
    const hint = `curlew COMMAND ${name}; curlew help commands lists the commands`;
    throw new CurlewError('USAGE', `no command before the option ${name}`, { hint });
  }
  const { taskOf } = await import('../kurl/compatibility/tasks.ts');
  const task = taskOf(name);
  if (task?.status === 'absent') {
    throw new CurlewError('UNSUPPORTED', `${name}: a kURL task that curlew does not have`, { hint: task.note });
  }
  throw new CurlewError('USAGE', `unknown command "${name}"`, { hint: unknownHint(name, asked) });
}

/** The commands that may be meant with one that does not exist, and how to list what exists. */
function unknownHint(name: string, asked: string): string {
  const [word = '', second] = name.split(' ');
  if (second !== undefined) {
    const members = familyOf(word).map(([member]) => member.slice(word.length + 1));
    const meant = namesHere(second).find((own) => own.startsWith(`${word} `));
    if (meant !== undefined) return `did you mean ${asked} ${meant}?`;
    const near = nearest(second, members, { isAnyWord: true });
    return near === undefined ? `curlew ${word} --help lists the commands` : `did you mean ${asked} ${word} ${near}?`;
  }
  const isHelp = asked !== 'curlew';
  const here = namesHere(name).map((own) => `${asked} ${isHelp ? own.replace(/ --.*/, '') : own}`);
  if (here.length > 0) return `did you mean ${here.join(' or ')}?`;
  const near = nearest(name, new Set([...offeredCommands().keys()].map((other) => other.replace(/ .*/, ''))), {
    isAnyWord: true,
  });
  const pages = ownPages() === undefined ? '' : ', curlew help pages the pages';
  const list = `curlew help commands lists the commands${pages}`;
  // A word that is spelled alike may be another one.
  return near === undefined ? list : `did you mean ${asked} ${near}? ${list}`;
}
