/**
 * The table of commands. Each row loads its module on demand, so that `--help` loads none. A name of two words, such as
 * `installer validate`, belongs to the family of its first word.
 */
import {
  INSTALL,
  JOIN,
  LOAD_IMAGES,
  LOGS,
  PREFLIGHT,
  RESET,
  RESUME,
  ROLLBACK,
  STATUS,
  UNINSTALL,
  UPGRADE,
  WHY,
} from '../app/requests/node.ts';
import {
  INSTALLER_ENV,
  INSTALLER_ID,
  INSTALLER_MERGE,
  INSTALLER_RESOLVE,
  INSTALLER_VALIDATE,
} from '../app/requests/installer.ts';
import { IMPORT_EXTERNAL, PROMOTE, PRUNE, REINDEX, VERSIONS } from '../app/requests/release.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { Request } from '../core/request.ts';
import type { Command } from './command.ts';

interface Row {
  /** One line in the imperative, for the list of commands and the command's help. */
  readonly summary: string;
  /** Headline in the list of commands. */
  readonly group: string;
  readonly load: () => Promise<Command>;
}

/** The cast removes the result type, because the table contains commands with different results. */
function row<Result>(summary: string, load: () => Promise<Command<Result>>): Omit<Row, 'group'> {
  return { summary, load: load as () => Promise<Command> };
}

function verb<Result>(
  { name, summary }: Request,
  load: () => Promise<Command<Result>>,
): readonly [name: string, row: Omit<Row, 'group'>] {
  return [name, row(summary, load)];
}

type Rows = readonly (readonly [name: string, row: Omit<Row, 'group'>])[];

const REPOSITORY_COMMANDS: Rows = [
  ['new', row('Create a new add-on', async () => (await import('./commands/new.ts')).newCommand)],
  [
    'generate',
    row(
      'Generate the next version of an add-on from its template',
      async () => (await import('./commands/generate.ts')).generateCommand,
    ),
  ],
  [
    'lint',
    row(
      'Check Manifests, install.sh and YAML of add-ons',
      async () => (await import('./commands/lint.ts')).lintCommand,
    ),
  ],
  ['build', row('Build packages from add-on folders', async () => (await import('./commands/build.ts')).buildCommand)],
  [
    'outdated',
    row(
      'Show what has changed upstream since the lock',
      async () => (await import('./commands/outdated.ts')).outdatedCommand,
    ),
  ],
  [
    'changed',
    row(
      'Show which add-ons differ from a release, for CI',
      async () => (await import('./commands/changed.ts')).changedCommand,
    ),
  ],
  [
    'publish',
    row(
      'Build add-ons and publish them as a release',
      async () => (await import('./commands/publish.ts')).publishCommand,
    ),
  ],
  verb(PROMOTE, async () => (await import('./commands/promote.ts')).command),
  verb(VERSIONS, async () => (await import('./commands/versions.ts')).command),
  verb(PRUNE, async () => (await import('./commands/prune.ts')).command),
  verb(REINDEX, async () => (await import('./commands/reindex.ts')).command),
  ['import', row('Check a repository made for kURL', async () => (await import('./commands/import.ts')).importCommand)],
  verb(IMPORT_EXTERNAL, async () => (await import('./commands/import-external.ts')).command),
  verb(INSTALLER_VALIDATE, async () => (await import('./commands/installer.ts')).validate),
  verb(INSTALLER_MERGE, async () => (await import('./commands/installer.ts')).merge),
  verb(INSTALLER_ENV, async () => (await import('./commands/installer.ts')).env),
  verb(INSTALLER_ID, async () => (await import('./commands/installer.ts')).id),
  verb(INSTALLER_RESOLVE, async () => (await import('./commands/installer.ts')).resolve),
  [
    'bundle',
    row(
      'Write all packages of an installer spec to one file',
      async () => (await import('./commands/bundle.ts')).bundleCommand,
    ),
  ],
  [
    'inventory',
    row(
      'List what a node or a folder of bundles has, for a delta',
      async () => (await import('./commands/inventory.ts')).inventoryCommand,
    ),
  ],
  [
    'apply',
    row(
      'Recreate a whole bundle from a delta and its base',
      async () => (await import('./commands/apply.ts')).applyCommand,
    ),
  ],
  [
    'split',
    row('Split a bundle into parts that fit on media', async () => (await import('./commands/split.ts')).splitCommand),
  ],
  [
    'join-parts',
    row(
      'Join the parts of a bundle, or check them',
      async () => (await import('./commands/join-parts.ts')).joinPartsCommand,
    ),
  ],
  [
    'pull',
    row('Download a bundle or package; can resume', async () => (await import('./commands/pull.ts')).pullCommand),
  ],
  [
    'serve',
    row(
      'Serve a store: bundles, packages, images, installs',
      async () => (await import('./commands/serve.ts')).serveCommand,
    ),
  ],
  [
    'inspect',
    row('Show the contents of a package or bundle', async () => (await import('./commands/inspect.ts')).inspectCommand),
  ],
  [
    'verify',
    row(
      'Verify packages, bundles or installed files',
      async () => (await import('./commands/verify.ts')).verifyCommand,
    ),
  ],
  [
    'sbom',
    row(
      'List the components of a package or bundle, as CycloneDX',
      async () => (await import('./commands/sbom.ts')).sbomCommand,
    ),
  ],
  [
    'provenance',
    row(
      'Write a statement about the builder and inputs of packages',
      async () => (await import('./commands/provenance.ts')).provenanceCommand,
    ),
  ],
  ['keygen', row('Create a key pair for signing', async () => (await import('./commands/keygen.ts')).keygenCommand)],
  [
    'sign',
    row(
      'Sign packages, bundles, or a release of a store',
      async () => (await import('./commands/sign.ts')).signCommand,
    ),
  ],
];

const CHANNEL_COMMANDS: Rows = [
  [
    'channel check',
    row('Check channels and their manifests', async () => (await import('./commands/channel.ts')).channelCheckCommand),
  ],
  [
    'channel apply',
    row(
      'Apply the add-ons of channels to a cluster',
      async () => (await import('./commands/channel-cluster.ts')).channelApplyCommand,
    ),
  ],
  [
    'channel status',
    row(
      'Show the add-ons of a cluster and how they are',
      async () => (await import('./commands/channel-cluster.ts')).channelStatusCommand,
    ),
  ],
  [
    'channel remove',
    row(
      'Remove an add-on from a cluster',
      async () => (await import('./commands/channel-cluster.ts')).channelRemoveCommand,
    ),
  ],
  [
    'channel explain',
    row(
      'Show which version of an add-on a cluster gets, and why',
      async () => (await import('./commands/channel.ts')).channelExplainCommand,
    ),
  ],
  [
    'channel plan',
    row(
      'Plan an upgrade of Kubernetes with its add-ons',
      async () => (await import('./commands/channel.ts')).channelPlanCommand,
    ),
  ],
];

const NODE_COMMANDS: Rows = [
  verb(INSTALL, async () => (await import('./commands/install.ts')).command),
  verb(JOIN, async () => (await import('./commands/join.ts')).command),
  verb(UPGRADE, async () => (await import('./commands/upgrade.ts')).command),
  verb(RESUME, async () => (await import('./commands/resume.ts')).command),
  verb(ROLLBACK, async () => (await import('./commands/rollback.ts')).command),
  verb(PREFLIGHT, async () => (await import('./commands/preflight.ts')).command),
  verb(UNINSTALL, async () => (await import('./commands/uninstall.ts')).command),
  verb(RESET, async () => (await import('./commands/reset.ts')).command),
  verb(STATUS, async () => (await import('./commands/status.ts')).command),
  verb(WHY, async () => (await import('./commands/why.ts')).command),
  verb(LOGS, async () => (await import('./commands/logs.ts')).command),
  verb(LOAD_IMAGES, async () => (await import('./commands/load-images.ts')).command),
];

function grouped(group: string, rows: Rows): readonly (readonly [string, Row])[] {
  return rows.map(([name, rest]) => [name, { ...rest, group }]);
}

export const COMMANDS: ReadonlyMap<string, Row> = new Map([
  ...grouped('Create, publish and bundle add-ons', REPOSITORY_COMMANDS),
  ...grouped('Add-ons by Kubernetes version', CHANNEL_COMMANDS),
  ...grouped('On a node', NODE_COMMANDS),
]);

/** Splits a command line into the name of a command, which may not exist, and its arguments. */
export function splitName([first = '', ...rest]: readonly string[]): {
  readonly name: string;
  readonly args: readonly string[];
} {
  const [second, ...args] = rest;
  const isPair = second !== undefined && !second.startsWith('-') && familyOf(first).length > 0;
  return isPair ? { name: `${first} ${second}`, args } : { name: first, args: rest };
}

/** The commands of two words that begin with this one. */
export function familyOf(word: string): readonly (readonly [name: string, row: Row])[] {
  return [...COMMANDS].filter(([name]) => name.startsWith(`${word} `));
}

/** Names of commands in other tools, for which a similar name would suggest the wrong command. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['remove', 'uninstall'],
  ['delete', 'uninstall'],
]);

/** The command with this name; throws `USAGE` if it does not exist. */
export async function commandOf(name: string): Promise<Command> {
  const found = COMMANDS.get(name);
  if (found !== undefined) return found.load();
  if (name.startsWith('-')) {
    const hint = `options follow the command: curlew COMMAND ${name}; curlew --help lists the commands`;
    throw new CurlewError('USAGE', `no command before the option ${name}`, { hint });
  }
  const { taskOf } = await import('../kurl/compatibility/tasks.ts');
  const task = taskOf(name);
  if (task?.status === 'absent') {
    throw new CurlewError('UNSUPPORTED', `${name}: a kURL task that curlew does not have`, { hint: task.note });
  }
  const [word = '', second] = name.split(' ');
  const others = new Set([...COMMANDS.keys()].map((other) => other.replace(/ .*/, '')));
  const near =
    second === undefined
      ? (OTHER_NAMES.get(name) ?? nearest(name, others))
      : nearest(
          name,
          familyOf(word).map(([member]) => member),
        );
  const list = second === undefined ? 'curlew --help' : `curlew ${word} --help`;
  const hint = near === undefined ? `${list} lists the commands` : `did you mean curlew ${near}?`;
  throw new CurlewError('USAGE', `unknown command "${name}"`, { hint });
}
