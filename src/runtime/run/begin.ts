/** The first phases of a run, and its last one: checks of the machine, its folder, its journal. */
import { join } from 'node:path';
import { nodePath } from '../../core/layout.ts';
import { HELPER_PACKAGE } from '../../core/package.ts';
import { addonRef, compareVersions } from '../../core/ref.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import type { ShellVariable } from '../../spec/variables.ts';
import { addressOfDefaultRoute } from '../host/host-facts.ts';
import { createJournal } from '../journal/journal.ts';
import { describedPackage } from '../node/placed-package.ts';
import { clearStaging } from '../node/put-in-place.ts';
import { endHooks } from '../prepare/last-run.ts';
import { rollbackWarnings } from '../prepare/former-states.ts';
import { createRunFolder, dropShellFiles, PREFLIGHT_FILE, pruneRuns } from '../prepare/run-folder.ts';
import type { Run } from './run.ts';

export async function requirePlanFit(run: Run): Promise<void> {
  if (run.request.checks === undefined) return;
  const { checkHost, requireFit } = await import('../host/host-checks.ts');
  run.checks = await checkHost(run, { readOnly: false });
  if (run.checks !== undefined) requireFit(run.checks, run);
}

export async function warnOfRollbacks(run: Run): Promise<void> {
  for (const text of await rollbackWarnings(run, run)) run.report({ type: 'note', level: 'warning', text });
}

/** Ends hooks that survived the last run, and removes what it left half unpacked. */
export async function endLastRun(run: Run): Promise<void> {
  if (run.last !== undefined) await endHooks(run.last, run);
  await clearStaging(run.directory);
}

export async function beginFolder(run: Run): Promise<void> {
  const { folder, directory, request, carried, checks } = run;
  const { scripts, variables, packages, removal, command } = request;
  const rows = [...packages, ...(removal?.packages ?? [])].map(({ source, settings }) => [source.ref.name, settings]);
  await createRunFolder(folder, {
    directory,
    scripts,
    settings: variables,
    own: await ownVariables(run),
    carried: carried?.path,
    asked: { variables, settings: Object.fromEntries(rows) as Readonly<Record<string, unknown>>, command },
  });
  if (checks === undefined) return;
  await writeStateFile(join(folder.path, PREFLIGHT_FILE), `${JSON.stringify(checks, undefined, 2)}\n`);
}

/** Until the last phase, a run that finds this journal resumes this one. */
export async function beginJournal(run: Run): Promise<void> {
  const { directory, folder, plan, last, fingerprint, carried, changes } = run;
  run.journal = await createJournal(join(directory, nodePath.journal(folder.run)));
  const earlier = [...(last?.attempts ?? [])];
  await run.journal.append({ type: 'planned', plan, earlier, ...fingerprint, carried: carried?.digest });
  await changes.begin();
  await pruneRuns(directory, changes.now, folder.run);
}

export async function endRun({ journal, folder }: Run): Promise<void> {
  await journal.append({ type: 'ended', outcome: 'finished' });
  await dropShellFiles(folder, true);
}

/** Variables that are set for every hook (kurl.md 6.6). */
async function ownVariables(run: Run): Promise<readonly ShellVariable[]> {
  const { kind, place, removal, variables } = run.request;
  const isSet = (variable: string): boolean => variables.some(([name, value]) => name === variable && value !== '');
  const version = variables.some(([name, value]) => name === 'IPV6_ONLY' && value === '1') ? 6 : 4;
  const mayAsk = place.connected && !isSet('PRIVATE_ADDRESS');
  const address = mayAsk ? await addressOfDefaultRoute(version) : undefined;
  const helper = await helperImage(run);
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
async function helperImage({ directory, sources, records, signal }: Run): Promise<string | undefined> {
  const isHelper = ({ name }: { readonly name: string }): boolean => name === HELPER_PACKAGE;
  const own = sources.find(({ source }) => isHelper(source.ref))?.source;
  const [newest] = records.extracted.filter(isHelper).toSorted((a, b) => compareVersions(b.version, a.version));
  const helper =
    own ??
    (newest &&
      (await describedPackage(directory, addonRef(newest.name, newest.version, newest.tree), newest.digest, {
        signal,
      })));
  return helper?.addon.images[0]?.reference;
}
