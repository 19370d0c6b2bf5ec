/** The health hook of an add-on on this node, which is called outside of runs. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../../core/context.ts';
import { digestOf, hexOf } from '../../core/digest.ts';
import { requireRefusal } from '../../core/errors.ts';
import { INSTALL_SH, nodePath } from '../../core/layout.ts';
import { ownScripts } from '../../own/scripts.ts';
import { endProcesses, membersOf } from '../../platform/process/process-tree.ts';
import { runHook } from '../../runtime/hooks/hook.ts';
import { describedPackage, placedDigest, requireOwnFolders } from '../../runtime/node/placed-package.ts';
import { seenPath } from '../../runtime/node/node-place.ts';
import { readRecords } from '../../runtime/node/records.ts';
import { hookMarker } from '../../runtime/plan/action-id.ts';
import { healthFunction } from '../../runtime/plan/hooks.ts';
import { recordedRef, recordOf } from '../../runtime/plan/records.ts';
import { createRunFolder, runFolder } from '../../runtime/prepare/run-folder.ts';
import { readSavedRequest } from '../../runtime/prepare/saved-request.ts';
import type { TargetRequest } from '../../requests/node.ts';
import { hookEnv, placeOf, placesOf } from './target.ts';
import { findTrialCluster } from './trial-cluster.ts';

/** More than that is no sign of health, and would hold up what else an agent looks at. */
const LIMIT_MS = 30_000;
const LOG_CAP = { most: 1 << 20, head: 1 << 16, tail: 1 << 16 };

export interface HookHealth {
  /** `Unknown`: the hook could not be called. */
  readonly is: 'True' | 'False' | 'Unknown';
  readonly why: string;
}

/**
 * Calls the hook with the settings of the run that installed the add-on, and ends what an earlier call has left. Undefined if the
 * add-on is not there, or has no such hook. Only one call at a time, and with a `root` none during a run. Throws what the signal throws.
 */
export async function healthByHook(
  name: string,
  request: TargetRequest,
  context: Context,
  { limitMs = LIMIT_MS }: { readonly limitMs?: number } = {},
): Promise<HookHealth | undefined> {
  const { signal } = context;
  try {
    return await called(name, request, { ...context, report: () => undefined, ask: undefined }, limitMs);
  } catch (error) {
    requireRefusal(error, signal);
    // The lines after the first one are its output, which may have secrets.
    const [why = ''] = error.message.split('\n');
    return { is: error.code === 'HOOK_FAILED' ? 'False' : 'Unknown', why };
  }
}

async function called(
  name: string,
  request: TargetRequest,
  context: Context,
  limitMs: number,
): Promise<HookHealth | undefined> {
  const { signal, report } = context;
  const target = placesOf(request, context);
  const { directory } = target;
  const records = await readRecords(directory);
  const record = recordOf(records.applied, name);
  if (record?.digest === undefined) return undefined;
  const ref = recordedRef(records, name, record.version);
  await requireOwnFolders(directory, [ref]);
  const hook = healthFunction(name);
  const description = await describedPackage(directory, ref, record.digest, { signal });
  if (description?.addon.hooks.includes(hook) !== true) return undefined;
  if ((await placedDigest(directory, ref, { signal })) !== record.digest)
    return { is: 'Unknown', why: `${name}: its files were changed, so ${hook} is not called` };
  const asked = await readSavedRequest(directory, record.run);
  const place = await placeOf(target, context);
  // Agents with folders of their own may share a machine.
  const folder = runFolder(directory, `health-${hexOf(digestOf(directory)).slice(0, 8)}`);
  const processes = (): ReturnType<typeof membersOf>['outside'] =>
    membersOf({ session: -1, marker: hookMarker(folder.run, hook) }).outside;
  await endProcesses(processes, {});
  await rm(folder.path, { recursive: true, force: true });
  try {
    const { variables = [], settings = {} } = asked ?? {};
    const own = [
      ['DIR', '.'],
      ['KURL_INSTALL_DIRECTORY', place.seen],
    ] as const;
    await createRunFolder(folder, {
      directory,
      scripts: ownScripts(),
      settings: variables,
      own,
      carried: undefined,
      asked: { variables, settings, command: undefined },
    });
    const cluster = await findTrialCluster(request, context);
    await using _kubeconfig = await cluster?.writeIn(folder.exchange);
    const kubeconfig = seenPath(place, join(folder.exchange, nodePath.kubeconfig));
    const env = { ...hookEnv(request, context), ...(cluster && { KUBECONFIG: kubeconfig }) };
    const { path, scripts, settings: file, carried, exchange, run } = folder;
    const script = join(directory, nodePath.addon(ref), INSTALL_SH);
    const shell = {
      place,
      run,
      folder: path,
      exchange,
      scripts,
      settings: file,
      carried,
      installScripts: [script],
      env,
    };
    const options = { report, logCap: LOG_CAP, signal };
    await runHook(shell, { addon: name, function: hook, attempt: 1, returnsOutput: true, limitMs }, options);
    return { is: 'True', why: '' };
  } finally {
    await rm(folder.path, { recursive: true, force: true });
  }
}
