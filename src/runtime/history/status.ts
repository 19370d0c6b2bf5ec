/** The installed add-ons of a node, and the result of its last run. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { asError } from '../../core/errors.ts';
import type { Digest } from '../../core/digest.ts';
import { INSTALL_SH, nodePath } from '../../core/layout.ts';
import { addonRef, compareText, type AddonVersion } from '../../core/ref.ts';
import { readHistory, readRun, type RunHistory } from './history.ts';
import { isPlaced } from '../node/placed-package.ts';
import { NO_RUN, offeredRollback, type ExtractedRecord, type Records } from '../plan/records.ts';

interface AddonStatus extends AddonVersion {
  /** Digest of the package; undefined if another tool installed it. */
  readonly digest: Digest | undefined;
  readonly settings: Digest;
  /** The run that changed it last, and when that started (ISO 8601, or `unknown`). */
  readonly run: string;
  readonly when: string;
  /** That run finished; otherwise the next one installs the add-on again. */
  readonly finished: boolean;
  /** The version that `curlew rollback` restores; absent if there is none or its package is damaged. */
  readonly back?: string | undefined;
  /** Whether the package is in place, complete and unchanged; absent if its files are not recorded. */
  readonly inPlace?: boolean | undefined;
  /** Folders of operating systems that its bundle omitted; absent if it is whole. */
  readonly omitted?: readonly string[] | undefined;
}

export interface ExtractedStatus extends Pick<ExtractedRecord, 'tree' | 'name' | 'version' | 'digest'> {
  /** Without one, files and images are all that the package has. */
  readonly hasInstallScript: boolean;
}

export interface NodeStatus {
  readonly directory: string;
  /** By name. */
  readonly addons: readonly AddonStatus[];
  /** Packages that are extracted but not installed; all that have no `install.sh` are among them. */
  readonly extracted: readonly ExtractedStatus[];
  readonly lastRun: Omit<RunHistory, 'actions' | 'plan'> | undefined;
  /** Process ID of the run in progress. */
  readonly busy: number | undefined;
  /** The hook that this run is executing; absent if none. */
  readonly hook?: { readonly addon: string; readonly function: string } | undefined;
  /** Messages about files that could not be read. */
  readonly problems: readonly string[];
}

/** Empty if the install folder does not exist. `FILE_UNUSABLE` if the records are damaged. */
export async function nodeStatus(directory: string, { signal }: { readonly signal: AbortSignal }): Promise<NodeStatus> {
  const { records, busy } = await readHistory(directory);
  const problems: string[] = [];
  const { lastRun } = records;
  const last =
    lastRun === undefined
      ? undefined
      : await readRun(directory, lastRun, { busy: busy !== undefined }).catch((error: unknown) => {
          problems.push(asError(error).message);
          return undefined;
        });
  const { actions = [], plan: _plan, ...summary } = last ?? {};
  const begun = actions.find(({ state, function: called }) => state === 'begun' && called !== undefined);
  return {
    directory,
    addons: await addonsOf(directory, records, signal),
    extracted: await extractedOf(directory, records),
    lastRun: last === undefined ? undefined : (summary as NodeStatus['lastRun']),
    busy,
    ...(begun?.function === undefined ? {} : { hook: { addon: begun.addon, function: begun.function } }),
    problems,
  };
}

async function extractedOf(directory: string, { applied, extracted }: Records): Promise<readonly ExtractedStatus[]> {
  const others = extracted.filter(({ name }) => !Object.hasOwn(applied, name));
  return Promise.all(
    others.map(async (one) => {
      const script = join(directory, nodePath.addon(addonRef(one.name, one.version, one.tree)), INSTALL_SH);
      const hasInstallScript = await access(script).then(
        () => true,
        () => false,
      );
      return { ...one, hasInstallScript };
    }),
  );
}

async function addonsOf(
  directory: string,
  { applied, extracted }: Records,
  signal: AbortSignal,
): Promise<readonly AddonStatus[]> {
  const rows = Object.entries(applied).map(async ([name, record]): Promise<AddonStatus> => {
    const { version, digest, settings, run, finished } = record;
    const { tree = 'addons', omitted } = extracted.find((one) => one.name === name && one.version === version) ?? {};
    const inPlace = await isPlaced(directory, addonRef(name, version, tree), digest, { signal });
    const back = await backOf(directory, name, record, { extracted, signal });
    const known = { name, version, digest, settings, run, when: timeOf(run), finished, back, inPlace };
    return omitted === undefined ? known : { ...known, omitted };
  });
  return (await Promise.all(rows)).toSorted((a, b) => compareText(a.name, b.name));
}

/** The version that a rollback restores. What opens its package is read only if there is one: few add-ons were upgraded. */
async function backOf(
  directory: string,
  name: string,
  record: Records['applied'][string],
  options: Pick<Records, 'extracted'> & { readonly signal: AbortSignal },
): Promise<string | undefined> {
  const target = offeredRollback(name, record);
  if (target === undefined) return undefined;
  const { whyUnavailable } = await import('../prepare/former-states.ts');
  return (await whyUnavailable(directory, name, target, options)) === undefined ? target.version : undefined;
}

/** A run ID starts with its time: `20261121T101500Z-3f2a`. */
function timeOf(run: string): string {
  if (run === NO_RUN) return 'unknown';
  return run.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-.*$/, '$1-$2-$3T$4:$5:$6Z');
}
