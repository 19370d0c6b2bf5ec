/** Mistakes of the manifests of a channel. Pure, but for the reader that is passed in. */
import type { Cancellable } from '../../core/cancellable.ts';
import { compareDiagnostics, type Diagnostic } from '../../core/diagnostic.ts';
import { asError, CurlewError, redact } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { entryTitle, entryFile, channelFinding, type Channel, type Entry } from './channel.ts';
import { noticesContent } from './choose.ts';
import { hashOfManifest } from './location.ts';
import { readObjects, type ManifestObject } from './objects.ts';

const AT_ONCE = 8;
/** Findings in one manifest. */
const MAX_SHOWN = 20;

/**
 * Content of a manifest; undefined if it does not exist. What it throws is reported as the reason why the file cannot be read.
 */
export type ReadManifest = (location: string, options: Cancellable) => Promise<Uint8Array | undefined>;

/**
 * Findings about the manifests of a channel: those that do not exist or cannot be read, and hashes that are missing or of other
 * contents, and mistakes in the manifests themselves. Packages are checked by the catalog of their release, and charts in
 * repositories are not downloaded.
 */
export async function checkManifests(
  { entries, kind, compat }: Channel,
  read: ReadManifest,
  { signal }: Cancellable,
): Promise<readonly Diagnostic[]> {
  const files = new Map<string, Entry[]>();
  for (const entry of entries) {
    const location = entryFile(entry);
    if (location === undefined) continue;
    const owners = files.get(location);
    if (owners === undefined) files.set(location, [entry]);
    else owners.push(entry);
  }
  const diagnostics: Diagnostic[] = [];
  const queue = [...files];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      signal.throwIfAborted();
      const [location, owners] = next;
      diagnostics.push(...(await manifestFindings({ location, owners, kind, compat }, read, { signal })));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return diagnostics.toSorted(compareDiagnostics);
}

async function manifestFindings(
  {
    location,
    owners,
    kind,
    compat,
  }: Pick<Channel, 'kind' | 'compat'> & { readonly location: string; readonly owners: readonly Entry[] },
  read: ReadManifest,
  { signal }: Cancellable,
): Promise<readonly Diagnostic[]> {
  const all = (message: string, hint?: string): readonly Diagnostic[] =>
    owners.map((entry) => channelFinding('error', 'file', entry, redact(`${entryTitle(entry)}: ${message}`), hint));
  let content: Uint8Array | undefined;
  try {
    content = await read(location, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CurlewError) return all(error.message, error.hint);
    return all(`cannot read ${location}: ${asError(error).message}`);
  }
  if (content === undefined) return all(`${location} does not exist`);
  const hashes = owners.flatMap((entry) => {
    const field = kind === 'Channel' ? 'hash' : 'manifestHash';
    const title = entryTitle(entry);
    if (entry.hash === '') {
      const effect = noticesContent(entry, compat)
        ? 'a change of its manifest is applied unverified'
        : 'a change of its manifest is not noticed';
      const message = `${title} has no ${field}: ${effect}`;
      return [
        channelFinding(
          'warning',
          'hash',
          entry,
          message,
          `write ${field}: ${kind === 'Channel' ? 'sha256:' : ''}${hashOfManifest(content, { kind })}`,
        ),
      ];
    }
    const actual = hashOfManifest(content, { kind, hash: entry.hash });
    if (entry.hash === actual) return [];
    const message = redact(`${title}: ${location} has the hash ${actual}, not ${entry.hash}`);
    return [channelFinding('error', 'hash', entry, message, 'publish the manifest again, or correct the hash')];
  });
  if (owners.some(({ source }) => source?.type === 'chart')) return hashes;
  return [...hashes, ...contentFindings(redact(location), content, kind)];
}

/** To kops, a manifest without objects is one. */
function contentFindings(file: string, content: Uint8Array, kind: Channel['kind']): readonly Diagnostic[] {
  const { objects = [], diagnostics: unreadable } = readObjects(file, content);
  const diagnostics = [...unreadable, ...objects.flatMap(stringDataFindings)].toSorted(compareDiagnostics);
  const shown = diagnostics
    .slice(0, MAX_SHOWN)
    .map((one) =>
      one.code === 'manifest/empty' && kind !== 'Channel' ? { ...one, severity: 'warning' as const } : one,
    );
  const [last] = shown.slice(-1);
  const more = diagnostics.length - shown.length;
  if (last === undefined || more === 0) return shown;
  return [...shown, { ...last, code: 'manifest/more', message: `and ${more} more findings`, hint: undefined }];
}

/** Managed fields name stringData, and the server keeps data: a key that is dropped stays. */
function stringDataFindings({ kind, name, value, place }: ManifestObject): readonly Diagnostic[] {
  if (kind !== 'Secret' || !isObject(value['stringData'])) return [];
  const message = `a key that is later removed from stringData stays in Secret ${name}`;
  const hint = 'write the values in base64 into data instead';
  return [{ code: 'manifest/string-data', severity: 'warning', message, place, hint }];
}
