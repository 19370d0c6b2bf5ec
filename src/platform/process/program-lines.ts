/** Output of programs as lines: bounded, without colors, from any transport. */
import { shortened } from '../../core/shortened.ts';

type Bytes = AsyncIterable<Uint8Array>;

const FRAME_HEAD = 8;
/** Longer lines are truncated, to bound memory. */
const LINE_LIMIT = 8192;

interface Piece {
  /** 1 is standard output, 2 standard error. */
  readonly source: number;
  readonly data: Uint8Array;
}

/**
 * The payloads of an engine's multiplexed stream: frames of 8 bytes (stream, three zeros, length in big endian) followed by
 * that many bytes, https://docs.docker.com/reference/api/engine (attach).
 */
async function* demultiplexed(stream: Bytes): AsyncGenerator<Piece, void, undefined> {
  const head = Buffer.alloc(FRAME_HEAD);
  let filled = 0;
  let remaining = 0;
  for await (const chunk of stream) {
    for (let at = 0; at < chunk.byteLength;) {
      const needed = remaining > 0 ? remaining : FRAME_HEAD - filled;
      const data = chunk.subarray(at, at + needed);
      at += data.byteLength;
      if (remaining > 0) {
        remaining -= data.byteLength;
        yield { source: head.readUInt8(0), data };
        continue;
      }
      head.set(data, filled);
      filled += data.byteLength;
      if (filled < FRAME_HEAD) continue;
      remaining = head.readUInt32BE(4);
      filled = 0;
    }
  }
}

/** Assembles lines from chunks of a text; truncates those over the limit. */
export function createLineSplitter(limit = LINE_LIMIT): {
  readonly add: (data: Uint8Array) => readonly string[];
  readonly rest: () => readonly string[];
} {
  const decoder = new TextDecoder();
  let pending = '';
  return {
    add: (data: Uint8Array): readonly string[] => {
      const [first = '', ...rest] = decoder.decode(data, { stream: true }).split('\n');
      const lines: string[] = [];
      pending = (pending + first).slice(0, limit);
      for (const piece of rest) {
        lines.push(pending);
        pending = piece.slice(0, limit);
      }
      return lines;
    },
    rest: (): readonly string[] => (pending === '' ? [] : [pending]),
  };
}

/** Lines of both outputs of a container, from an engine's multiplexed stream; a line never mixes both. */
export async function* containerLines(stream: Bytes): AsyncGenerator<string, void, undefined> {
  const outputs = [createLineSplitter(), createLineSplitter()] as const;
  for await (const { source, data } of demultiplexed(stream)) yield* outputs[source === 2 ? 1 : 0].add(data);
  for (const output of outputs) yield* output.rest();
}

/** Lines of a text in chunks; text after the last newline is a line. Lines over `limit` are truncated. */
export async function* linesOf(
  stream: Bytes,
  { limit }: { readonly limit?: number } = {},
): AsyncGenerator<string, void, undefined> {
  const lines = createLineSplitter(limit);
  for await (const chunk of stream) yield* lines.add(chunk);
  yield* lines.rest();
}

/** A line as a terminal shows it: without colors, only the text after the last carriage return. */
export function plainLine(line: string): string {
  const text = line.replaceAll(/\u001b\[[0-9;?]*[A-Za-z]/g, '').replace(/(?<!\r)\r+$/, '');
  return text.slice(text.lastIndexOf('\r') + 1);
}

export interface LastLines {
  readonly add: (line: string) => void;
  readonly clear: () => void;
  readonly lines: () => readonly string[];
}

const KEPT = 20;
const MAX_LENGTH = 500;

/** Keeps the last lines that are not blank, for error messages. */
export function keepLastLines(): LastLines {
  const lines: string[] = [];
  return {
    add: (line) => {
      if (line.trim() === '') return;
      lines.push(shortened(line.trimEnd(), MAX_LENGTH));
      if (lines.length > KEPT) lines.shift();
    },
    clear: () => {
      lines.length = 0;
    },
    lines: () => [...lines],
  };
}

/** Formats last lines for the end of a message; empty without lines. */
export function quoteLines(lines: readonly string[]): string {
  return lines.map((line) => `\n  | ${line}`).join('');
}
