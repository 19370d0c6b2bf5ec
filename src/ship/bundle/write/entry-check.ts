/** Verifies the entries of an archive while its bytes are streamed, with the same checks as `verify`. */
import { createHash } from 'node:crypto';
import type { Cancellable } from '../../../core/cancellable.ts';
import type { ArchiveIndex, PlacedEntry } from '../../../formats/archive/entry.ts';
import { sameBytes } from '../../../formats/archive/member.ts';
import { headerMember, paddingMember } from '../../../formats/archive/place.ts';
import type { SplicePlan } from '../../../formats/archive/splice.ts';
import { readPayload } from '../../../formats/archive/read.ts';
import { CurlewError } from '../../../core/errors.ts';

export interface EntryCheck {
  /**
   * Checks the next bytes of the archive. The chunk may be reused when it resolves. A damaged payload is
   * `DIGEST_MISMATCH`, a damaged header or padding `PACKAGE_INVALID`.
   */
  readonly push: (chunk: Uint8Array) => Promise<void>;
  /** Call after the last byte; resolves when everything is checked. */
  readonly finish: () => Promise<void>;
  /** Stops without a result. */
  readonly abandon: () => void;
}

/** Says from where the entry of this number in the index comes, for messages. */
export type EntryNaming = (entry: number) => string;

/** Names the sources from which entries of a planned bundle are copied; `name` is for what the plan writes itself. */
export function sourceNames(
  { origins }: Pick<SplicePlan, 'origins'>,
  sources: readonly { readonly name: string }[],
  name: string,
): EntryNaming {
  return (entry) => sources[origins[entry]?.source ?? -1]?.name ?? name;
}

/** `nameOf` identifies the archive of an entry in messages. */
export function createEntryCheck(index: ArchiveIndex, nameOf: EntryNaming, { signal }: Cancellable): EntryCheck {
  const members = membersOf(index, nameOf, signal);
  let member = members.next();
  let at = 0;
  let running: EntryCheck | undefined;
  return {
    push: async (chunk) => {
      const end = at + chunk.byteLength;
      while (member.done !== true && member.value.offset < end) {
        const { offset, length, start } = member.value;
        running ??= start();
        const until = offset + length;
        await running.push(chunk.subarray(Math.max(0, offset - at), Math.min(end, until) - at));
        if (until > end) break;
        await running.finish();
        running = undefined;
        member = members.next();
      }
      at = end;
    },
    finish: async () => {
      await running?.finish();
      if (member.done !== true) throw new Error(`${member.value.of}: ended before its last entry`);
    },
    abandon: () => running?.abandon(),
  };
}

/** A header, a payload or padding: see docs/format.md. */
interface Member {
  readonly offset: number;
  readonly length: number;
  readonly start: () => EntryCheck;
  /** The archive that it comes from, for messages. */
  readonly of: string;
}

function* membersOf(
  { entries }: ArchiveIndex,
  nameOf: EntryNaming,
  signal: AbortSignal,
): Generator<Member, void, undefined> {
  let at = 0;
  const exact = ({ path }: PlacedEntry, data: Uint8Array, of: string): Member => {
    const member = { offset: at, length: data.byteLength, start: () => startComparing(data, `${of}: ${path}`), of };
    at += data.byteLength;
    return member;
  };
  for (const [number, entry] of entries.entries()) {
    const of = nameOf(number);
    yield exact(entry, headerMember(entry), of);
    if (entry.packed === 0) continue;
    yield { offset: at, length: entry.packed, start: () => startReader(entry, of, signal), of };
    at += entry.packed;
    const padding = paddingMember(entry.size);
    if (padding.byteLength > 0) yield exact(entry, padding, of);
  }
}

/** Compares bytes with known ones. */
function startComparing(expected: Uint8Array, where: string): EntryCheck {
  let done = 0;
  return {
    push: async (chunk) => {
      if (!sameBytes(chunk, expected.subarray(done, done + chunk.byteLength))) {
        throw new CurlewError('PACKAGE_INVALID', `${where}: its tar header differs from the table of contents`, {
          hint: 'the object in the store is damaged: publish the add-on again in a new release',
        });
      }
      done += chunk.byteLength;
    },
    finish: async () => undefined,
    abandon: () => undefined,
  };
}

/** Converts a reader that pulls to one that accepts pushed chunks, one at a time. */
function startReader(entry: PlacedEntry, name: string, signal: AbortSignal): EntryCheck {
  let deliver: ((chunk: Uint8Array | undefined) => void) | undefined;
  let signalReady: (() => void) | undefined;
  let ready = new Promise<void>((resolve) => (signalReady = resolve));
  const source = {
    name,
    size: Number.MAX_SAFE_INTEGER,
    async *read() {
      for (;;) {
        const chunk = await new Promise<Uint8Array | undefined>((resolve) => {
          deliver = resolve;
          signalReady?.();
        });
        if (chunk === undefined) return;
        yield chunk;
      }
    },
  };
  const reading = (async () => {
    for await (const chunk of readPayload(source, entry, { signal })) void chunk;
  })();
  // The next push or finish reports its failure.
  const settled = reading.then(
    () => undefined,
    () => undefined,
  );
  const packed = entry.packedDigest === undefined ? undefined : createHash('sha256');
  const handOver = async (chunk: Uint8Array | undefined): Promise<void> => {
    await Promise.race([ready, settled]);
    ready = new Promise<void>((resolve) => (signalReady = resolve));
    deliver?.(chunk);
    deliver = undefined;
  };
  return {
    push: async (chunk) => {
      packed?.update(chunk);
      // The reader of a deflated member keeps its chunks.
      await handOver(entry.stored ? chunk : Uint8Array.from(chunk));
      await Promise.race([ready, reading]);
    },
    finish: async () => {
      await handOver(undefined);
      await reading;
      if (packed === undefined || `sha256:${packed.digest('hex')}` === entry.packedDigest) return;
      throw new CurlewError(
        'PACKAGE_INVALID',
        `${name}: ${entry.path}: its packed bytes differ from the table of contents`,
        { hint: 'the object in the store is damaged: publish the add-on again in a new release' },
      );
    },
    abandon: () => {
      deliver?.(undefined);
    },
  };
}
