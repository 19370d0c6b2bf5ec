/** The highest versions of signed bundles that a node has seen, by key and name, to detect older ones. */
import { join } from 'node:path';
import * as v from 'valibot';
import { canonicalJson } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { byKey, digest, readJson } from '../../core/schema.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';
import { finalContents, type ArchiveStatement, type SeenBundles } from '../../formats/signing/archive-statement.ts';
import { isVersionNumber } from '../../formats/signing/claim.ts';
import { keyHint, type TrustedKey } from '../../formats/signing/keys.ts';

/** File name in the install folder. */
const SEEN_BUNDLES = 'seen-bundles.json';
const LIMIT = 1 << 20;

/**
 * The highest seen version of each bundle name, signed by any of these keys; empty without a folder or file. `FILE_UNUSABLE` if
 * the file is damaged: otherwise any bundle would be accepted.
 */
export async function readSeenBundles(
  directory: string | undefined,
  keys: readonly TrustedKey[],
): Promise<SeenBundles> {
  const merged = new Map<string, NonNullable<ReturnType<SeenBundles['get']>>>();
  if (directory === undefined) return merged;
  const all = await readAll(join(directory, SEEN_BUNDLES));
  for (const { key } of keys) {
    for (const [name, seen] of all.get(keyHint(key)) ?? []) {
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
  const path = join(directory, SEEN_BUNDLES);
  const [all, hint, { name, version }] = [await readAll(path), keyHint(key), statement];
  const own: SeenBundles = all.get(hint) ?? new Map();
  if (version < (own.get(name)?.version ?? 0)) return;
  const names: SeenBundles = new Map([...own, [name, { version, contents: finalContents(statement) }]]);
  const keys = new Map<string, SeenBundles>([...all, [hint, names]]);
  const rows = [...keys].map(([one, seen]) => [one, Object.fromEntries(seen)] as const);
  await makeFolder(directory);
  await writeStateFile(path, `${canonicalJson({ format: 1, keys: Object.fromEntries(rows) })}\n`, 0o644);
}

const seenBundles = v.object({
  format: v.literal(1),
  /** By key and name. */
  keys: byKey(byKey(v.object({ version: v.custom<number>(isVersionNumber), contents: digest }))),
});

async function readAll(path: string): Promise<ReadonlyMap<string, SeenBundles>> {
  const text = await readOwnFile(path, LIMIT);
  if (text === undefined) return new Map();
  const { keys } = readJson(seenBundles, text, { bad: () => damaged(path) });
  return new Map(Object.entries(keys).map(([hint, names]) => [hint, new Map(Object.entries(names))]));
}

function damaged(path: string): CurlewError {
  return new CurlewError(
    'FILE_UNUSABLE',
    `cannot read ${path}: it is damaged, so the bundles seen before are unknown`,
    {
      hint: 'make sure that you have the newest bundle, then remove this file: the next run trusts the bundle that it sees',
    },
  );
}
