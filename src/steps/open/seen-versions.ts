/** Registers of the signed releases and bundles that were seen before, to detect older ones: small files. */
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { canonicalJson } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { byKey, digest, readJson, type Read } from '../../core/schema.ts';
import { finalContents, type ArchiveStatement, type SeenBundles } from '../../formats/signing/archive-statement.ts';
import { isVersionNumber } from '../../formats/signing/claim.ts';
import { keyHint, type TrustedKey } from '../../formats/signing/keys.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';
import type { SeenVersions } from '../../ship/release/signed-release.ts';

/** File names in the install folder; that of releases also in the user's folder for state. */
const SEEN_BUNDLES = 'seen-bundles.json';
export const SEEN_RELEASES = 'seen-releases.json';
const LIMIT = 1 << 20;

const format = v.literal(1);
const version = v.custom<number>(isVersionNumber);
const seenReleases = v.object({
  format,
  /** Highest versions of current-release statements, by address. */
  stores: byKey(version),
  /** Newest release, by address; absent in files of an earlier curlew. */
  releases: v.optional(byKey(v.object({ release: v.string(), version }))),
});
/** Highest versions of bundles, by key and name. */
const seenBundles = v.object({ format, keys: byKey(byKey(v.object({ version, contents: digest }))) });

/** Throws `FILE_UNUSABLE` for a damaged file: without its data, anything would be accepted. */
async function readRegister<Schema extends v.GenericSchema>(
  path: string,
  schema: Schema,
  what: string,
  hint: string,
): Promise<Read<Schema> | undefined> {
  const text = await readOwnFile(path, LIMIT);
  const bad = (): CurlewError =>
    new CurlewError('FILE_UNUSABLE', `cannot read ${path}: it is damaged, so the ${what} seen before are unknown`, {
      hint,
    });
  return text === undefined ? undefined : readJson(schema, text, { bad });
}

async function writeRegister(path: string, value: object, mode: number): Promise<void> {
  await makeFolder(dirname(path));
  await writeStateFile(path, `${canonicalJson({ format: 1, ...value })}\n`, mode);
}

const RELEASES_HINT = 'check the stores, then remove this file: the next command trusts the release that it sees';

/**
 * The versions of releases that were read from equivalent stores: none may be older than the newest state of any of them.
 * `writes` is false for read-only commands; `unwritable` is what to do where the file cannot be written.
 */
export function seenVersions(
  path: string,
  addresses: readonly string[],
  { writes, unwritable }: { readonly writes: boolean; readonly unwritable: string | undefined },
): SeenVersions {
  const read = async () => {
    const seen = await readRegister(path, seenReleases, 'releases', RELEASES_HINT);
    return { stores: seen?.stores ?? {}, releases: seen?.releases ?? {} };
  };
  const known = <Value>(rows: Readonly<Record<string, Value>>, address: string): readonly Value[] =>
    [address, ...addresses].flatMap((one) => valueOf(rows, one) ?? []);
  return {
    highest: async (address) => {
      const versions = known((await read()).stores, address);
      return versions.length === 0 ? undefined : Math.max(...versions);
    },
    newest: async (address) => {
      return known((await read()).releases, address).toSorted((a, b) => b.version - a.version)[0];
    },
    remember: async (address, { release, version, isCurrent }) => {
      if (!writes) return;
      // Read again: another command may have updated it meanwhile.
      const { stores, releases } = await read();
      const isHigher = isCurrent && version > (valueOf(stores, address) ?? 0);
      const isNewer = version > (valueOf(releases, address)?.version ?? 0);
      if (!isHigher && !isNewer) return;
      const changed = {
        stores: isHigher ? { ...stores, [address]: version } : stores,
        releases: isNewer ? { ...releases, [address]: { release, version } } : releases,
      };
      await writeRegister(path, changed, 0o600).catch((error: unknown) => {
        if (!(error instanceof CurlewError)) throw error;
        throw new CurlewError(error.code, error.message, { hint: unwritable ?? error.hint, cause: error });
      });
    },
  };
}

function valueOf<Value>(rows: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(rows, key) ? rows[key] : undefined;
}

const BUNDLES_HINT =
  'make sure that you have the newest bundle, then remove this file: the next run trusts the bundle that it sees';

async function readBundles(directory: string): Promise<Read<typeof seenBundles>['keys']> {
  return (await readRegister(join(directory, SEEN_BUNDLES), seenBundles, 'bundles', BUNDLES_HINT))?.keys ?? {};
}

/** The highest seen version of each bundle name, signed by any of these keys; empty without a folder or file. */
export async function readSeenBundles(
  directory: string | undefined,
  keys: readonly TrustedKey[],
): Promise<SeenBundles> {
  const merged = new Map<string, NonNullable<ReturnType<SeenBundles['get']>>>();
  const all = directory === undefined ? {} : await readBundles(directory);
  for (const { key } of keys) {
    for (const [name, seen] of Object.entries(valueOf(all, keyHint(key)) ?? {})) {
      if (seen.version > (merged.get(name)?.version ?? 0)) merged.set(name, seen);
    }
  }
  return merged;
}

/** Records a version unless a higher one was seen. The caller must hold the lock of the node. */
export async function rememberBundle(
  directory: string,
  { key }: TrustedKey,
  statement: ArchiveStatement,
): Promise<void> {
  const [all, hint, { name, version }] = [await readBundles(directory), keyHint(key), statement];
  const own = valueOf(all, hint) ?? {};
  if (version < (valueOf(own, name)?.version ?? 0)) return;
  const names = { ...own, [name]: { version, contents: finalContents(statement) } };
  await writeRegister(join(directory, SEEN_BUNDLES), { keys: { ...all, [hint]: names } }, 0o644);
}
