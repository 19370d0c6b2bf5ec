/** The cluster of a run, as the words ask for it. */
import { redact } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import type { Installer } from '../spec/installer.ts';
import { openCluster, type Cluster } from '../runtime/cluster/cluster.ts';
import type { ClusterRequest } from '../runtime/cluster/consult.ts';
import type { Arguments, CommandContext } from './command.ts';
import type { RunRequest } from '../runtime/run/request.ts';

interface ClusterWords {
  readonly args: Arguments;
  readonly context: CommandContext;
  readonly installer: Installer;
  /** The version that the spec means, by name of the add-on. */
  readonly versions: ReadonlyMap<string, string>;
  /** JSON Schema of its settings, by name of the add-on, where its package ships one. */
  readonly schemas: ReadonlyMap<string, unknown>;
  readonly release: string | undefined;
}

/** With --root the cluster of this machine is left alone. */
export function clusterOf(words: ClusterWords): ClusterRequest | undefined {
  const { args, context, installer, versions, schemas, release } = words;
  if (args.text('root') !== undefined) return undefined;
  const { env, signal } = context;
  const entries = installer.addons.map(({ name, requested, settings, s3Override }) => {
    // A presigned address is a secret, and must not lie in the cluster.
    const override = s3Override === undefined ? {} : { s3Override: redact(s3Override) };
    const entry = { version: versions.get(name) ?? requested, ...override, ...settings };
    return [name, { entry, schema: schemas.get(name) }] as const;
  });
  const find = async (): Promise<Cluster | undefined> => openCluster({ env, signal });
  return { find, adopt: args.flag('adopt'), whole: true, release, entries: new Map(entries) };
}

/** How long somebody who only asks waits for one answer of an API server. */
const ANSWER_MS = 5000;

/** For a command that only asks; with --root the cluster of this machine is left alone. */
export function clusterFinder(args: Arguments, { env, signal }: CommandContext): () => Promise<Cluster | undefined> {
  if (args.text('root') !== undefined) return async () => Promise.resolve(undefined);
  return async () => openCluster({ env, patienceMs: 0, answerMs: ANSWER_MS, signal });
}

/** Of a run over packages that the node has already; kURL's marks are of no concern to it. */
export function clusterOfKept(
  { packages, removal }: Pick<RunRequest, 'packages' | 'removal'>,
  args: Arguments,
  { env, signal }: CommandContext,
): ClusterRequest | undefined {
  if (args.text('root') !== undefined) return undefined;
  const entries = [...packages, ...(removal?.packages ?? [])].map(({ source, settings }) => {
    const { name, version } = source.ref;
    return [
      name,
      { entry: { version, ...(isObject(settings) ? settings : {}) }, schema: source.addon.settings },
    ] as const;
  });
  const find = async (): Promise<Cluster | undefined> => openCluster({ env, signal });
  return { find, adopt: undefined, whole: false, release: undefined, entries: new Map(entries) };
}
