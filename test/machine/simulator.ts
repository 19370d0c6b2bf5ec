/**
 * A cluster of hosts in memory, on which the steps of a plan are done in small effects, any of which may be the last one before a kill; and
 * what must be true between any two effects. It shares no code with the planner: versions, quorum and skew are counted again here.
 */
import type { SeenCluster, SeenMachine, Step } from '../../src/machine/cluster.ts';

/** A setting of the file. */
export const SETTING = 'kubernetes.maxPodsPerNode';

export interface Host {
  readonly name: string;
  readonly role: 'control-plane' | 'worker';
  answers: boolean;
  /** Its kubelet and its etcd run. */
  up: boolean;
  record?: string | undefined;
  /** kubeadm has begun there. */
  attempted?: boolean;
  node: boolean;
  kubelet?: string | undefined;
  apiServer?: string | undefined;
  cordon?: 'curlew' | 'other' | undefined;
  cordonFor?: string;
  pods: boolean;
  leaving: boolean;
  images: Set<string>;
  member: 'none' | 'learner' | 'voter';
  /** A restart was begun, and is not through. */
  restarting: boolean;
  failed?: { readonly to: string; readonly reason: string } | undefined;
  /** What curlew has recorded of the setting; undefined for none. */
  setting?: 'old' | 'new' | undefined;
}

type Effect = () => void;

interface Standing {
  readonly voters: number;
  readonly working: number;
  readonly hasQuorum: boolean;
  readonly servers: number;
  readonly serving: number;
  readonly kubelets: ReadonlyMap<string, string | undefined>;
}

function minorOf(version: string): number {
  return Number(version.split('.')[1]);
}

export class Simulator {
  readonly hosts = new Map<string, Host>();
  readonly name: string;
  snapshot: string | undefined;
  /** What broke a rule, and by which step. */
  readonly broken: string[] = [];
  /** Steps that came to their end. */
  done = 0;
  readonly workersAtOnce: number;

  constructor(name: string, workersAtOnce: number) {
    this.name = name;
    this.workersAtOnce = workersAtOnce;
  }

  add(name: string, role: Host['role'], version?: string): Host {
    const joined = version !== undefined;
    const host: Host = {
      name,
      role,
      answers: true,
      up: joined,
      record: joined ? this.name : undefined,
      node: joined,
      kubelet: version,
      apiServer: role === 'control-plane' ? version : undefined,
      pods: true,
      leaving: false,
      images: new Set(),
      member: joined && role === 'control-plane' ? 'voter' : 'none',
      restarting: false,
    };
    this.hosts.set(name, host);
    return host;
  }

  /** What `curlew` would see: hosts of the file, and all nodes. */
  look(desired: ReadonlySet<string>): SeenCluster {
    const all = [...this.hosts.values()];
    const shown = all.filter(({ name, node }) => node || desired.has(name));
    return {
      complete: true,
      snapshot: this.snapshot,
      machines: shown.map((host): SeenMachine => {
        const isIn = host.answers && host.record !== undefined;
        return {
          name: host.name,
          answers: host.answers,
          joined: host.node,
          attempted: host.attempted === true,
          ready: host.up && host.answers && !host.restarting,
          drained: !host.pods,
          leaving: host.leaving,
          images: [...host.images],
          ...(isIn && { cluster: host.record }),
          ...(isIn && host.setting && { settings: { digests: { [SETTING]: host.setting } } }),
          ...(host.node && { role: host.role }),
          ...(host.node && host.kubelet !== undefined && { kubelet: host.kubelet }),
          ...(host.node && host.apiServer !== undefined && { apiServer: host.apiServer }),
          ...(host.cordon !== undefined && { cordon: host.cordon, cordonFor: host.cordonFor }),
          ...(host.failed !== undefined && { failed: host.failed }),
        };
      }),
      members: all
        .filter(({ member }) => member !== 'none')
        .map((host) => ({ name: host.name, healthy: this.#works(host), learner: host.member === 'learner' })),
    };
  }

  #works(host: Host): boolean {
    return host.up && host.answers && !host.restarting;
  }

  /** Does the first `most` effects of a step, with the rules checked after each. Whether all were done. */
  do(step: Step, most: number): boolean {
    const effects = this.#effectsOf(step);
    for (const effect of effects.slice(0, most)) {
      const before = this.#standing();
      effect();
      this.#check(step, before);
    }
    if (most < effects.length) return false;
    this.done += 1;
    return true;
  }

  #effectsOf({ host: name = '', phase, to = '' }: Step): readonly Effect[] {
    const host = this.hosts.get(name);
    if (host === undefined) return [];
    if (!host.answers && !['drain', 'uncordon', 'mark', 'remove-member', 'delete-node'].includes(phase)) {
      this.broken.push(`${phase} on ${name}, which does not answer`);
    }
    const isControl = host.role === 'control-plane';
    const run = (): void => {
      Object.assign(host, {
        up: true,
        node: true,
        kubelet: to,
        restarting: false,
        attempted: false,
        setting: 'new',
        ...(isControl && { apiServer: to }),
      });
    };
    const begin = (): void => {
      if (host.record !== undefined && !host.node && host.attempted !== true)
        this.broken.push(`${phase} of ${name}, which has files of a cluster`);
      Object.assign(host, { record: this.name, attempted: true });
    };
    const checkImages = (): void => {
      if (!host.images.has(to)) this.broken.push(`${phase} of ${name} without images`);
    };
    switch (phase) {
      case 'init':
        return [checkImages, begin, () => ((host.member = 'voter'), (host.up = true)), run];
      case 'join': {
        const learn = (): void => void (host.member = host.member === 'voter' ? 'voter' : 'learner');
        const vote = (): void => void Object.assign(host, { member: 'voter', up: true, restarting: false });
        return [checkImages, begin, ...(isControl ? [learn, vote] : []), run];
      }
      case 'snapshot':
        return [() => (this.snapshot = to)];
      case 'images':
        return [() => host.images.add(to)];
      case 'drain':
        return [
          () => void Object.assign(host, { cordon: host.cordon ?? 'curlew', cordonFor: to }),
          () => (host.pods = false),
        ];
      case 'upgrade':
        return [
          checkImages,
          () => void (host.restarting = true),
          () => isControl && Object.assign(host, { apiServer: to, restarting: false }),
          () => void (host.restarting = true),
          () => Object.assign(host, { kubelet: to, restarting: false, up: true, failed: undefined }),
          () => (host.setting = 'new'),
        ];
      case 'configure':
        return [
          () => void (host.restarting = true),
          () => Object.assign(host, { restarting: false, up: true }),
          () => (host.setting = 'new'),
        ];
      case 'label':
        return [];
      case 'uncordon':
        return [
          () => host.cordon === 'other' && this.broken.push(`${name} was cordoned by a person`),
          () => ((host.cordon = undefined), (host.pods = true)),
        ];
      case 'mark':
        return [() => (host.leaving = true)];
      case 'remove-member':
        return [() => (host.member = 'none')];
      case 'reset':
        return [
          () => (host.up = false),
          () => Object.assign(host, { record: undefined, attempted: false, setting: undefined }),
        ];
      case 'delete-node':
        return [
          () =>
            Object.assign(host, {
              node: false,
              leaving: false,
              cordon: undefined,
              kubelet: undefined,
              apiServer: undefined,
              pods: true,
            }),
        ];
      case 'repair':
        return [() => (host.up = true)];
      case 'create':
      case 'delete':
      case 'addon':
        return [];
    }
  }

  /** Voters, and those of them that work. */
  #standing(): Standing {
    const voters = [...this.hosts.values()].filter(({ member }) => member === 'voter');
    const working = voters.filter((host) => this.#works(host)).length;
    const servers = [...this.hosts.values()].filter((host) => host.node && host.apiServer !== undefined);
    const kubelets = new Map([...this.hosts.values()].map(({ name, kubelet }) => [name, kubelet]));
    return {
      voters: voters.length,
      working,
      hasQuorum: working * 2 > voters.length,
      servers: servers.length,
      serving: servers.filter((host) => this.#works(host)).length,
      kubelets,
    };
  }

  #check({ phase, host: name = '' }: Step, before: Standing): void {
    const now = this.#standing();
    const say = (what: string): void => void this.broken.push(`${phase} ${name}: ${what}`);
    // One member alone has none that could answer while it restarts.
    if (before.hasQuorum && !now.hasQuorum && before.voters > 1) say('etcd has lost its quorum');
    const isNew = now.voters > before.voters && before.voters > 1;
    if (isNew && before.working * 2 <= now.voters) say('etcd loses its quorum if the new member does not work');
    if (before.voters > 0 && now.voters === 0) say('the last member is gone');
    if (before.serving > 0 && now.serving === 0 && before.servers > 1) say('no API server is left');
    if (before.servers > 0 && now.servers === 0) say('the last control plane is gone');
    const nodes = [...this.hosts.values()].filter(({ node, kubelet }) => node && kubelet !== undefined);
    const servers = nodes.flatMap(({ apiServer }) => (apiServer === undefined ? [] : [minorOf(apiServer)]));
    const [low, high] = [Math.min(...servers), Math.max(...servers)];
    if (high - low > 1) say(`API servers are ${high - low} minors apart`);
    for (const node of nodes) {
      const own = minorOf(node.kubelet ?? '');
      const top = node.apiServer === undefined ? low : minorOf(node.apiServer);
      if (own > top) say(`the kubelet of ${node.name} is ahead of its API server`);
      if (high - own > 1) say(`the kubelet of ${node.name} is ${high - own} minors behind`);
      const old = before.kubelets.get(node.name);
      if (old !== undefined && own - minorOf(old) > 1) say(`${node.name} has skipped a minor`);
      if (old !== undefined && own < minorOf(old)) say(`${node.name} went down`);
    }
    const away = nodes.filter(({ role, cordon, leaving }) => role === 'worker' && cordon === 'curlew' && !leaving);
    if (phase === 'drain' && away.length > this.workersAtOnce) say(`${away.length} workers are away`);
    const control = nodes.filter((host) => host.role === 'control-plane' && host.restarting);
    if (control.length > 1) say('two control planes restart');
  }
}
