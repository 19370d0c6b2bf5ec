/** The files of a fleet, from files and folders. */
import { access, constants, readdir, stat } from 'node:fs/promises';
import { dirname, join, normalize, resolve } from 'node:path';
import { fileOf } from '../../channel/channel.ts';
import type { Context } from '../../core/context.ts';
import { compareDiagnostics, type Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError, errnoOf, fileError, redact } from '../../core/errors.ts';
import type { FleetFile, WrittenCluster } from '../../fleet/fleet.ts';
import type { Path } from '../../formats/yaml/yaml.ts';
import { readFleet, type ReadFleet } from '../../fleet/read.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { compareNames } from '../../rollout/groups.ts';
import { shownLine } from '../../spec/secret-settings.ts';
import type { FleetRequest } from '../requests/fleet.ts';

/** Also of manifests in the same folder, which are only looked at. */
const MAX_BYTES = 64 << 20;
const MAX_FILES = 10_000;
const AT_ONCE = 8;

export interface OpenedFleet extends Omit<ReadFleet, 'diagnostics'> {
  /** With the text of their lines. */
  readonly diagnostics: readonly (Diagnostic & { readonly source: string | undefined })[];
  readonly errors: number;
  readonly warnings: number;
  /** Folder of the first file, or the first folder, that was given. */
  readonly folder: string;
}

/** `NOT_FOUND` if nothing is at a path, or no file has a cluster or an add-on. Mistakes in the files are findings. */
export async function openFleet({ files }: FleetRequest, context: Context): Promise<OpenedFleet> {
  const found = (await Promise.all(files.map(async (given) => listFiles(given, context)))).flat();
  const unique = [...new Map(found.map((one) => [one.path, one])).values()];
  if (unique.length > MAX_FILES) throw new CurlewError('UNSUPPORTED', `a fleet has at most ${MAX_FILES} files`);
  const read = async ({ path, folder }: Omit<FleetFile, 'text'>, signal: AbortSignal): Promise<FleetFile> => {
    const content = await readLimited(resolve(context.cwd, path), MAX_BYTES, { signal });
    return { path, folder, text: content.toString('utf8') };
  };
  const limits = { width: AT_ONCE, signal: context.signal };
  const texts = await mapLimited(unique, async (one, { signal }) => read(one, signal), limits);
  const fleet = readFleet(texts);
  const { clusters, addons } = fleet;
  const missing = await Promise.all([
    ...clusters.map(async (cluster) => {
      if (cluster.secret !== undefined) return [];
      const hint = 'put a kubeconfig there, such as the output of kubectl config view --minify --flatten --raw';
      return unreadable(cluster, ['spec', 'access', 'kubeconfig'], { file: cluster.kubeconfig, hint }, context);
    }),
    ...addons.map(async (addon) => {
      const file = addon.entry && fileOf(addon.entry);
      return file === undefined ? [] : unreadable(addon, ['spec', 'source', 'manifest'], { file }, context);
    }),
  ]);
  const all = [...fleet.diagnostics, ...missing.flat()].toSorted(compareDiagnostics);
  if (all.length === 0 && clusters.length + addons.length === 0) {
    throw new CurlewError(
      'NOT_FOUND',
      `cannot find a fleet in ${redact(files.join(', '))}: no file has a Cluster or FleetAddon`,
      {
        hint: 'write apiVersion: fleet.curlew.dev/v1alpha1 and kind: Cluster or FleetAddon',
      },
    );
  }
  const lines = new Map(texts.map(({ path, text }) => [path, text.split(/\r?\n/)]));
  const diagnostics = all.map((one) => ({
    ...one,
    source: shownLine(lines.get(one.place.file) ?? [], one.place.line - 1),
  }));
  const count = (severity: Diagnostic['severity']): number => all.filter((one) => one.severity === severity).length;
  const folder = unique[0]?.folder ?? '.';
  return { ...fleet, folder, diagnostics, errors: count('error'), warnings: count('warning') };
}

async function listFiles(given: string, { cwd, signal }: Context): Promise<readonly Omit<FleetFile, 'text'>[]> {
  const top = normalize(given);
  try {
    if (!(await stat(resolve(cwd, top))).isDirectory()) return [{ path: top, folder: dirname(top) }];
    return (await filesBelow(top, { cwd, signal })).map((path) => ({ path, folder: top }));
  } catch (error) {
    signal.throwIfAborted();
    if (errnoOf(error) === 'ENOENT')
      throw new CurlewError('NOT_FOUND', `cannot read ${given}: it does not exist`, { hint: 'check the spelling' });
    throw fileError(`read ${given}`, error);
  }
}

/** YAML files in natural order; folders whose name begins with a dot are the business of other programs. */
async function filesBelow(folder: string, at: Pick<Context, 'cwd' | 'signal'>): Promise<readonly string[]> {
  at.signal.throwIfAborted();
  const entries = await readdir(resolve(at.cwd, folder), { withFileTypes: true });
  const below = await Promise.all(
    entries
      .toSorted((a, b) => compareNames(a.name, b.name, 'native'))
      .filter(({ name }) => !name.startsWith('.'))
      .map(async (entry): Promise<readonly string[]> => {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) return filesBelow(path, at);
        return /\.ya?ml$/.test(entry.name) ? [path] : [];
      }),
  );
  return below.flat();
}

/** A file that a document names at `path`. */
async function unreadable(
  { found }: Pick<WrittenCluster, 'found'>,
  path: Path,
  { file, hint }: { readonly file: string; readonly hint?: string },
  { cwd }: Context,
): Promise<readonly Diagnostic[]> {
  try {
    await access(resolve(cwd, file), constants.R_OK);
    return [];
  } catch {
    const name = String(path.at(-1));
    const message = `cannot read the ${name} ${file}`;
    return [{ code: `fleet/${name}`, severity: 'error', message, place: found.placeOf(path), hint }];
  }
}
