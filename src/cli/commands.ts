/** The table of commands: the line on each, and its module, which is loaded on demand, as all requests are: `--help` loads none. */
import { CurlewError, ERRORS } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { ownPages } from '../own/scripts.ts';
import type { Command } from './command.ts';
import { SUMMARIES } from './names.ts';
import type { MissingAt } from './suggested-commands.ts';

interface Row {
  readonly summary: string;
  /** Headline in the list of commands. */
  readonly group: string;
  readonly load: () => Promise<Command>;
}

type Named = readonly [name: string, row: Omit<Row, 'group'>];

/** The cast removes the result type, because the table contains commands with different results. */
function row<Result>(name: keyof typeof SUMMARIES, load: () => Promise<Command<Result>>): Named {
  return [name, { summary: SUMMARIES[name], load: load as () => Promise<Command> }];
}

function grouped(group: string, rows: readonly Named[]): readonly (readonly [string, Row])[] {
  return rows.map(([name, one]) => [name, { ...one, group }]);
}

export const COMMANDS: ReadonlyMap<string, Row> = new Map([
  ...grouped('Add-ons', [
    row('new', async () => (await import('./commands/new.ts')).command),
    row('generate', async () => (await import('./commands/generate.ts')).command),
    row('lint', async () => (await import('./commands/lint.ts')).command),
    row('build', async () => (await import('./commands/build.ts')).command),
    row('dev', async () => (await import('./commands/dev.ts')).command),
    row('outdated', async () => (await import('./commands/outdated.ts')).command),
    row('changed', async () => (await import('./commands/changed.ts')).command),
    row('import', async () => (await import('./commands/import.ts')).command),
  ]),
  ...grouped('Stores', [
    row('publish', async () => (await import('./commands/publish.ts')).command),
    row('promote', async () => (await import('./commands/promote.ts')).command),
    row('versions', async () => (await import('./commands/versions.ts')).command),
    row('prune', async () => (await import('./commands/prune.ts')).command),
    row('reindex', async () => (await import('./commands/reindex.ts')).command),
    row('import-external', async () => (await import('./commands/import-external.ts')).command),
    row('serve', async () => (await import('./commands/serve.ts')).command),
  ]),
  ...grouped('Bundles', [
    row('installer validate', async () => (await import('./commands/installer.ts')).validate),
    row('installer merge', async () => (await import('./commands/installer.ts')).merge),
    row('installer env', async () => (await import('./commands/installer.ts')).env),
    row('installer id', async () => (await import('./commands/installer.ts')).id),
    row('installer resolve', async () => (await import('./commands/installer.ts')).resolve),
    row('bundle', async () => (await import('./commands/bundle.ts')).command),
    row('inventory', async () => (await import('./commands/inventory.ts')).command),
    row('apply', async () => (await import('./commands/apply.ts')).command),
    row('split', async () => (await import('./commands/split.ts')).command),
    row('join-parts', async () => (await import('./commands/join-parts.ts')).command),
    row('pull', async () => (await import('./commands/pull.ts')).command),
    row('inspect', async () => (await import('./commands/inspect.ts')).command),
    row('verify', async () => (await import('./commands/verify.ts')).command),
    row('sbom', async () => (await import('./commands/sbom.ts')).command),
    row('provenance', async () => (await import('./commands/provenance.ts')).command),
    row('keygen', async () => (await import('./commands/keygen.ts')).command),
    row('sign', async () => (await import('./commands/sign.ts')).command),
  ]),
  ...grouped('On a node', [
    row('install', async () => (await import('./commands/install.ts')).command),
    row('join', async () => (await import('./commands/join.ts')).command),
    row('join-token', async () => (await import('./commands/join-token.ts')).command),
    row('upgrade', async () => (await import('./commands/upgrade.ts')).command),
    row('resume', async () => (await import('./commands/resume.ts')).command),
    row('rollback', async () => (await import('./commands/rollback.ts')).command),
    row('preflight', async () => (await import('./commands/preflight.ts')).command),
    row('uninstall', async () => (await import('./commands/uninstall.ts')).command),
    row('reset', async () => (await import('./commands/reset.ts')).command),
    row('node drain', async () => (await import('./commands/node-drain.ts')).command),
    row('node remove', async () => (await import('./commands/node-remove.ts')).command),
    row('node repair', async () => (await import('./commands/node-repair.ts')).command),
    row('etcd snapshot', async () => (await import('./commands/etcd.ts')).snapshot),
    row('etcd restore', async () => (await import('./commands/etcd.ts')).restore),
    row('certificates renew', async () => (await import('./commands/certificates-renew.ts')).command),
    row('status', async () => (await import('./commands/status.ts')).command),
    row('why', async () => (await import('./commands/why.ts')).command),
    row('logs', async () => (await import('./commands/logs.ts')).command),
    row('load-images', async () => (await import('./commands/load-images.ts')).command),
  ]),
  ...grouped('Clusters', [
    row('channel check', async () => (await import('./commands/channel.ts')).check),
    row('channel apply', async () => (await import('./commands/channel-cluster.ts')).apply),
    row('channel status', async () => (await import('./commands/channel-cluster.ts')).status),
    row('channel remove', async () => (await import('./commands/channel-cluster.ts')).remove),
    row('channel explain', async () => (await import('./commands/channel.ts')).explain),
    row('channel plan', async () => (await import('./commands/channel.ts')).plan),
    row('cluster diff', async () => (await import('./commands/cluster.ts')).diff),
    row('cluster plan', async () => (await import('./commands/cluster.ts')).plan),
    row('cluster apply', async () => (await import('./commands/cluster.ts')).apply),
    row('cluster status', async () => (await import('./commands/cluster-status.ts')).status),
    row('cluster adopt', async () => (await import('./commands/cluster-adopt.ts')).command),
    row('cluster delete', async () => (await import('./commands/cluster-delete.ts')).command),
    row('cluster nodes', async () => (await import('./commands/cluster.ts')).nodes),
    row('machine add', async () => (await import('./commands/machine.ts')).add),
    row('machine drain', async () => (await import('./commands/machine.ts')).drain),
    row('machine upgrade', async () => (await import('./commands/machine.ts')).upgrade),
    row('machine repair', async () => (await import('./commands/machine.ts')).repair),
    row('machine remove', async () => (await import('./commands/machine.ts')).remove),
    row('fleet init', async () => (await import('./commands/fleet.ts')).init),
    row('fleet check', async () => (await import('./commands/fleet.ts')).check),
    row('fleet plan', async () => (await import('./commands/fleet.ts')).plan),
    row('fleet apply', async () => (await import('./commands/fleet.ts')).apply),
    row('fleet status', async () => (await import('./commands/fleet.ts')).status),
    row('fleet remove', async () => (await import('./commands/fleet.ts')).remove),
    row('fleet approve', async () => (await import('./commands/fleet-order.ts')).approve),
    row('fleet pause', async () => (await import('./commands/fleet-order.ts')).pause),
    row('fleet resume', async () => (await import('./commands/fleet-order.ts')).resume),
    row('fleet retry', async () => (await import('./commands/fleet-order.ts')).retry),
    row('fleet rollback', async () => (await import('./commands/fleet-order.ts')).rollback),
    row('hub manifests', async () => (await import('./commands/hub.ts')).manifests),
    row('hub token', async () => (await import('./commands/hub.ts')).token),
    row('fleet accept', async () => (await import('./commands/registration.ts')).accept),
    row('fleet detach', async () => (await import('./commands/registration.ts')).detach),
    row('agent register', async () => (await import('./commands/registration.ts')).register),
    row('agent unregister', async () => (await import('./commands/registration.ts')).unregister),
    row('controller', async () => (await import('./commands/hub.ts')).controller),
    row('agent run', async () => (await import('./commands/agent.ts')).run),
  ]),
  ...grouped('Help', [
    row('help', async () => (await import('./commands/own.ts')).help),
    row('version', async () => (await import('./commands/own.ts')).version),
    row('doctor', async () => (await import('./commands/doctor.ts')).command),
    row('support-bundle', async () => (await import('./commands/support-bundle.ts')).command),
    row('completion', async () => (await import('./commands/completion.ts')).command),
  ]),
]);

export interface Split {
  readonly name: string;
  readonly args: readonly string[];
}

/** Splits a command line that begins with a name, which may be none, of one or two words. */
export function splitFirst([first = '', ...rest]: readonly string[]): Split {
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
