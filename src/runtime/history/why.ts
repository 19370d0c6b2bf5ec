/** Explains the last result of an add-on, and what its next run would do. */
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { addonRef } from '../../core/ref.ts';
import { compareWithCluster } from '../cluster/compare-records.ts';
import type { NodeCluster } from '../cluster/cluster.ts';
import { parseActionId, type ActionName } from '../plan/action-id.ts';
import { readHistory, readRun, type ActionHistory, type RunHistory, type RunState } from './history.ts';
import { AROUND_KUBERNETES, hookCall, type HookKind } from '../plan/hooks.ts';
import { isPlaced } from '../node/placed-package.ts';
import { type AppliedRecord, type ExtractedRecord, type Records, recordOf } from '../plan/records.ts';
import type { DoneAction } from '../plan/run-plan.ts';

export interface AddonHistory {
  readonly name: string;
  readonly version: string | undefined;
  /** Undefined if none of the kept runs had the add-on. */
  readonly last:
    | {
        readonly run: string;
        readonly began: string | undefined;
        readonly state: RunState;
        /** Its mode in the plan, and why. */
        readonly mode: string;
        readonly because: string;
        /** Its actions that the resumed run had done. */
        readonly before: readonly DoneAction[];
        /** Its own actions, in their order. */
        readonly actions: readonly ActionHistory[];
        /** The error that stopped the run. */
        readonly message: string | undefined;
        /** One of its own actions stopped the run. */
        readonly culprit: boolean;
      }
    | undefined;
  readonly record: AppliedRecord | undefined;
  /** How the cluster's record differs from this node's, or why that is unknown; undefined if they agree. */
  readonly cluster: string | undefined;
  /** The next run, as far as it is known without its packages and settings. */
  readonly next: string;
}

const HOOKS: readonly HookKind[] = [
  'pre_init',
  'install',
  'already_applied',
  'join',
  'upgrade',
  'post_init',
  'outro',
  'pre_remove',
  'leave',
  'uninstall',
];

interface WhyOptions {
  readonly find?: (() => Promise<NodeCluster | undefined>) | undefined;
  readonly signal: AbortSignal;
}

/**
 * `NOT_FOUND` if neither the records of this node or of its cluster nor a kept run have the add-on. `find` opens the cluster;
 * absent if there is none, as with --root.
 */
export async function whyAddon(directory: string, name: string, { find, signal }: WhyOptions): Promise<AddonHistory> {
  const { records, runs, busy } = await readHistory(directory);
  const word = await compareWithCluster(name, records, find);
  const next = await nextOf(directory, name, word.records, signal);
  const record = recordOf(records.applied, name);
  const extracted = records.extracted.filter((one) => one.name === name);
  const known = new Set([...Object.keys(records.applied), ...records.extracted.map((one) => one.name)]);
  for (const run of runs) {
    const history = await readRun(directory, run, { busy: busy !== undefined && run === records.lastRun });
    for (const { ref } of history.plan?.addons ?? []) known.add(ref.name);
    const last = lastOf(history, name);
    if (last === undefined) continue;
    const version = history.plan?.addons.find(({ ref }) => ref.name === name)?.ref.version;
    return { name, version, last, record, cluster: word.text, next };
  }
  const noted = recordOf(word.records.applied, name);
  if (record !== undefined || extracted.length > 0 || noted !== undefined) {
    const version = record?.version ?? noted?.version ?? extracted.at(-1)?.version;
    return { name, version, last: undefined, record, cluster: word.text, next };
  }
  const near = nearest(name, known);
  const list =
    known.size === 0 ? 'nothing is installed on this node, and no run is recorded' : `known: ${[...known].join(', ')}`;
  throw new CurlewError('NOT_FOUND', `no run in ${directory} had an add-on ${JSON.stringify(name.slice(0, 120))}`, {
    hint: near === undefined ? list : `did you mean "${near}"?`,
  });
}

function lastOf(history: RunHistory, name: string): AddonHistory['last'] {
  const planned = history.plan?.addons.find(({ ref }) => ref.name === name);
  if (planned === undefined) return undefined;
  const { run, began, state, message, actions, plan } = history;
  const around = AROUND_KUBERNETES.filter(({ addon }) => addon === name).map((one) => one.function);
  const hooks = new Set([...HOOKS.map((hook) => hookCall(name, hook)), ...around]);
  const isOwn = ({ kind, object }: Partial<ActionName>): boolean => kind === 'hook' && hooks.has(object ?? '');
  const before = (plan?.continues?.done ?? []).filter(({ action }) => isOwn(parseActionId(action) ?? {}));
  const own = actions.filter(({ addon }) => addon === name);
  const culprit = state !== 'finished' && own.some((action) => action.state === 'failed');
  return { run, began, state, mode: planned.mode, because: planned.because, before, actions: own, message, culprit };
}

async function nextOf(
  directory: string,
  name: string,
  { applied, extracted }: Records,
  signal: AbortSignal,
): Promise<string> {
  const record = recordOf(applied, name);
  if (record === undefined) return 'it is installed, because it is not installed now';
  if (!record.finished) return 'it is installed again: its last run did not finish';
  const row = extracted.find((one) => one.name === name && one.version === record.version);
  const files = await filesOutlook(directory, row, record, signal);
  if (record.by === 'join') return `it joins again: every join and upgrade of this node runs its hooks${files}`;
  return `with the same version, package and settings it is not installed again, only checked${files}`;
}

async function filesOutlook(
  directory: string,
  row: ExtractedRecord | undefined,
  { digest }: AppliedRecord,
  signal: AbortSignal,
): Promise<string> {
  if (row !== undefined) {
    const inPlace = await isPlaced(directory, addonRef(row.name, row.version, row.tree), digest, { signal });
    if (inPlace === true) return '';
    if (inPlace === undefined) return '; its files are verified, or extracted again';
  }
  return '; its files are extracted again, because they differ from the package';
}
