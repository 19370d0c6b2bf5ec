/** What an agent delivers to its own cluster: contents by their digest, with a signature of a pinned key. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { entryFile, type Entry } from '../../../cluster/channel/channel.ts';
import { recordKey } from '../../../cluster/channel/record.ts';
import type { Context } from '../../../core/context.ts';
import { digestOf, hexOf } from '../../../core/digest.ts';
import { CurlewError, fileError, redact, requireRefusal } from '../../../core/errors.ts';
import { holdCluster, openChannelCluster, type ChannelCluster } from '../../../cluster/deliver/channel-cluster.ts';
import type { HelmAnswers } from '../../../cluster/deliver/helm.ts';
import { fleetOwner, recordFor } from '../../observe.ts';
import type { Job } from '../../pass.ts';
import { DELETIONS } from '../../rollout/pruning.ts';
import type { TrustedKey } from '../../../formats/signing/keys.ts';
import { verifyText } from '../../../formats/signing/signature.ts';
import type { AgentDone, AgentJob } from '../../hub/agent.ts';
import type { AgentRecord } from '../../hub/agent-record.ts';
import { contentOf } from '../../hub/content.ts';
import type { AddonCertificates } from '../addon-certificates.ts';
import { makeFolder } from '../../../platform/files/make-folder.ts';
import { readFound, writeStateFile } from '../../../platform/files/state-file.ts';
import { failureOf, Runner } from '../../run/runner.ts';
import { openChannels } from '../../../steps/open/channel-files.ts';
import { signaturePath } from '../../../steps/open/trust.ts';
import type { AgentRunRequest } from '../../../requests/agent.ts';
import { refusalWithoutAgent } from '../../upstream/addon-template.ts';
import { objectsOf } from '../../upstream/template-objects.ts';

const MAX_BYTES = 64 << 20;

const REFUSALS: ReadonlyMap<CurlewError['code'], string> = new Map([
  ['SIGNATURE_INVALID', 'Unsigned'],
  ['DIGEST_MISMATCH', 'OtherDigest'],
  ['NOT_FOUND', 'NotFound'],
]);

export type Certificates = Pick<AddonCertificates, 'bring' | 'remove'>;

interface Tools {
  readonly certificates: Certificates;
  readonly request: AgentRunRequest;
  readonly context: Context;
  /** The name of the cluster at the hub. */
  readonly name: string;
  /** Where verified files are kept. */
  readonly files: string;
  readonly keys: readonly TrustedKey[];
  readonly allowUnsigned: boolean;
  readonly answers: HelmAnswers;
}

type Delivered = Exclude<NonNullable<ReturnType<typeof contentOf>>, { readonly package: unknown }>;

/** Does a job with a manifest, a chart or a template, whose certificates come before it and go after it. Throws only what the signal throws. */
export async function deliverHere(job: AgentJob, content: Delivered, tools: Tools): Promise<AgentDone> {
  const { certificates, allowUnsigned, context } = tools;
  const { spec } = job;
  const unfit = brings(job) ? unfitFor(content, spec, allowUnsigned) : undefined;
  if (unfit !== undefined) return { result: 'bad', reason: 'Content', message: unfit };
  if (!content.isTemplate) return deliverContent(job, content, tools);
  const { signal } = context;
  try {
    const brought = brings(job) ? await certificates.bring(spec, signal) : undefined;
    if (brought?.isHeld === true) return { result: 'later', reason: 'Registration', message: brought.problem ?? '' };
    const done = await deliverContent(job, content, tools);
    if (job.act === 'remove' && done.result === 'done') await certificates.remove(spec, signal);
    return done;
  } catch (error) {
    requireRefusal(error, signal);
    return { result: 'later', reason: 'Registration', message: error.message.split('\n')[0] ?? '' };
  }
}

/** It delivers content: what it removes is known by its record. */
function brings({ act }: Pick<AgentJob, 'act'>): boolean {
  return act === 'install' || act === 'restore';
}

const TO_PUSH = 'give the hub its kubeconfig by access.kubeconfigSecret in the Cluster of this site';

/** Why this agent cannot deliver it, and what can. */
function unfitFor(
  { isTemplate, hasHubValues }: { readonly isTemplate: boolean; readonly hasHubValues: boolean },
  { values }: AgentJob['spec'],
  allowUnsigned: boolean,
): string | undefined {
  if (isTemplate && !allowUnsigned) {
    const unsigned = 'nothing signs a template: register the agent with --allow-unsigned';
    return refusalWithoutAgent(values) === undefined ? `${unsigned}, or ${TO_PUSH}` : unsigned;
  }
  return hasHubValues
    ? `an agent cannot read valuesSecret and valuesConfigMap, which stay in the hub: ${TO_PUSH}`
    : undefined;
}

async function deliverContent(job: AgentJob, { entry, isTemplate }: Delivered, tools: Tools): Promise<AgentDone> {
  const { request, context, name, answers } = tools;
  const { addon, spec, act, live } = job;
  let begun = false;
  try {
    const content = brings(job) && !isTemplate ? await verified(entry, tools) : undefined;
    const cluster = await openChannelCluster(request, context);
    await using held = await holdCluster(cluster, { doing: `${act} ${addon}`, context });
    begun = true;
    const owner = otherOwner(addon, entry, held.cluster);
    const takesOver = job.takesOver !== undefined;
    if (owner !== undefined && !(takesOver && owner === fleetOwner(job.takesOver))) {
      if (!brings(job)) return { result: 'done', reason: '', message: '' };
      const message = `it belongs to ${owner}, and an agent takes nothing over: remove it there first`;
      return { result: 'bad', reason: 'OtherOwner', message };
    }
    const { specHash, version } = spec;
    const revision = {
      entry,
      content: { source: spec.source, ...(version !== undefined && { version }), values: spec.values, specHash },
      revision: specHash,
      rendered: isTemplate ? objectsOf(spec.values, name, entry.name) : undefined,
      rules: undefined,
    };
    const one: Job = {
      cluster: 'this cluster',
      addon,
      act,
      hash: brings(job) ? specHash : '',
      takesOver,
      prune: spec.prune,
      isNew: false,
    };
    const record = recordFor(held.cluster.facts.records, addon, entry);
    const runner = new Runner([one], held.cluster, {
      request,
      context,
      contentFor: () => revision,
      read: async () => Promise.resolve(content ?? new Uint8Array()),
      live: live && record && new Map([[recordKey(record.namespace, record.addon), live]]),
      isRegistered: true,
      answers,
    });
    const { result, reason: message, orphans } = await runner.run(one);
    if (result === 'done') return { result, reason: '', message, orphans };
    if (result === 'asks') return { result, reason: DELETIONS, message };
    const failure = failureOf(runner.errors.get(one));
    const reason = failure === 'later' ? 'Waiting' : brings(job) ? 'DeliveryFailed' : 'RemovalFailed';
    return { result: failure, reason, message, orphans };
  } catch (error) {
    requireRefusal(error, context.signal);
    const [message = ''] = error.message.split('\n');
    const refusal = REFUSALS.get(error.code);
    if (refusal !== undefined) return { result: 'bad', reason: refusal, message };
    return begun
      ? { result: 'failed', reason: 'DeliveryFailed', message }
      : { result: 'later', reason: 'Waiting', message };
  }
}

/** Who else has the add-on; the agent changes only what the fleet has brought. */
function otherOwner(addon: string, entry: Entry, { facts }: ChannelCluster): string | undefined {
  const record = recordFor(facts.records, addon, entry);
  if (record !== undefined) return record.owner === fleetOwner(addon) ? undefined : record.owner;
  if (facts.installer.has(entry.name)) return 'an installer';
  return facts.annotations.has(recordKey(entry.namespace, entry.name)) ? 'another program' : undefined;
}

/**
 * The file of an entry; undefined for a chart that helm fetches. `SIGNATURE_INVALID` if it is not signed by a pinned key. Both are kept,
 * and read from there while their server is away.
 */
async function verified(entry: Entry, tools: Tools): Promise<Uint8Array | undefined> {
  const { request, context, files, keys, allowUnsigned } = tools;
  const location = entryFile(entry);
  if (location === undefined) {
    if (allowUnsigned) return undefined;
    const what = `cannot verify the chart of ${entry.name}: a chart of a repository has no signature`;
    throw new CurlewError('SIGNATURE_INVALID', what, { hint: 'name its archive by package' });
  }
  const from = { kind: 'Channel', name: undefined, location, compat: 'native', entries: [] } as const;
  await using opened = await openChannels({ ...request, channels: [] }, context);
  const isMeant = (bytes: Uint8Array): boolean => hexOf(digestOf(bytes)) === entry.hash;
  const file = join(files, entry.hash);
  const before = await readFound(file, MAX_BYTES);
  const content = before && isMeant(before) ? before : await opened.readManifest(from, entry, context);
  let signature: Uint8Array | undefined;
  if (!allowUnsigned) {
    const place = signaturePath(location);
    const name = redact(location);
    const verify = (text: Uint8Array): void =>
      void verifyText({ name, text: content, signature: Buffer.from(text).toString(), from: redact(place) }, keys);
    const known = await readFound(signaturePath(file), MAX_BYTES);
    if (known !== undefined && isAccepted(() => verify(known))) signature = known;
    else {
      // The pinned keys may be others than when it was kept.
      signature = await opened.reader(from)(place, context);
      const none = `cannot verify ${name}: there is no signature ${redact(place)}`;
      if (signature === undefined) throw new CurlewError('SIGNATURE_INVALID', none);
      verify(signature);
    }
  }
  await makeFolder(files);
  if (content !== before) await writeStateFile(file, content);
  if (signature !== undefined) await writeStateFile(signaturePath(file), signature);
  return content;
}

function isAccepted(verify: () => void): boolean {
  try {
    verify();
    return true;
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'SIGNATURE_INVALID') return false;
    throw error;
  }
}

/** Deletes the kept files that no add-on has. */
export async function sweepFiles(files: string, { addons }: AgentRecord): Promise<void> {
  const hashes = new Set(
    Object.entries(addons).map(([name, { spec }]) => {
      const content = contentOf(name, spec);
      return content && 'entry' in content ? content.entry.hash : '';
    }),
  );
  for (const name of await readdir(files).catch((): readonly string[] => [])) {
    const path = join(files, name);
    if (!hashes.has(name.slice(0, 64)))
      await rm(path, { force: true }).catch((error: unknown) => {
        throw fileError(`delete ${path}`, error);
      });
  }
}
