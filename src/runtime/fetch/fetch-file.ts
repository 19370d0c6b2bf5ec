/**
 * One file from the first of several places that gives the right bytes. What arrives stays when the machine dies, and the
 * next run asks for the rest; a file gets its name only when it is whole, verified and on disk.
 */
import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { isObject } from '../../core/json.ts';
import { openGrowingFile, type GrowingFile } from '../../platform/files/growing-file.ts';
import { requireSpace } from '../../platform/files/space.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { tryPlaces, type FetchPlace } from '../../store/places.ts';
import type { StoredObject } from '../../store/store.ts';
import { readStateFile, writeStateFile } from '../../platform/files/state-file.ts';

export interface WantedFile {
  /** For messages: `flannel-0.28.7`. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Undefined when nobody has published it: then the caller verifies what arrives. */
  readonly sha256: Digest | undefined;
  /** In their order; never empty. */
  readonly places: readonly FetchPlace[];
}

export interface FetchOptions {
  /** Bytes that are there by now; fewer than before when some had to be forgotten. */
  readonly onBytes: (bytes: number) => void;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Where the bytes that lie in a partial file come from. */
interface FetchNote {
  readonly from: string;
  readonly etag: string;
}

const NOTE_LIMIT = 16 << 10;

async function readNote(path: string): Promise<FetchNote | undefined> {
  try {
    const note: unknown = JSON.parse((await readStateFile(path, NOTE_LIMIT)) ?? '');
    if (!isObject(note)) return undefined;
    const { from, etag } = note;
    return typeof from === 'string' && typeof etag === 'string' ? { from, etag } : undefined;
  } catch {
    // Damage costs a download, no more.
    return undefined;
  }
}

/** Names beside the file that is to be. */
export function partialPaths(path: string): { readonly partial: string; readonly note: string } {
  return { partial: `${path}.partial`, note: `${path}.partial.json` };
}

/**
 * Fetches a file to `path`, whose folder exists. Bytes that an earlier run has left are gone on with; wrong ones are
 * forgotten, and asked for once more from the first. `NO_SPACE` and Ctrl-C leave what has arrived for the next run.
 */
export async function fetchFile(wanted: WantedFile, path: string, options: FetchOptions): Promise<void> {
  const { partial, note } = partialPaths(path);
  await fillPartial(wanted, { partial, note }, options);
  try {
    await rename(partial, path);
    await syncFolder(dirname(path));
    await rm(note, { force: true });
  } catch (error) {
    throw fileError(`fetch ${wanted.name}`, error);
  }
}

/** The whole file lies in the partial one when this returns. */
async function fillPartial(
  wanted: WantedFile,
  { partial, note }: ReturnType<typeof partialPaths>,
  options: FetchOptions,
): Promise<void> {
  await using file = await openGrowingFile(partial, options);
  // Killed before the name was given: nobody needs to be asked.
  if (wanted.sha256 !== undefined && (await isRight(wanted, file))) return;
  await tryPlaces(
    wanted.places,
    async (place) => {
      // What was left may be another object's, another place's, or damaged by a power cut: then each gets a fair try.
      for (let fair = false; ; fair = true) {
        const resumed = await receive(wanted, place, { file, note }, options);
        if (resumed !== 'changed' && (await isRight(wanted, file))) return;
        await forget(file, options);
        if (fair || resumed === 'no') break;
      }
      const from = `${place.store.address}/${place.key}`;
      throw new CurlewError('DIGEST_MISMATCH', `fetch ${wanted.name}: ${from} gave other bytes than were published`, {
        hint: REPLACED,
      });
    },
    options,
  );
}

const REPLACED = 'the file was replaced or damaged there: publish it again, or name a mirror with another --from';

async function isRight({ size, sha256 }: WantedFile, file: GrowingFile): Promise<boolean> {
  if (file.size() !== size) return false;
  const digest = await file.finish();
  return sha256 === undefined || sha256 === digest;
}

async function forget(file: GrowingFile, { onBytes }: FetchOptions): Promise<void> {
  await file.restart();
  onBytes(0);
}

/** Appends what is missing. Were some bytes there before, or has the object changed while it was read? */
async function receive(
  wanted: WantedFile,
  { store, key }: FetchPlace,
  { file, note }: { readonly file: GrowingFile; readonly note: string },
  options: FetchOptions,
): Promise<'no' | 'yes' | 'changed'> {
  const { onBytes, signal } = options;
  const object = await look(wanted, { store, key }, signal);
  const from = `${store.address}/${key}`;
  const begun = await readNote(note);
  const changed = begun?.from === from && begun.etag !== object.etag;
  // Without a digest to compare with only one and the same object may be gone on with.
  const foreign = wanted.sha256 === undefined && begun?.from !== from;
  if (changed || foreign || file.size() > wanted.size) await file.restart();
  const at = file.size();
  onBytes(at);
  if (at === wanted.size) return 'yes';
  await requireSpace(dirname(note), wanted.size - at, `fetch ${wanted.name}`);
  await writeStateFile(note, JSON.stringify({ from, etag: object.etag } satisfies FetchNote));
  const range = { offset: at, length: wanted.size - at };
  try {
    const { body } = await store.get(key, { range, ifMatch: object.etag, signal });
    for await (const chunk of body) {
      await file.append(chunk);
      onBytes(file.size());
    }
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'STORE_CONFLICT') return 'changed';
    throw error;
  }
  return at > 0 ? 'yes' : 'no';
}

async function look(wanted: WantedFile, { store, key }: FetchPlace, signal: AbortSignal): Promise<StoredObject> {
  const object = await store.head(key, { signal });
  if (object === undefined) throw new CurlewError('NOT_FOUND', `${store.address}: there is no ${key}`);
  if (object.size === wanted.size) return object;
  throw new CurlewError(
    'DIGEST_MISMATCH',
    `fetch ${wanted.name}: ${store.address}/${key} has ${object.size} bytes, not ${wanted.size}`,
    { hint: REPLACED },
  );
}
