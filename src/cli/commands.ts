/**
 * The table of commands: the request of each, and its module, which is loaded on demand, so that `--help` loads none. A name of
 * two words, such as `installer validate`, belongs to the family of its first word.
 */
import { INSPECT, KEYGEN, PROVENANCE, PULL, SBOM, SIGN, VERIFY } from '../requests/archive.ts';
import { BUILD, CHANGED, OUTDATED, PUBLISH } from '../requests/build.ts';
import { DEV } from '../requests/dev.ts';
import { APPLY, BUNDLE, INVENTORY, JOIN_PARTS, SPLIT } from '../requests/bundle.ts';
import {
  CHANNEL_APPLY,
  CHANNEL_CHECK,
  CHANNEL_EXPLAIN,
  CHANNEL_PLAN,
  CHANNEL_REMOVE,
  CHANNEL_STATUS,
} from '../requests/channel.ts';
import {
  CLUSTER_APPLY,
  CLUSTER_ADOPT,
  CLUSTER_DELETE,
  CLUSTER_DIFF,
  CLUSTER_NODES,
  CLUSTER_PLAN,
  CLUSTER_STATUS,
} from '../requests/cluster.ts';
import {
  FLEET_APPLY,
  FLEET_APPROVE,
  FLEET_CHECK,
  FLEET_INIT,
  FLEET_PAUSE,
  FLEET_PLAN,
  FLEET_REMOVE,
  FLEET_RESUME,
  FLEET_RETRY,
  FLEET_ROLLBACK,
  FLEET_STATUS,
} from '../requests/fleet.ts';
import { MACHINE_ADD, MACHINE_DRAIN, MACHINE_REMOVE, MACHINE_REPAIR, MACHINE_UPGRADE } from '../requests/machine.ts';
import { AGENT_RUN } from '../requests/agent.ts';
import { CONTROLLER, HUB_MANIFESTS } from '../requests/hub.ts';
import { AGENT_REGISTER, AGENT_UNREGISTER, FLEET_ACCEPT, FLEET_DETACH, HUB_TOKEN } from '../requests/registration.ts';
import {
  INSTALLER_ENV,
  INSTALLER_ID,
  INSTALLER_MERGE,
  INSTALLER_RESOLVE,
  INSTALLER_VALIDATE,
} from '../requests/installer.ts';
import {
  CERTIFICATES_RENEW,
  ETCD_RESTORE,
  ETCD_SNAPSHOT,
  INSTALL,
  JOIN,
  JOIN_TOKEN,
  LOAD_IMAGES,
  LOGS,
  NODE_DRAIN,
  NODE_REMOVE,
  NODE_REPAIR,
  PREFLIGHT,
  RESET,
  RESUME,
  ROLLBACK,
  STATUS,
  SUPPORT_BUNDLE,
  UNINSTALL,
  UPGRADE,
  WHY,
} from '../requests/node.ts';
import { COMPLETION, DOCTOR, HELP, VERSION } from '../requests/own.ts';
import { IMPORT_EXTERNAL, PROMOTE, PRUNE, REINDEX, VERSIONS } from '../requests/release.ts';
import { GENERATE, IMPORT, LINT, NEW } from '../requests/repository.ts';
import { SERVE } from '../requests/serve.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { Request } from '../core/request.ts';
import { ownPages } from '../own/scripts.ts';
import type { Command } from './command.ts';
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

const ADDON_COMMANDS = [
  row(NEW, async () => (await import('./commands/new.ts')).command),
  row(GENERATE, async () => (await import('./commands/generate.ts')).command),
  row(LINT, async () => (await import('./commands/lint.ts')).command),
  row(BUILD, async () => (await import('./commands/build.ts')).command),
  row(DEV, async () => (await import('./commands/dev.ts')).command),
  row(OUTDATED, async () => (await import('./commands/outdated.ts')).command),
  row(CHANGED, async () => (await import('./commands/changed.ts')).command),
  row(IMPORT, async () => (await import('./commands/import.ts')).command),
];

const STORE_COMMANDS = [
  row(PUBLISH, async () => (await import('./commands/publish.ts')).command),
  row(PROMOTE, async () => (await import('./commands/promote.ts')).command),
  row(VERSIONS, async () => (await import('./commands/versions.ts')).command),
  row(PRUNE, async () => (await import('./commands/prune.ts')).command),
  row(REINDEX, async () => (await import('./commands/reindex.ts')).command),
  row(IMPORT_EXTERNAL, async () => (await import('./commands/import-external.ts')).command),
  row(SERVE, async () => (await import('./commands/serve.ts')).command),
];

const BUNDLE_COMMANDS = [
  row(INSTALLER_VALIDATE, async () => (await import('./commands/installer.ts')).validate),
  row(INSTALLER_MERGE, async () => (await import('./commands/installer.ts')).merge),
  row(INSTALLER_ENV, async () => (await import('./commands/installer.ts')).env),
  row(INSTALLER_ID, async () => (await import('./commands/installer.ts')).id),
  row(INSTALLER_RESOLVE, async () => (await import('./commands/installer.ts')).resolve),
  row(BUNDLE, async () => (await import('./commands/bundle.ts')).command),
  row(INVENTORY, async () => (await import('./commands/inventory.ts')).command),
  row(APPLY, async () => (await import('./commands/apply.ts')).command),
  row(SPLIT, async () => (await import('./commands/split.ts')).command),
  row(JOIN_PARTS, async () => (await import('./commands/join-parts.ts')).command),
  row(PULL, async () => (await import('./commands/pull.ts')).command),
  row(INSPECT, async () => (await import('./commands/inspect.ts')).command),
  row(VERIFY, async () => (await import('./commands/verify.ts')).command),
  row(SBOM, async () => (await import('./commands/sbom.ts')).command),
  row(PROVENANCE, async () => (await import('./commands/provenance.ts')).command),
  row(KEYGEN, async () => (await import('./commands/keygen.ts')).command),
  row(SIGN, async () => (await import('./commands/sign.ts')).command),
];

const CHANNEL_COMMANDS = [
  row(CHANNEL_CHECK, async () => (await import('./commands/channel.ts')).check),
  row(CHANNEL_APPLY, async () => (await import('./commands/channel-cluster.ts')).apply),
  row(CHANNEL_STATUS, async () => (await import('./commands/channel-cluster.ts')).status),
  row(CHANNEL_REMOVE, async () => (await import('./commands/channel-cluster.ts')).remove),
  row(CHANNEL_EXPLAIN, async () => (await import('./commands/channel.ts')).explain),
  row(CHANNEL_PLAN, async () => (await import('./commands/channel.ts')).plan),
];

const CLUSTER_COMMANDS = [
  row(CLUSTER_DIFF, async () => (await import('./commands/cluster.ts')).diff),
  row(CLUSTER_PLAN, async () => (await import('./commands/cluster.ts')).plan),
  row(CLUSTER_APPLY, async () => (await import('./commands/cluster.ts')).apply),
  row(CLUSTER_STATUS, async () => (await import('./commands/cluster-status.ts')).status),
  row(CLUSTER_ADOPT, async () => (await import('./commands/cluster-adopt.ts')).command),
  row(CLUSTER_DELETE, async () => (await import('./commands/cluster-delete.ts')).command),
  row(CLUSTER_NODES, async () => (await import('./commands/cluster.ts')).nodes),
];

const MACHINE_COMMANDS = [
  row(MACHINE_ADD, async () => (await import('./commands/machine.ts')).add),
  row(MACHINE_DRAIN, async () => (await import('./commands/machine.ts')).drain),
  row(MACHINE_UPGRADE, async () => (await import('./commands/machine.ts')).upgrade),
  row(MACHINE_REPAIR, async () => (await import('./commands/machine.ts')).repair),
  row(MACHINE_REMOVE, async () => (await import('./commands/machine.ts')).remove),
];

const FLEET_COMMANDS = [
  row(FLEET_INIT, async () => (await import('./commands/fleet.ts')).init),
  row(FLEET_CHECK, async () => (await import('./commands/fleet.ts')).check),
  row(FLEET_PLAN, async () => (await import('./commands/fleet.ts')).plan),
  row(FLEET_APPLY, async () => (await import('./commands/fleet.ts')).apply),
  row(FLEET_STATUS, async () => (await import('./commands/fleet.ts')).status),
  row(FLEET_REMOVE, async () => (await import('./commands/fleet.ts')).remove),
  row(FLEET_APPROVE, async () => (await import('./commands/fleet-order.ts')).approve),
  row(FLEET_PAUSE, async () => (await import('./commands/fleet-order.ts')).pause),
  row(FLEET_RESUME, async () => (await import('./commands/fleet-order.ts')).resume),
  row(FLEET_RETRY, async () => (await import('./commands/fleet-order.ts')).retry),
  row(FLEET_ROLLBACK, async () => (await import('./commands/fleet-order.ts')).rollback),
];

const HUB_COMMANDS = [
  row(HUB_MANIFESTS, async () => (await import('./commands/hub.ts')).manifests),
  row(HUB_TOKEN, async () => (await import('./commands/hub.ts')).token),
  row(FLEET_ACCEPT, async () => (await import('./commands/registration.ts')).accept),
  row(FLEET_DETACH, async () => (await import('./commands/registration.ts')).detach),
  row(AGENT_REGISTER, async () => (await import('./commands/registration.ts')).register),
  row(AGENT_UNREGISTER, async () => (await import('./commands/registration.ts')).unregister),
  row(CONTROLLER, async () => (await import('./commands/hub.ts')).controller),
];

const AGENT_COMMANDS = [row(AGENT_RUN, async () => (await import('./commands/agent.ts')).run)];

const NODE_COMMANDS = [
  row(INSTALL, async () => (await import('./commands/install.ts')).command),
  row(JOIN, async () => (await import('./commands/join.ts')).command),
  row(JOIN_TOKEN, async () => (await import('./commands/join-token.ts')).command),
  row(UPGRADE, async () => (await import('./commands/upgrade.ts')).command),
  row(RESUME, async () => (await import('./commands/resume.ts')).command),
  row(ROLLBACK, async () => (await import('./commands/rollback.ts')).command),
  row(PREFLIGHT, async () => (await import('./commands/preflight.ts')).command),
  row(UNINSTALL, async () => (await import('./commands/uninstall.ts')).command),
  row(RESET, async () => (await import('./commands/reset.ts')).command),
  row(NODE_DRAIN, async () => (await import('./commands/node-drain.ts')).command),
  row(NODE_REMOVE, async () => (await import('./commands/node-remove.ts')).command),
  row(NODE_REPAIR, async () => (await import('./commands/node-repair.ts')).command),
  row(ETCD_SNAPSHOT, async () => (await import('./commands/etcd.ts')).snapshot),
  row(ETCD_RESTORE, async () => (await import('./commands/etcd.ts')).restore),
  row(CERTIFICATES_RENEW, async () => (await import('./commands/certificates-renew.ts')).command),
  row(STATUS, async () => (await import('./commands/status.ts')).command),
  row(WHY, async () => (await import('./commands/why.ts')).command),
  row(LOGS, async () => (await import('./commands/logs.ts')).command),
  row(LOAD_IMAGES, async () => (await import('./commands/load-images.ts')).command),
];

const OWN_COMMANDS = [
  row(HELP, async () => (await import('./commands/own.ts')).help),
  row(VERSION, async () => (await import('./commands/own.ts')).version),
  row(DOCTOR, async () => (await import('./commands/doctor.ts')).command),
  row(SUPPORT_BUNDLE, async () => (await import('./commands/support-bundle.ts')).command),
  row(COMPLETION, async () => (await import('./commands/completion.ts')).command),
];

function grouped(group: string, rows: readonly Omit<Row, 'group'>[]): readonly (readonly [string, Row])[] {
  return rows.map((one) => [one.of.name, { ...one, group }]);
}

export const COMMANDS: ReadonlyMap<string, Row> = new Map([
  ...grouped('Add-ons', ADDON_COMMANDS),
  ...grouped('Stores', STORE_COMMANDS),
  ...grouped('Bundles', BUNDLE_COMMANDS),
  ...grouped('On a node', NODE_COMMANDS),
  ...grouped('Clusters', CHANNEL_COMMANDS),
  ...grouped('Clusters', CLUSTER_COMMANDS),
  ...grouped('Clusters', MACHINE_COMMANDS),
  ...grouped('Clusters', FLEET_COMMANDS),
  ...grouped('Clusters', HUB_COMMANDS),
  ...grouped('Clusters', AGENT_COMMANDS),
  ...grouped('Help', OWN_COMMANDS),
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

/** What the commands are called in zarf, helm, kubectl, docker and others. */
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
  return Object.keys(OTHER_NAMES).filter((own) => OTHER_NAMES[own]?.includes(name));
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

/** What may be meant with a command that does not exist, and how to list what exists. */
function unknownHint(name: string, asked: string): string {
  const [word = '', second] = name.split(' ');
  if (second !== undefined) {
    const members = familyOf(word).map(([member]) => member.slice(word.length + 1));
    const near = nearest(second, members, { isAnyWord: true });
    return near === undefined ? `curlew ${word} --help lists the commands` : `did you mean ${asked} ${word} ${near}?`;
  }
  const isHelp = asked !== 'curlew';
  const here = namesHere(name).map((own) => `${asked} ${isHelp ? own.replace(/ --.*/, '') : own}`);
  if (here.length > 0) return `did you mean ${here.join(' or ')}?`;
  const near = nearest(name, new Set([...COMMANDS.keys()].map((other) => other.replace(/ .*/, ''))), {
    isAnyWord: true,
  });
  const pages = ownPages() === undefined ? '' : ', curlew help pages the pages';
  const list = `curlew help commands lists the commands${pages}`;
  // A word that is spelled alike may be another one.
  return near === undefined ? list : `did you mean ${asked} ${near}? ${list}`;
}
