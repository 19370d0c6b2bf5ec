/** The readable text of a hook's log. */
import { constants } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import { shortened } from '../../core/shortened.ts';

const TAIL_BYTES = 64 << 10;
const LINE_WIDTH = 400;
const ESCAPE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** The last `count` lines. Reads only the end of the log. A log that does not exist has no lines. */
export async function lastLines(path: string, count: number): Promise<readonly string[]> {
  const lines = await endOf(path, (line) => shortened(plainLogLine(line), LINE_WIDTH));
  return lines.filter((line) => line !== '').slice(-count);
}

/** The text of a log, or its last 64 KiB in whole lines, without leading and trailing blank lines. */
export async function endOfLog(path: string): Promise<string> {
  const lines = await endOf(path, plainLogLine);
  return lines.join('\n').replace(/^\n+/, '').trimEnd();
}

export interface FileEnd {
  /** Size of the whole file. */
  readonly bytes: number;
  /** Without escape sequences and other control characters. */
  readonly lines: readonly string[];
  /** Lines before the first one are left out. */
  readonly cut: boolean;
}

/** The last `count` lines of at most 64 KiB. Throws the system's error if the log cannot be read. */
export async function endOfFile(path: string, count: number): Promise<FileEnd> {
  const { size } = await stat(path);
  const pieces = await endOf(path, plainLogLine);
  const lines = pieces.at(-1) === '' ? pieces.slice(0, -1) : pieces;
  return { bytes: size, lines: count === 0 ? [] : lines.slice(-count), cut: size > TAIL_BYTES || lines.length > count };
}

/** Lines after this offset, of at most the last 64 KiB, and the present end of the file. */
export async function linesFrom(
  path: string,
  from: number,
): Promise<{ readonly lines: readonly string[]; readonly end: number }> {
  await using file = await openLog(path);
  if (file === undefined) return { lines: [], end: 0 };
  const { size } = await file.stat();
  // A log that has become shorter was truncated in its middle: its end is new.
  const start = Math.max(from > size ? 0 : from, size - TAIL_BYTES);
  const buffer = Buffer.alloc(size - start);
  const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, start);
  const lines = buffer.toString('utf8', 0, bytesRead).split('\n').map(plainLogLine);
  const first = lines.findIndex((line) => line !== '');
  return { lines: first === -1 ? [] : lines.slice(first), end: start + bytesRead };
}

/** Undefined if a hook has replaced its log: reading a pipe would block, and a device has no end. */
async function openLog(path: string): Promise<FileHandle | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  if (file === undefined || (await file.stat()).isFile()) return file;
  await file.close();
  return undefined;
}

async function endOf(path: string, plain: (line: string) => string): Promise<readonly string[]> {
  await using file = await openLog(path);
  if (file === undefined) return [];
  const { size } = await file.stat();
  const start = Math.max(0, size - TAIL_BYTES);
  const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
  const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, start);
  const lines = buffer.toString('utf8', 0, bytesRead).split('\n').map(plain);
  // The first line is incomplete if only the end was read.
  return start > 0 && lines.length > 1 ? lines.slice(1) : lines;
}

/** The text of a line that a terminal would show: without escape sequences, after the last carriage return. */
export function plainLogLine(line: string): string {
  const plain = line.replaceAll(ESCAPE, '').replace(/(?<!\r)\r+$/, '');
  const shown = plain.slice(plain.lastIndexOf('\r') + 1).replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '');
  return shown.trimEnd();
}
