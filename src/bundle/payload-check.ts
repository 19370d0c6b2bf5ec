/** Hashes payloads of an archive while its bytes pass by from the first to the last. */
import type { ArchiveIndex, PlacedEntry } from '../archive/entry.ts';
import { readPayload } from '../archive/read.ts';

export interface PayloadCheck {
  /**
   * The next bytes of the archive. When it resolves the chunk is not needed any more. A damaged payload is
   * `DIGEST_MISMATCH`.
   */
  readonly push: (chunk: Uint8Array) => Promise<void>;
  /** After the last byte; everything has been checked when it resolves. */
  readonly finish: () => Promise<void>;
  /** Gives up without a verdict. */
  readonly abandon: () => void;
}

/** `name` is the archive's, for messages. */
export function createPayloadCheck(
  index: ArchiveIndex,
  name: string,
  { signal }: { readonly signal: AbortSignal },
): PayloadCheck {
  const payloads = index.entries.filter(({ packed }) => packed > 0);
  let next = 0;
  let at = 0;
  let running: Reader | undefined;
  return {
    push: async (chunk) => {
      const end = at + chunk.byteLength;
      for (let entry = payloads[next]; entry !== undefined && entry.offset < end; entry = payloads[next]) {
        running ??= startReader(entry, name, signal);
        const until = entry.offset + entry.packed;
        const part = chunk.subarray(Math.max(0, entry.offset - at), Math.min(end, until) - at);
        // The reader of a deflated member keeps its chunks.
        await running.push(entry.stored ? part : Uint8Array.from(part));
        if (until > end) break;
        await running.finish();
        running = undefined;
        next += 1;
      }
      at = end;
    },
    finish: async () => {
      await running?.finish();
      if (next !== payloads.length) throw new Error(`${name}: ended before its last payload`);
    },
    abandon: () => running?.abandon(),
  };
}

interface Reader {
  readonly push: (chunk: Uint8Array) => Promise<void>;
  readonly finish: () => Promise<void>;
  readonly abandon: () => void;
}

/** Turns a reader that pulls into one that is pushed: each chunk is handed over and taken before the next. */
function startReader(entry: PlacedEntry, name: string, signal: AbortSignal): Reader {
  let deliver: ((chunk: Uint8Array | undefined) => void) | undefined;
  let wanted: (() => void) | undefined;
  let asked = new Promise<void>((resolve) => (wanted = resolve));
  const source = {
    name,
    size: Number.MAX_SAFE_INTEGER,
    async *read() {
      for (;;) {
        const chunk = await new Promise<Uint8Array | undefined>((resolve) => {
          deliver = resolve;
          wanted?.();
        });
        if (chunk === undefined) return;
        yield chunk;
      }
    },
  };
  const reading = (async () => {
    for await (const chunk of readPayload(source, entry, { signal })) void chunk;
  })();
  // Its failure is told by the next push or finish.
  const over = reading.then(
    () => undefined,
    () => undefined,
  );
  const hand = async (chunk: Uint8Array | undefined): Promise<void> => {
    await Promise.race([asked, over]);
    asked = new Promise<void>((resolve) => (wanted = resolve));
    deliver?.(chunk);
    deliver = undefined;
  };
  return {
    push: async (chunk) => {
      await hand(chunk);
      await Promise.race([asked, reading]);
    },
    finish: async () => {
      await hand(undefined);
      await reading;
    },
    abandon: () => {
      deliver?.(undefined);
    },
  };
}
