/** Executes a plan on an install folder, from the journal to the records. */
import { join } from 'node:path';
import { asError, CurlewError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { HELPER_PACKAGE } from '../../core/package.ts';
import { addonRef, compareVersions } from '../../core/ref.ts';
import { ActiveRun } from './active-run.ts';
import { checkHost, requireFit, type HostChecks } from '../host/host-checks.ts';
import { requireHost } from '../host/host-plan.ts';
import { createJournal } from '../journal/journal.ts';
import { endLastRun } from '../prepare/last-run.ts';
import { addressOfDefaultRoute } from '../host/host-facts.ts';
import { requireOwnSystem } from '../host/own-system.ts';
import { describedPackage } from '../node/placed-package.ts';
import type { PreparedRun } from '../prepare/prepare.ts';
import { clearStaging } from '../node/put-in-place.ts';
import { createRunFolder, dropShellFiles, PREFLIGHT_FILE } from '../prepare/run-folder.ts';
import type { ShellVariable } from '../../spec/variables.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { rollbackWarnings } from '../prepare/rollback-targets.ts';
import type { RunPlan } from '../plan/run-plan.ts';
import type { RunOptions, RunResult } from './run-result.ts';

/**
 * Executes all actions of a plan. `UNSUPPORTED`, `NO_SPACE` and `PREFLIGHT_FAILED` occur before any change, `HOOK_FAILED` if a
 * hook fails. After any error the same call resumes from a consistent state.
 */
export async function execute(prepared: PreparedRun, plan: RunPlan, options: RunOptions): Promise<RunResult> {
  const started = performance.now();
  const { request, last } = prepared;
  const { directory } = request.place;
  await requireOwnSystem(prepared, options);
  await requireHost(prepared, plan, options);
  const checks = await checkHost(prepared, { readOnly: false, ...options });
  if (checks !== undefined) requireFit(checks, options);
  for (const text of await rollbackWarnings(prepared, options))
    options.report({ type: 'note', level: 'warning', text });
  if (last !== undefined) await endLastRun(last, options);
  await clearStaging(directory);
  const folder = await createRunFolder({
    directory,
    scripts: request.scripts,
    settings: request.variables,
    own: await ownVariables(prepared, options),
    carried: prepared.carried?.path,
    asked: {
      variables: request.variables,
      settings: Object.fromEntries(
        [...request.packages, ...(request.removal?.packages ?? [])].map(({ source, settings }) => [
          source.ref.name,
          settings,
        ]),
      ),
      command: request.command,
    },
  });
  if (checks !== undefined) await saveChecks(folder.path, checks);
  await using journal = await createJournal(join(directory, nodePath.journal(folder.run)));
  const run = new ActiveRun({ prepared, options, plan, folder, journal });
  try {
    const result = await run.execute();
    await dropShellFiles(folder, true);
    return { ...result, run: folder.run, checks: checks?.counts, seconds: (performance.now() - started) / 1000 };
  } catch (error) {
    const outcome = options.signal.aborted ? 'cancelled' : 'failed';
    // The disk may be full: report the first error, not that of the journal.
    const [message = ''] = asError(error).message.split('\n');
    await journal.append({ type: 'ended', outcome, message }).catch(() => undefined);
    if (!options.signal.aborted || (error instanceof CurlewError && error.hint !== undefined)) throw error;
    throw new CurlewError('CANCELLED', 'cancelled', {
      hint: 'run the same command again, or curlew resume, to continue',
      cause: error,
    });
  }
}

async function saveChecks(folder: string, checks: HostChecks): Promise<void> {
  await writeStateFile(join(folder, PREFLIGHT_FILE), `${JSON.stringify(checks, undefined, 2)}\n`);
}

/** Variables that are set for every hook (kurl.md 6.6). */
async function ownVariables(
  prepared: PreparedRun,
  { signal }: Pick<RunOptions, 'signal'>,
): Promise<readonly ShellVariable[]> {
  const { kind, place, removal, variables } = prepared.request;
  const isSet = (variable: string): boolean => variables.some(([name, value]) => name === variable && value !== '');
  const version = variables.some(([name, value]) => name === 'IPV6_ONLY' && value === '1') ? 6 : 4;
  const mayAsk = place.connected && !isSet('PRIVATE_ADDRESS');
  const address = mayAsk ? await addressOfDefaultRoute(version) : undefined;
  const helper = await helperImage(prepared, signal);
  return [
    ['DIR', '.'],
    ['KURL_INSTALL_DIRECTORY', place.seen],
    ['K8S_DISTRO', 'kubeadm'],
    ...(address === undefined ? [] : [['PRIVATE_ADDRESS', address] as const]),
    // On other nodes it is a setting (kurl.md 4.4).
    ...(kind === 'install' ? [['MASTER', '1'] as const] : []),
    ...(removal?.keepData === true ? [['CURLEW_KEEP_DATA', '1'] as const] : []),
    ...(helper === undefined ? [] : [['KURL_UTIL_IMAGE', helper] as const]),
  ];
}

/** The image of helper programs from this run's packages, or otherwise the newest one that is extracted on the node. */
async function helperImage(
  { request: { packages, place }, companions, records }: PreparedRun,
  signal: AbortSignal,
): Promise<string | undefined> {
  const isHelper = ({ name }: { readonly name: string }): boolean => name === HELPER_PACKAGE;
  const own = [...packages, ...companions].find(({ source }) => isHelper(source.ref))?.source;
  const [newest] = records.extracted.filter(isHelper).toSorted((a, b) => compareVersions(b.version, a.version));
  const found =
    own ??
    (newest &&
      (await describedPackage(place.directory, addonRef(newest.name, newest.version, newest.tree), newest.digest, {
        signal,
      })));
  return found?.addon.images[0]?.reference;
}
