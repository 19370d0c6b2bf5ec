/** The files of a fleet, from files and folders. */
import { access, constants, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, normalize, relative, resolve } from 'node:path';
import { entryFile } from '../../cluster/channel/channel.ts';
import { isRemote } from '../../cluster/channel/location.ts';
import type { Context } from '../../core/context.ts';
import { compareDiagnostics, type Diagnostic, type Place } from '../../core/diagnostic.ts';
import { CurlewError, errnoOf, fileError, pathHint, redact } from '../../core/errors.ts';
import type { FleetFile } from '../fleet.ts';
import { readFleet, type ReadFleet } from '../read.ts';
import type { Having } from '../upstream/cluster-management-addon.ts';
import { unrenderedIn } from '../unrendered.ts';
import { currentContext, parseKubeconfig } from '../../cluster/kube/kubeconfig.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { compareNames } from '../rollout/groups.ts';
import { shownLine } from '../../spec/secret-settings.ts';
import type { FleetRequest } from '../../requests/fleet.ts';

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
  /** The same files with the clusters that have each add-on: a Placement keeps those that it has chosen. */
  readonly again: (has: Having) => Pick<ReadFleet, 'clusters' | 'addons' | 'channels'>;
}

/**
 * `NOT_FOUND` if nothing is at a path, or no file has a cluster or an add-on. Mistakes in the files are findings; `isWhole`: also
 * those in kubeconfigs and in the values of single clusters, each of which otherwise concerns only its cluster.
 */
export async function openFleet(
  { files }: FleetRequest,
  context: Context,
  { isWhole = false }: { readonly isWhole?: boolean } = {},
): Promise<OpenedFleet> {
  const listed = (await Promise.all(files.map(async (path) => listFiles(path, context)))).flat();
  const unique = [...new Map(listed.map((one) => [one.path, one])).values()];
  if (unique.length > MAX_FILES) throw new CurlewError('UNSUPPORTED', `a fleet has at most ${MAX_FILES} files`);
  const read = async ({ path, folder }: Omit<FleetFile, 'text'>, signal: AbortSignal): Promise<FleetFile> => {
    const content = await readLimited(resolve(context.cwd, path), MAX_BYTES, { signal });
    return { path, folder, text: content.toString('utf8') };
  };
  const limits = { width: AT_ONCE, signal: context.signal };
  const named = new Set(files.map((one) => normalize(one)));
  const folders = new Set(unique.map((one) => resolve(context.cwd, one.folder)));
  const roots = await Promise.all([...folders].map(async (one) => realpath(one)));
  const outside = await mapLimited(
    unique.filter(({ path }) => !named.has(path)),
    async ({ path }) => leadsOut(path, roots, context, { file: path, line: 1, column: 1, length: 1 }),
    limits,
  );
  const strange = new Set(outside.flat().map(({ place }) => place.file));
  const inside = unique.filter(({ path }) => !strange.has(path));
  const texts = await mapLimited(inside, async (one, { signal }) => read(one, signal), limits);
  const fleet = readFleet(texts);
  const { clusters, addons } = fleet;
  const local = [...fleet.channels.values()].flatMap(({ entries }) =>
    entries.flatMap((entry) => {
      const file = entryFile(entry);
      return file === undefined || isRemote(file) ? [] : [{ file, place: entry.place }];
    }),
  );
  const missing = await Promise.all([
    Promise.resolve(outside.flat()),
    ...local.map(async ({ file, place }) => leadsOut(file, roots, context, place)),
    ...clusters.map(async ({ findings, kubeconfig, secret }) => {
      if (secret !== undefined) return [];
      const place = findings.placeOf(['spec', 'access', 'kubeconfig']);
      const unread = await unreadable('kubeconfig', kubeconfig, place, context);
      const wrong = isWhole && unread.length === 0 ? await unusable(kubeconfig, place, context) : [];
      return [...unread, ...wrong, ...(await leadsOut(kubeconfig, roots, context, place))];
    }),
    ...addons.map(async ({ findings, entry }) => {
      const file = entry && entryFile(entry);
      if (file === undefined || strange.has(file)) return [];
      const place = findings.placeOf(['spec', 'source', 'manifest']);
      return [
        ...(await unreadable('manifest', file, place, context)),
        ...(await leadsOut(file, roots, context, place)),
      ];
    }),
  ]);
  const isRead = fleet.diagnostics.every(({ severity }) => severity !== 'error');
  const values = isWhole && isRead ? unrenderedIn(fleet) : [];
  const all = [...fleet.diagnostics, ...missing.flat(), ...values].toSorted(compareDiagnostics);
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
  const isPlaced = addons.some(({ kind }) => kind === 'ClusterManagementAddOn');
  const again = (has: Having): ReadFleet => (isPlaced ? readFleet(texts, has) : fleet);
  return { ...fleet, folder, diagnostics, errors: count('error'), warnings: count('warning'), again };
}

/** YAML files of a folder, or the file itself. `NOT_FOUND` if nothing is there. */
export async function listFiles(file: string, { cwd, signal }: Context): Promise<readonly Omit<FleetFile, 'text'>[]> {
  const top = normalize(file);
  try {
    if (!(await stat(resolve(cwd, top))).isDirectory()) return [{ path: top, folder: dirname(top) }];
    return (await filesBelow(top, { cwd, signal })).map((path) => ({ path, folder: top }));
  } catch (error) {
    signal.throwIfAborted();
    if (errnoOf(error) === 'ENOENT')
      throw new CurlewError('NOT_FOUND', `cannot read ${file}: it does not exist`, {
        hint: pathHint(file, 'check the spelling'),
      });
    throw fileError(`read ${file}`, error);
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

const KUBECONFIG = 'put a kubeconfig there, such as the output of kubectl config view --minify --flatten --raw';

/** A file that a document names. */
async function unreadable(
  what: 'kubeconfig' | 'manifest',
  file: string,
  place: Place,
  { cwd }: Context,
): Promise<readonly Diagnostic[]> {
  try {
    await access(resolve(cwd, file), constants.R_OK);
    return [];
  } catch {
    const hint = what === 'kubeconfig' ? KUBECONFIG : undefined;
    return [{ code: `fleet/${what}`, severity: 'error', message: `cannot read the ${what} ${file}`, place, hint }];
  }
}

/** A file that is no kubeconfig, or names no cluster. */
async function unusable(file: string, place: Place, { cwd, signal }: Context): Promise<readonly Diagnostic[]> {
  let message = `kubeconfig ${file}: it has no current context`;
  try {
    const content = await readLimited(resolve(cwd, file), MAX_BYTES, { signal });
    if (currentContext([{ ...parseKubeconfig(file, content.toString('utf8')), path: file }]) !== undefined) return [];
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    ({ message } = error);
  }
  return [{ code: 'fleet/kubeconfig', severity: 'error', message, place, hint: KUBECONFIG }];
}

/** A link out of the folders may lead to any file of this machine. What cannot be read is another finding. */
async function leadsOut(
  file: string,
  roots: readonly string[],
  { cwd }: Context,
  place: Place,
): Promise<readonly Diagnostic[]> {
  const real = await realpath(resolve(cwd, file)).catch(() => undefined);
  if (real === undefined || roots.some((root) => !/^\.\.(?:\/|$)/.test(relative(root, real)))) return [];
  const message = `${file} is a link that leads out of the folder`;
  return [{ code: 'fleet/outside', severity: 'error', message, place, hint: 'put the file itself into the folder' }];
}
