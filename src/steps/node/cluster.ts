/** Cluster requests of runs. */
import { redact } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Installer } from '../../spec/installer.ts';
import type { NodeCluster, OpenClusterOptions } from '../../runtime/cluster/cluster.ts';
import type { ClusterRequest } from '../../runtime/cluster/consult.ts';
import type { Context } from '../../core/context.ts';
import type { RunRequest } from '../../runtime/prepare/request.ts';
import type { FolderRequest } from '../../requests/node.ts';

interface ClusterFacts {
  readonly installer: Installer;
  /** Resolved version, by name of the add-on. */
  readonly versions: ReadonlyMap<string, string>;
  /** JSON Schema of the settings, by name of the add-on, if its package has one. */
  readonly schemas: ReadonlyMap<string, unknown>;
  readonly release: string | undefined;
}

/** Its code is loaded on use: a trial has no cluster. */
async function openCluster(options: OpenClusterOptions): Promise<NodeCluster | undefined> {
  const cluster = await import('../../runtime/cluster/cluster.ts');
  return cluster.openCluster(options);
}

/** Undefined with --root: the cluster of this machine must not be changed. */
export function runClusterOf(
  request: FolderRequest & { readonly adopt?: boolean | undefined },
  { env, signal }: Pick<Context, 'env' | 'signal'>,
  { installer, versions, schemas, release }: ClusterFacts,
): ClusterRequest | undefined {
  if (request.root !== undefined) return undefined;
  const entries = installer.addons.map(({ name, requested, settings, s3Override }) => {
    // A presigned URL is a secret and must not be stored in the cluster.
    const override = s3Override === undefined ? {} : { s3Override: redact(s3Override) };
    const entry = { version: versions.get(name) ?? requested, ...override, ...settings };
    return [name, { entry, schema: schemas.get(name) }] as const;
  });
  const find = async (): Promise<NodeCluster | undefined> => openCluster({ env, signal });
  return { find, adopt: request.adopt === true, whole: true, release, entries: new Map(entries) };
}

/** Timeout of one API request of read-only commands. */
const ANSWER_MS = 5000;

/** Opens the cluster for read-only commands; none with --root. */
export function clusterFinder(
  request: FolderRequest,
  { env, signal }: Pick<Context, 'env' | 'signal'>,
): () => Promise<NodeCluster | undefined> {
  if (request.root !== undefined) return async () => Promise.resolve(undefined);
  return async () => openCluster({ env, patienceMs: 0, answerMs: ANSWER_MS, signal });
}

/** The cluster request of a run that uses packages on the node; kURL's state is ignored. */
export function clusterOfKept(
  { packages, removal }: Pick<RunRequest, 'packages' | 'removal'>,
  request: FolderRequest,
  { env, signal }: Pick<Context, 'env' | 'signal'>,
): ClusterRequest | undefined {
  if (request.root !== undefined) return undefined;
  const entries = [...packages, ...(removal?.packages ?? [])].map(({ source, settings }) => {
    const { name, version } = source.ref;
    return [
      name,
      { entry: { version, ...(isObject(settings) ? settings : {}) }, schema: source.addon.settings },
    ] as const;
  });
  const find = async (): Promise<NodeCluster | undefined> => openCluster({ env, signal });
  return { find, adopt: undefined, whole: false, release: undefined, entries: new Map(entries) };
}
