/**
 * Puts a blob of Node's "single executable applications" into a Node executable for Linux (ELF, 64 bit, little endian)
 * without touching its code: the blob becomes a note in a new segment after the last one. Pure.
 *
 * The table of program headers needs space for one more. It grows in place, over the bytes after it: the name of the
 * program interpreter, which moves, and the build's own notes, which nothing reads at run time. So every address that
 * the kernel and the dynamic linker read stays as they expect, and nothing else in the file moves.
 */

/** The name under which Node looks for its blob, and the switch that enables that. Both are from Node's documentation. */
const NOTE_NAME = 'NODE_SEA_BLOB';
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:';

/** Everything that depends on the blob is in the first bytes or after the last ones. */
const HEAD_SIZE = 4096;
/** Size of the largest pages that a Linux kernel for these processors has. */
const PAGE = 0x10000;

const HEADER_SIZE = 64;
const PROGRAM_HEADER_SIZE = 56;
const SECTION_HEADER_SIZE = 64;
const TYPE = { null: 0, load: 1, interpreter: 3, note: 4, table: 6 } as const;
const SECTION_NOTE = 7;
const READ_ONLY = 4;

export interface InjectedParts {
  /** The first `HEAD_SIZE` bytes. */
  readonly head: Buffer;
  /** The rest of Node, up to a border of pages: the same for every blob. */
  readonly body: Buffer;
  /** The blob as a note. */
  readonly tail: Buffer;
}

interface ProgramHeader {
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
  readonly memory: number;
  readonly align: number;
}

/** The executable that results, in three parts. Throws a plain error when this is no executable that it knows. */
export function injectBlob(node: Buffer, blob: Uint8Array): InjectedParts {
  const headers = readHeaders(node);
  const tail = noteOf(blob);
  const body = bodyOf(node, headers);
  const address = roundUp(Math.max(...headers.map((header) => header.address + header.memory)), PAGE);
  const place = { offset: HEAD_SIZE + body.byteLength, address, size: tail.byteLength, memory: tail.byteLength };
  return { head: headOf(node, headers, place), body, tail };
}

function readHeaders(node: Buffer): readonly ProgramHeader[] {
  const known = node.subarray(0, 7).equals(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]));
  if (!known || node.readBigUInt64LE(32) !== BigInt(HEADER_SIZE))
    throw new Error('not an ELF executable as Node has it');
  return Array.from({ length: node.readUInt16LE(56) }, (_, index) => {
    const at = HEADER_SIZE + index * PROGRAM_HEADER_SIZE;
    const long = (offset: number): number => Number(node.readBigUInt64LE(at + offset));
    return {
      type: node.readUInt32LE(at),
      flags: node.readUInt32LE(at + 4),
      offset: long(8),
      address: long(16),
      size: long(32),
      memory: long(40),
      align: long(48),
    };
  });
}

function only(headers: readonly ProgramHeader[], type: number): ProgramHeader {
  const [found, ...more] = headers.filter((header) => header.type === type);
  if (found === undefined || more.length > 0)
    throw new Error(`the executable has not one program header of type ${type}`);
  return found;
}

/** The head with one program header more, the interpreter's name behind them, and the note's address in its header. */
function headOf(
  node: Buffer,
  headers: readonly ProgramHeader[],
  place: Pick<ProgramHeader, 'offset' | 'address' | 'size' | 'memory'>,
): Buffer {
  const interpreter = only(headers, TYPE.interpreter);
  const notes = only(headers, TYPE.note);
  const end = HEADER_SIZE + headers.length * PROGRAM_HEADER_SIZE;
  const moved = end + PROGRAM_HEADER_SIZE;
  const room =
    interpreter.offset === end && notes.offset >= end && moved + interpreter.size <= notes.offset + notes.size;
  if (!room) throw new Error('the executable has no room for another program header');
  const last = headers.findLastIndex(({ type }) => type === TYPE.load);
  const table = headers.flatMap((header, index): readonly ProgramHeader[] => {
    if (index === last) return [header, { type: TYPE.load, flags: READ_ONLY, align: PAGE, ...place }];
    if (header === notes) return [{ type: TYPE.note, flags: READ_ONLY, align: 4, ...place }];
    if (header === interpreter) {
      return [{ ...header, offset: moved, address: header.address + PROGRAM_HEADER_SIZE }];
    }
    if (header.type !== TYPE.table) return [header];
    return [{ ...header, size: header.size + PROGRAM_HEADER_SIZE, memory: header.memory + PROGRAM_HEADER_SIZE }];
  });
  const head = Buffer.from(node.subarray(0, HEAD_SIZE));
  head.fill(0, end, notes.offset + notes.size);
  head.writeUInt16LE(table.length, 56);
  for (const [index, header] of table.entries()) writeHeader(head, HEADER_SIZE + index * PROGRAM_HEADER_SIZE, header);
  head.set(node.subarray(interpreter.offset, interpreter.offset + interpreter.size), moved);
  return head;
}

function writeHeader(
  head: Buffer,
  at: number,
  { type, flags, offset, address, size, memory, align }: ProgramHeader,
): void {
  head.writeUInt32LE(type, at);
  head.writeUInt32LE(flags, at + 4);
  for (const [index, value] of [offset, address, address, size, memory, align].entries()) {
    head.writeBigUInt64LE(BigInt(value), at + 8 + index * 8);
  }
}

/** Node after its head, with the switch turned on and the section headers updated. */
function bodyOf(node: Buffer, headers: readonly ProgramHeader[]): Buffer {
  const body = Buffer.alloc(roundUp(node.byteLength, PAGE) - HEAD_SIZE);
  node.copy(body, 0, HEAD_SIZE);
  const fuse = body.indexOf(`${FUSE}0`);
  if (fuse === -1 || body.includes(FUSE, fuse + 1)) throw new Error('the executable does not take a blob, or has one');
  body.write('1', fuse + FUSE.length);
  const interpreter = only(headers, TYPE.interpreter);
  const notes = only(headers, TYPE.note);
  const table = Number(node.readBigUInt64LE(40));
  for (let index = 0; index < node.readUInt16LE(60); index += 1) {
    const at = table + index * SECTION_HEADER_SIZE - HEAD_SIZE;
    const offset = Number(body.readBigUInt64LE(at + 24));
    const type = body.readUInt32LE(at + 4);
    if (type === SECTION_NOTE && offset >= notes.offset && offset < notes.offset + notes.size) {
      body.writeUInt32LE(TYPE.null, at + 4);
    } else if (type !== TYPE.null && offset === interpreter.offset) {
      body.writeBigUInt64LE(BigInt(interpreter.address + PROGRAM_HEADER_SIZE), at + 16);
      body.writeBigUInt64LE(BigInt(offset + PROGRAM_HEADER_SIZE), at + 24);
    }
  }
  return body;
}

/** An ELF note: sizes of name and content, a type, and both, padded to 8 bytes so that every reader finds the content. */
function noteOf(blob: Uint8Array): Buffer {
  const name = roundUp(NOTE_NAME.length + 1, 8);
  const header = 12 + name;
  const note = Buffer.alloc(roundUp(header + blob.byteLength, 8));
  note.writeUInt32LE(name, 0);
  note.writeUInt32LE(blob.byteLength, 4);
  note.write(NOTE_NAME, 12);
  note.set(blob, header);
  return note;
}

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}
