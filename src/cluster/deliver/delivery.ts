/** One pass of deliveries to a cluster: what its add-ons have in common. */
import { entryTitle } from '../channel/channel.ts';
import type { Context } from '../../core/context.ts';
import { CurlewError, redact, requireRefusal } from '../../core/errors.ts';
import type { Resource } from '../kube/resources.ts';
import type { Addon, Task } from './addon.ts';
import type { ChannelCluster } from './channel-cluster.ts';
import { helmAnswers, helmOf, type HelmAnswers } from './helm.ts';
import { addonObjects, definedKinds, type AddonObject } from './addon-objects.ts';
import { Owners, type ChosenObjects } from './owners.ts';
import { recordedObjects } from './records.ts';
import type { ReleaseTools } from './release.ts';

interface Manifest {
  readonly objects: readonly AddonObject[];
  readonly hash: string;
}

interface DeliveryParts extends Omit<ReleaseTools, 'archives' | 'helm'> {
  readonly context: Pick<Context, 'env' | 'cwd'>;
  /** All that producers want on the cluster, in the order of application; also what this pass leaves out. */
  readonly tasks: readonly Task[];
  /** Shared with deliveries to other clusters; default: only of this one. */
  readonly answers?: HelmAnswers | undefined;
}

/** What its add-ons share; {@link Owners} and manifests are read once. */
export class Delivery implements ReleaseTools {
  readonly cluster: ChannelCluster;
  readonly request: ReleaseTools['request'];
  readonly helm: ReleaseTools['helm'];
  readonly trust: ReleaseTools['trust'];
  readonly archives: ReleaseTools['archives'];
  /** Names that exist in the cluster or come with add-ons of this pass. */
  readonly namespaces: Set<string>;
  readonly #tasks: readonly Task[];
  readonly #manifests = new Map<Addon, Promise<Manifest>>();
  #owners: Promise<Owners> | undefined;
  /** Kinds that come with add-ons of this pass. */
  readonly #defined: Resource[] = [];

  constructor({ cluster, request, context, trust, tasks, answers = helmAnswers() }: DeliveryParts) {
    this.cluster = cluster;
    this.request = request;
    this.helm = helmOf(request, cluster, context, answers);
    this.archives = answers.archives;
    this.trust = trust;
    this.#tasks = tasks;
    this.namespaces = new Set(cluster.namespaces);
  }

  bringNamespaces(objects: readonly AddonObject[]): void {
    for (const { kind, name } of objects) if (kind === 'Namespace') this.namespaces.add(name);
  }

  /** What each add-on of the producers consists of after the pass. */
  async owners(): Promise<Owners> {
    this.#owners ??= this.#findOwners();
    return this.#owners;
  }

  async #findOwners(): Promise<Owners> {
    const chosen: ChosenObjects[] = [];
    for (const task of this.#tasks) {
      const { addon, action, record } = task;
      const keys = new Set(recordedObjects(record?.objects ?? []).keys());
      const isNew = ['install', 'update', 'downgrade'].includes(action) && record?.release === undefined;
      if (!isNew || addon.source?.type !== 'manifest') {
        chosen.push({ addon, keys, isUnread: false });
        continue;
      }
      try {
        const { objects } = await this.manifest(task);
        chosen.push({ addon, keys: new Set(objects.map(({ key }) => key)), isUnread: false });
      } catch (error) {
        requireRefusal(error, this.cluster.signal);
        chosen.push({ addon, keys, isUnread: true });
      }
    }
    return new Owners(this.cluster, chosen);
  }

  /** Read once: the content is the same in the plan and when it is applied. */
  async manifest(task: Task): Promise<Manifest> {
    const known = this.#manifests.get(task.addon) ?? this.#readManifest(task);
    this.#manifests.set(task.addon, known);
    return known;
  }

  async #readManifest(task: Task): Promise<Manifest> {
    const { addon } = task;
    const { source } = addon;
    if (source?.type !== 'manifest') {
      const isPackage = source?.type === 'package';
      throw new CurlewError('UNSUPPORTED', `cannot apply ${entryTitle(addon)}: it has no manifest`, {
        hint: isPackage ? 'install the package on a node: curlew install' : 'add manifest to the entry',
      });
    }
    const content = await addon.read();
    const { namespace } = this.cluster;
    const discovery = { ...(await this.cluster.discovery()), defined: this.#defined, namespace };
    const objects = addonObjects(task, { location: redact(source.location), content }, discovery);
    this.#defined.push(...objects.flatMap(definedKinds));
    return { objects, hash: addon.hash === '' ? addon.hashOf(content) : addon.hash };
  }
}

/** `CLUSTER_FAILED` if the record of an add-on, or one of its objects, has a namespace that does not exist. */
export function requireNamespaces(
  addon: Addon,
  objects: readonly { readonly namespace?: string | undefined }[],
  known: ReadonlySet<string>,
): void {
  const wanted = new Set([addon.namespace, ...objects.flatMap(({ namespace }) => namespace ?? [])]);
  const missing = [...wanted].filter((namespace) => !known.has(namespace));
  if (missing.length === 0) return;
  const what =
    missing.length === 1 ? `namespace ${missing[0]} does not exist` : `namespaces ${missing.join(', ')} do not exist`;
  throw new CurlewError('CLUSTER_FAILED', `cannot apply ${entryTitle(addon)}: ${what}`, {
    hint: 'create them (kubectl create namespace), add them to the manifest, or correct namespace in the channel',
  });
}
