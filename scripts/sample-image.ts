/**
 * The image of the sample add-ons, made from nothing: one program that waits for TERM, as a static ELF file for
 * linux/amd64.
 */
import { madeFile, makeImage, type MadeImage } from './oci-image.ts';

const BASE = 0x40_00_00;
const HEADERS = 64 + 56;

/** x86-64 system calls: rt_sigprocmask blocks INT and TERM, rt_sigtimedwait waits for one of them, exit ends with 0. */
function code(setAddress: number): Buffer {
  const set = Buffer.alloc(4);
  set.writeUInt32LE(setAddress);
  return Buffer.concat([
    Buffer.from('6a0e58', 'hex'), // rax = 14, rt_sigprocmask
    Buffer.from('31ff', 'hex'), // rdi = 0, SIG_BLOCK
    Buffer.from([0xbe, ...set]), // rsi = the set of signals
    Buffer.from('31d2', 'hex'), // rdx = 0
    Buffer.from('6a08415a', 'hex'), // r10 = 8, bytes of a set
    Buffer.from('0f05', 'hex'),
    Buffer.from('b880000000', 'hex'), // rax = 128, rt_sigtimedwait
    Buffer.from([0xbf, ...set]), // rdi = the set
    Buffer.from('31f6', 'hex'), // rsi = 0
    Buffer.from('31d2', 'hex'), // rdx = 0, no limit
    Buffer.from('0f05', 'hex'),
    Buffer.from('85c0', 'hex'),
    Buffer.from('78ec', 'hex'), // interrupted: wait again
    Buffer.from('6a3c58', 'hex'), // rax = 60, exit
    Buffer.from('31ff', 'hex'), // rdi = 0
    Buffer.from('0f05', 'hex'),
  ]);
}

/** An ELF file of one segment, as elf(5) describes it. */
export function waitProgram(): Buffer {
  const length = code(0).byteLength;
  const signals = Buffer.alloc(8);
  signals.writeUInt32LE((1 << (2 - 1)) | (1 << (15 - 1)));
  const body = Buffer.concat([code(BASE + HEADERS + length), signals]);
  const header = Buffer.alloc(HEADERS);
  header.write('\u007fELF\u0002\u0001\u0001', 'latin1'); // 64 bits, little endian, version 1
  header.writeUInt16LE(2, 16); // executable
  header.writeUInt16LE(62, 18); // x86-64
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(BigInt(BASE + HEADERS), 24); // entry
  header.writeBigUInt64LE(64n, 32); // program headers
  header.writeUInt16LE(64, 52);
  header.writeUInt16LE(56, 54);
  header.writeUInt16LE(1, 56);
  header.writeUInt32LE(1, 64); // load
  header.writeUInt32LE(5, 68); // read and execute
  header.writeBigUInt64LE(BigInt(BASE), 80);
  header.writeBigUInt64LE(BigInt(BASE), 88);
  header.writeBigUInt64LE(BigInt(HEADERS + body.byteLength), 96);
  header.writeBigUInt64LE(BigInt(HEADERS + body.byteLength), 104);
  header.writeBigUInt64LE(4096n, 112);
  return Buffer.concat([header, body]);
}

export function sampleImage(): MadeImage {
  const config = { Entrypoint: ['/wait'], User: '65534:65534' };
  return makeImage('amd64', config, [[madeFile('wait', 0o755, waitProgram())]]);
}
