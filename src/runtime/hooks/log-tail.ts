/** A hook's log, as a person can read it. */
import { constants } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';

const TAIL_BYTES = 64 << 10;
const LINE_WIDTH = 400;
const ESCAPE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** At most `count` lines; however large the log is, only its end is read. A log that is not there has none. */
export async function lastLines(path: string, count: number): Promise<readonly string[]> {
  const lines = await endOf(path, (line) => cut(plainLine(line)));
  return lines.filter((line) => line !== '').slice(-count);
}

/** The text of a log, or its end when it is longer than 64 KiB: lines in full, without blank ones around them. */
export async function endOfLog(path: string): Promise<string> {
  const lines = await endOf(path, plainLine);
  return lines.join('\n').replace(/^\n+/, '').trimEnd();
}

export interface FileEnd {
  /** Of the whole file. */
  readonly bytes: number;
  readonly lines: readonly string[];
  /** There is more before the first line. */
  readonly cut: boolean;
}

/** The last `count` lines of a log, of its last 64 KiB at most; a log that cannot be read is an error of the system. */
export async function endOfFile(path: string, count: number): Promise<FileEnd> {
  const { size } = await stat(path);
  const found = await endOf(path, plainLine);
  const lines = found.at(-1) === '' ? found.slice(0, -1) : found;
  return { bytes: size, lines: count === 0 ? [] : lines.slice(-count), cut: size > TAIL_BYTES || lines.length > count };
}

/** What was written from this offset on, of that the last 64 KiB at most, and where the file ends now. */
export async function linesFrom(
  path: string,
  from: number,
): Promise<{ readonly lines: readonly string[]; readonly end: number }> {
  await using file = await openLog(path);
  if (file === undefined) return { lines: [], end: 0 };
  const { size } = await file.stat();
  // A log that is shorter than it was has been cut in its middle: its end is what is new.
  const start = Math.max(from > size ? 0 : from, size - TAIL_BYTES);
  const buffer = Buffer.alloc(size - start);
  const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, start);
  const lines = buffer.toString('utf8', 0, bytesRead).split('\n').map(plainLine);
  const first = lines.findIndex((line) => line !== '');
  return { lines: first === -1 ? [] : lines.slice(first), end: start + bytesRead };
}

/** Undefined for what a hook has put in the place of its log: a pipe would be waited for, and a device has no end. */
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
  // The first line of a long log begins somewhere in its middle.
  return start > 0 && lines.length > 1 ? lines.slice(1) : lines;
}

/** What is left on the screen of a line: without escape sequences, after the last carriage return. */
export function plainLine(line: string): string {
  const plain = line.replaceAll(ESCAPE, '').replace(/(?<!\r)\r+$/, '');
  const shown = plain.slice(plain.lastIndexOf('\r') + 1).replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '');
  return shown.trimEnd();
}

function cut(line: string): string {
  return line.length > LINE_WIDTH ? `${line.slice(0, LINE_WIDTH)}…` : line;
}
