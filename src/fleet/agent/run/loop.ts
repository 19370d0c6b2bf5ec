/** The loop of an agent: what its hub has for this cluster, or has had as long as the hub is away, is brought onto it and reported. */
import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { timeOf } from '../../../core/time.ts';
import type { Context } from '../../../core/context.ts';
import { requireRefusal, type CurlewError } from '../../../core/errors.ts';
import { exactJson } from '../../../core/json.ts';
import {
  afterJob,
  obey,
  readOrder,
  withPackage,
  type AgentDone,
  type AgentJob,
  type Decided,
  type Order,
} from '../../hub/agent.ts';
import { keptOf, type AgentRecord } from '../../hub/agent-record.ts';
import { degradedOf, agentStatus } from '../../hub/agent-status.ts';
import { hubClusterStatus, type ClusterSeen } from '../../hub/cluster-status.ts';
import { contentOf, type HubPackage } from '../../hub/content.ts';
import { agentMetrics, PassCounts } from '../../hub/metrics.ts';
import { namespaceOf } from '../../hub/observe.ts';
import { ANSWERS_MS, helmAnswers } from '../../../cluster/deliver/helm.ts';
import type { KubeApi } from '../../../cluster/kube/api.ts';
import { Watch } from '../../../cluster/kube/watch.ts';
import type { TrustedKey } from '../../../formats/signing/keys.ts';
import { claim } from '../../../platform/files/claim.ts';
import { makeFolder } from '../../../platform/files/make-folder.ts';
import { writeStateFile } from '../../../platform/files/state-file.ts';
import { Backoff } from '../../../platform/limit/backoff.ts';
import { pause } from '../../../platform/limit/repeat.ts';
import { Wake } from '../../../platform/limit/wake.ts';
import type { AddonCertificates } from '../addon-certificates.ts';
import type { Values } from '../../rollout/fleet.ts';
import { failureOf } from '../../run/runner.ts';
import { resourceOf } from '../../hub/run/hub-pass.ts';
import { serveMetrics } from '../../../steps/open/readiness.ts';
import type { AgentRunRequest } from '../../../requests/agent.ts';
import { deliverHere, sweepFiles, type Certificates } from './deliver.ts';
import { AgentHub } from './hub.ts';
import { OwnCluster, type Found } from './look.ts';
import { readRecord, type OnDisk } from './record-file.ts';

/** All times of agents are at random, so that those of a fleet do not come together. */
const DELAY_MS = 60_000;
const MINUTE_MS = 60_000;
const RENEW_MS = 300_000;
/** A watch is followed by a list, in case that a change was lost: 10 minutes ± 30 %. */
const LIST_S = [420, 780] as const;
/** The package that runs this program: a site has it from its operator, and newer versions of it from the fleet. */
const OWN_PACKAGE = 'curlew-agent';
/** Its back-off is that of the record; no add-on has this name. */
const RECORD = 'record.json';

/** How packages come onto this node and leave it. They throw `CurlewError`. */
export interface Packages {
  /** True if it is on this node, also in part. */
  readonly has: (name: string) => Promise<boolean>;
  readonly install: (content: HubPackage, values: Values, options: { readonly isBack: boolean }) => Promise<void>;
  readonly remove: (name: string, options: { readonly keepGoing: boolean }) => Promise<void>;
  /** What the hook of a package says; undefined if it has none. */
  readonly health: (name: string) => Promise<Found | undefined>;
}

export interface AgentParts {
  readonly request: AgentRunRequest;
  readonly context: Context;
  readonly cluster: string;
  /** Identifier of the one hub that is obeyed. */
  readonly hub: string;
  readonly keys: readonly TrustedKey[];
  readonly allowUnsigned: boolean;
  /** The folder of the agent. */
  readonly folder: string;
  readonly hubApi: KubeApi;
  /** Client of its own cluster. */
  readonly api: KubeApi;
  readonly packages: Packages;
  /** Certificates of add-ons. */
  readonly certificates: Certificates & Pick<AddonCertificates, 'renew'>;
  /** Renews the certificate if that is due. */
  readonly renew: () => Promise<unknown>;
}

/**
 * Until the signal aborts, whose reason it throws, or between two jobs after its program was replaced or, once that is reported,
 * removed: its service starts the new one. `BUSY` while another agent has this folder.
 */
export async function runLoop(parts: AgentParts): Promise<void> {
  const { folder, context } = parts;
  const file = join(folder, RECORD);
  await makeFolder(folder);
  await using _claim = await claim(file);
  const record = await readRecord(file);
  const over = new AbortController();
  const signal = AbortSignal.any([context.signal, over.signal]);
  const loop = new Loop(parts, record, signal);
  await using _metrics = await serveMetrics(parts.request.metrics, () => loop.metrics());
  const inBackground = loop.background().map(async (one) => one.catch((error: unknown) => over.abort(error)));
  try {
    await loop.run();
  } finally {
    over.abort();
    await Promise.all(inBackground);
  }
}

class Loop {
  readonly #parts: AgentParts;
  readonly #signal: AbortSignal;
  readonly #changes = new Wake();
  readonly #watch: Watch<Order>;
  readonly #hub: AgentHub;
  readonly #look: OwnCluster;
  readonly #backoff = new Backoff();
  readonly #answers = helmAnswers(ANSWERS_MS);
  #record: AgentRecord;
  #text: string;
  #seen: Omit<ClusterSeen, 'ahead'> | undefined;
  /** The status of the cluster as the hub has it; undefined until it is read. */
  #stored: { readonly status: unknown } | undefined;
  #lastNote = '';
  /** A hook that says how a package is; a job waits for it, and none begins meanwhile: in a sandbox, two could not write. */
  #asking: Promise<Found | undefined> | undefined;
  #isBusy = false;
  readonly #passes = new PassCounts();
  readonly #jobs = new Map<string, number>();
  #errors = 0;

  constructor(parts: AgentParts, { record, text }: OnDisk, signal: AbortSignal) {
    const { cluster, hubApi, api } = parts;
    this.#parts = parts;
    this.#record = record;
    this.#text = text;
    this.#signal = signal;
    this.#hub = new AgentHub(hubApi, { cluster, signal });
    this.#look = new OwnCluster(api, async (name) => this.#ask(name));
    this.#watch = new Watch(hubApi, {
      resource: resourceOf('ClusterAddon'),
      namespace: namespaceOf(cluster),
      listEvery: LIST_S,
      look: readOrder,
      onChange: () => this.#changes.set(),
    });
  }

  background(): readonly Promise<unknown>[] {
    const { request, renew } = this.#parts;
    const signal = this.#signal;
    const late = delay(Math.random() * (request.delay ?? DELAY_MS), undefined, { signal });
    const afterDelay = async (work: () => Promise<unknown>): Promise<unknown> => {
      await late.catch(() => undefined);
      signal.throwIfAborted();
      return work();
    };
    // Machines that are copies have one name, and may have the same process.
    const holder = `${hostname()}/${process.pid}_${randomBytes(6).toString('hex')}`;
    return [
      afterDelay(async () => this.#watch.run(signal)),
      afterDelay(async () => this.#each(MINUTE_MS, async () => this.#hub.beat(holder))),
      afterDelay(async () => this.#each(RENEW_MS, renew)),
      afterDelay(async () => this.#each(RENEW_MS, async () => this.#renewAddons())),
      this.#each(MINUTE_MS, async () => this.#lookNow()),
    ].map(async (one) =>
      one.catch((error: unknown) => {
        if (!signal.aborted) throw error;
      }),
    );
  }

  metrics(): string {
    const states = Object.values(this.#record.addons).map(({ state }) => state);
    return agentMetrics({ passes: this.#passes, states, jobs: this.#jobs, errors: this.#errors });
  }

  /** Again and again, at an interval ± 25 %; a failure is reported. */
  async #each(ms: number, work: () => Promise<unknown>): Promise<never> {
    for (;;) {
      await this.#try(work);
      await pause(ms * (0.75 + Math.random() / 2), { signal: this.#signal });
    }
  }

  async #try(work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      requireRefusal(error, this.#signal);
      this.#errors += 1;
      this.#say('warning', error.message);
      return false;
    }
  }

  #say(level: 'info' | 'warning', text: string): void {
    if (text !== this.#lastNote) this.#parts.context.report({ type: 'note', level, text });
    this.#lastNote = text;
  }

  /** A job brings the certificates of what is not here yet. */
  async #renewAddons(): Promise<void> {
    const here = Object.values(this.#record.addons).filter(
      ({ state, spec }) => state === 'Succeeded' && spec.action === 'Install',
    );
    const { problem } = await this.#parts.certificates.renew(here, this.#signal);
    if (problem !== undefined) this.#say('warning', problem);
  }

  async #lookNow(): Promise<void> {
    const here = Object.entries(this.#record.addons).filter(
      ([, { state, spec }]) => state === 'Succeeded' && spec.action === 'Install',
    );
    this.#seen = await this.#look.look(new Map(here), { now: seconds(), signal: this.#signal });
    if (this.#look.problem !== undefined) this.#say('warning', this.#look.problem);
    this.#changes.set();
  }

  async #ask(name: string): Promise<Found | undefined> {
    if (this.#isBusy) return undefined;
    this.#asking = this.#parts.packages.health(name);
    return this.#asking.finally(() => (this.#asking = undefined));
  }

  async run(): Promise<void> {
    const { request, hub, folder, cluster, context } = this.#parts;
    const signal = this.#signal;
    const program = context.program?.().executable;
    const begunAs = await identityOf(program);
    // Without a line, a log would get one for its silence again and again.
    this.#say('info', `the agent of ${cluster} has begun`);
    let acceptOlder = request.acceptOlder === true;
    for (;;) {
      this.#changes.clear();
      const problem = this.#watch.problem;
      const orders = problem === undefined ? new Map(this.#watch.values().map((one) => [one.at.name, one])) : undefined;
      const decided = obey(orders, this.#record, { now: seconds(), hub, acceptOlder, seen: this.#look.seen });
      // Without a record nothing begins: a restart would not know of it.
      const isKept = await this.#keep(decided.record);
      this.#passes.ended(orders !== undefined, seconds());
      if (orders !== undefined) {
        acceptOlder = false;
        await this.#report(orders, decided);
      }
      const waitMs = this.#backoff.keep(new Set(['', RECORD, ...(orders?.keys() ?? [])]));
      const isAs = await identityOf(program);
      if (isAs !== begunAs && (isAs !== GONE || (orders !== undefined && waitMs === Infinity))) {
        return this.#say(
          'info',
          `the agent of ${cluster} ends: its program was ${isAs === GONE ? 'removed' : 'replaced'}`,
        );
      }
      const [job] = decided.jobs;
      if (job !== undefined && isKept) {
        const done = await this.#do(job);
        this.#jobs.set(done.result, (this.#jobs.get(done.result) ?? 0) + 1);
        if (done.result === 'done') this.#look.forget(job.addon);
        await this.#keep(afterJob(this.#record, job, done, { now: seconds(), random: Math.random() }));
        continue;
      }
      await this.#try(async () => sweepFiles(join(folder, 'files'), this.#record));
      await this.#changes.wait(Math.min(decided.recheckAfter * 1000, waitMs, MINUTE_MS), { signal });
    }
  }

  /** Returns true if the record is on disk, too. */
  async #keep(record: AgentRecord): Promise<boolean> {
    this.#record = record;
    const text = `${exactJson(record)}\n`;
    if (text !== this.#text) {
      await this.#write(RECORD, async () => {
        await writeStateFile(join(this.#parts.folder, RECORD), text);
        this.#text = text;
      });
    }
    return text === this.#text;
  }

  /** What could not be written is tried again after a while. */
  async #write(key: string, work: () => Promise<unknown>): Promise<void> {
    if (!this.#backoff.mayBegin(key)) return;
    if (await this.#try(work)) this.#backoff.succeeded(key);
    else this.#backoff.failed(key);
  }

  async #report(orders: ReadonlyMap<string, Order>, decided: Decided): Promise<void> {
    const now = seconds();
    // The hub has one clock: by that of a site that is slow, a success would look old, and its soak be cut short.
    const ahead = Math.round((Date.now() - this.#parts.hubApi.now().getTime()) / 1000);
    for (const [name, order] of orders) {
      const [refusal, health] = [decided.refused.get(name), this.#look.health.get(name)];
      const [left, seen] = [this.#look.left.get(name), this.#look.seen.get(name)];
      const status = agentStatus(order, keptOf(decided.record, name), { refusal, health, left, seen, now, ahead });
      if (status === undefined) continue;
      await this.#write(name, async () => {
        const written = await this.#hub.writeStatus(order.at, status);
        if (written !== undefined) this.#watch.put(written);
      });
    }
    const seen = this.#seen;
    if (seen !== undefined)
      await this.#write('', async () => this.#reportCluster({ ...seen, ahead }, decided, now - ahead));
  }

  async #reportCluster(seen: ClusterSeen, decided: Decided, now: number): Promise<void> {
    this.#stored ??= { status: await this.#hub.clusterStatus() };
    const degraded = degradedOf(decided, this.#hub.rival);
    const present = hubClusterStatus(seen, [degraded], this.#stored.status, now);
    const status = { ...present, lastSeen: timeOf(now) };
    await this.#hub.writeClusterStatus(status);
    this.#stored = { status };
  }

  async #do(job: AgentJob): Promise<AgentDone> {
    const { context: outer, packages, request, folder, keys, allowUnsigned, cluster: name, certificates } = this.#parts;
    const { addon, spec, act } = job;
    const content = contentOf(addon, spec);
    const context = { ...outer, signal: this.#signal };
    const { version, revision } = spec;
    this.#say('info', `${act} ${addon}${version === undefined ? '' : ` ${version}`}, revision ${revision}`);
    const given = { request, context, keys, allowUnsigned, certificates, answers: this.#answers };
    const tools = { ...given, name, files: join(folder, 'files') };
    if (content === undefined)
      return { result: 'bad', reason: 'Unreadable', message: 'this version of curlew cannot read its source' };
    const done =
      'entry' in content ? await deliverHere(job, content, tools) : await this.#package(job, content.package, packages);
    if (done.result !== 'done') this.#say('warning', `${act} ${addon}: ${done.message}`);
    return done;
  }

  async #package(
    { addon, spec, act, keepGoing }: AgentJob,
    content: HubPackage,
    packages: Packages,
  ): Promise<AgentDone> {
    const { name } = content;
    const own = keptOf(this.#record, addon);
    const brought = own?.package;
    this.#isBusy = true;
    await this.#asking?.catch(() => undefined);
    try {
      if (act === 'install') {
        if (brought !== name) {
          const other = brought !== undefined && (await packages.has(brought)) ? brought : undefined;
          if (other !== undefined)
            return { result: 'bad', reason: 'OtherPackage', message: `remove it first: its package is ${other}` };
          if (name !== OWN_PACKAGE && (await packages.has(name))) {
            const message = `the fleet has not brought the package ${name}: curlew uninstall ${name} on the node removes it`;
            return { result: 'bad', reason: 'OtherOwner', message };
          }
          if (!(await this.#keep(withPackage(this.#record, addon, name))))
            return { result: 'later', reason: 'Waiting', message: 'its record cannot be written' };
        }
        await packages.install(content, spec.values, { isBack: own?.good.includes(spec.specHash) === true });
      } else if (act === 'remove' && brought !== undefined) await packages.remove(brought, { keepGoing });
      return { result: 'done', reason: '', message: '' };
    } catch (error) {
      requireRefusal(error, this.#signal);
      const [message = ''] = error.message.split('\n');
      if (failureOf(error) === 'later') return { result: 'later', reason: 'Waiting', message };
      const bad = BAD.get(error.code);
      if (bad !== undefined) return { result: 'bad', reason: bad, message };
      return { result: 'failed', reason: act === 'install' ? 'DeliveryFailed' : 'RemovalFailed', message };
    } finally {
      this.#isBusy = false;
    }
  }
}

/** What is at fault with a package. */
const BAD: ReadonlyMap<CurlewError['code'], string> = new Map([
  ['SIGNATURE_INVALID', 'Unsigned'],
  ['DIGEST_MISMATCH', 'OtherDigest'],
  ['HOOK_FAILED', 'HookFailed'],
]);

const GONE = '';

/** Another file at its path is another one: the inode of a program that runs is not given to others. */
async function identityOf(program: string | undefined): Promise<string> {
  if (program === undefined) return GONE;
  return stat(program).then(
    ({ dev, ino }) => `${dev}:${ino}`,
    () => GONE,
  );
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}
