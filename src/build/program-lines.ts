/** What a program prints, as lines: bounded, without colours, whoever carries them. */

type Bytes = AsyncIterable<Uint8Array>;

const FRAME_HEAD = 8;
/** Longer lines are cut: nobody reads them, and memory is bounded. */
const LINE_LIMIT = 8192;

/**
 * The payloads of an engine's multiplexed stream: frames of 8 bytes (stream, three zeros, length in big endian) and as
 * many bytes, https://docs.docker.com/reference/api/engine (attach). Which of the two streams it was is not told.
 */
export async function* demultiplexed(stream: Bytes): AsyncGenerator<Uint8Array, void, undefined> {
  const head = Buffer.alloc(FRAME_HEAD);
  let filled = 0;
  let left = 0;
  for await (const chunk of stream) {
    for (let at = 0; at < chunk.byteLength;) {
      const wanted = left > 0 ? left : FRAME_HEAD - filled;
      const part = chunk.subarray(at, at + wanted);
      at += part.byteLength;
      if (left > 0) {
        left -= part.byteLength;
        yield part;
        continue;
      }
      head.set(part, filled);
      filled += part.byteLength;
      if (filled < FRAME_HEAD) continue;
      left = head.readUInt32BE(4);
      filled = 0;
    }
  }
}

/** Lines of a text that comes in pieces; what follows the last newline counts as one. Lines over `limit` are cut. */
export async function* linesOf(
  stream: Bytes,
  { limit = LINE_LIMIT }: { readonly limit?: number } = {},
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const chunk of stream) {
    const [first = '', ...rest] = decoder.decode(chunk, { stream: true }).split('\n');
    pending = (pending + first).slice(0, limit);
    for (const piece of rest) {
      yield pending;
      pending = piece.slice(0, limit);
    }
  }
  if (pending !== '') yield pending;
}

/** A line as a terminal would leave it: without colours, only what follows the last return. */
export function plainLine(line: string): string {
  const text = line.replaceAll(/\u001b\[[0-9;?]*[A-Za-z]/g, '').replace(/\r+$/, '');
  return text.slice(text.lastIndexOf('\r') + 1);
}

export interface LastLines {
  readonly add: (line: string) => void;
  readonly clear: () => void;
  readonly lines: () => readonly string[];
}

const KEPT = 20;

/** Keeps the last lines that say something, for the message of a failure. */
export function keepLastLines(): LastLines {
  const kept: string[] = [];
  return {
    add: (line) => {
      if (line.trim() === '') return;
      kept.push(line.trimEnd().slice(0, 500));
      if (kept.length > KEPT) kept.shift();
    },
    clear: () => {
      kept.length = 0;
    },
    lines: () => [...kept],
  };
}

/** Last lines as they stand below a message; nothing when there are none. */
export function quoteLines(lines: readonly string[]): string {
  return lines.map((line) => `\n  | ${line}`).join('');
}
