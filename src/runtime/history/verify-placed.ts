/** Verifies all packages of an install folder against their records. Reads every byte and changes nothing. */
import { join } from 'node:path';
import { asError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import type { Digest } from '../../core/digest.ts';
import { nodePath } from '../../core/layout.ts';
import { addonRef, formatRef, type AddonTree, type AddonVersion } from '../../core/ref.ts';
import { readHistory } from './history.ts';
import { compareFiles } from '../node/placed-files.ts';
import type { Difference } from '../plan/run-plan.ts';
import { recordedPackage, requireOwnFolders } from '../node/placed-package.ts';
import { readPlacedRecord } from '../node/placed-record.ts';
import type { ExtractedRecord } from '../plan/records.ts';

export interface VerifiedPackage extends AddonVersion {
  readonly tree: AddonTree;
  /** Recorded digest of the package. */
  readonly digest: Digest;
  readonly files: number;
  readonly bytes: number;
  /** Paths are relative to the install folder; those of folders end with a slash. */
  readonly differences: readonly { readonly path: string; readonly what: readonly Difference[] }[];
  /** Why the expected files are unknown; absent if they are known. */
  readonly problem?: string | undefined;
}

export interface VerifiedNode {
  readonly directory: string;
  readonly packages: readonly VerifiedPackage[];
  /** Problems of the install folder itself. */
  readonly problems: readonly string[];
}

interface VerifyOptions {
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Ignores files that hooks have added to packages. `FILE_UNUSABLE` if the records are damaged. */
export async function verifyPlaced(directory: string, options: VerifyOptions): Promise<VerifiedNode> {
  const { records, busy } = await readHistory(directory);
  if (busy !== undefined) {
    const text = `a run is in progress (process ${busy}): files that it has not written yet may be reported as missing`;
    options.report({ type: 'note', level: 'warning', text });
  }
  const refs = records.extracted.map(({ tree, name, version }) => addonRef(name, version, tree));
  const problems = await requireOwnFolders(directory, refs).then(
    () => [],
    (error: unknown) => [asError(error).message],
  );
  const packages: VerifiedPackage[] = [];
  for (const one of records.extracted) packages.push(await verifyOne(directory, one, options));
  return { directory, packages, problems };
}

async function verifyOne(
  directory: string,
  { tree, name, version, digest }: ExtractedRecord,
  { report, signal }: VerifyOptions,
): Promise<VerifiedPackage> {
  const ref = addonRef(name, version, tree);
  const path = nodePath.addon(ref);
  const known = { tree, name, version, digest };
  const record = await readPlacedRecord(directory, path);
  if (record?.digest !== digest) {
    const problem = `its files are not recorded: the next curlew install of ${name} verifies them or extracts them again`;
    return { ...known, files: 0, bytes: 0, differences: [], problem };
  }
  const progress = { report, title: `verify ${formatRef(ref)}` };
  const judged = await compareFiles(join(directory, path), record.files, { thorough: true, progress, signal });
  const differences = judged.differences.map((one) => ({
    path: one.path === './' ? `${path}/` : `${path}/${one.path}`,
    what: one.what,
  }));
  const bytes = record.files.reduce((sum, { size }) => sum + size, 0);
  const result = { ...known, files: record.files.length, bytes, differences };
  if (differences.length > 0) return result;
  try {
    await recordedPackage(directory, ref, digest, { signal });
    return result;
  } catch (error) {
    signal.throwIfAborted();
    return { ...result, problem: `the record of its files does not match its package: ${asError(error).message}` };
  }
}
