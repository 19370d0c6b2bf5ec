/** The messages between the pool and its threads, and the size of the memory that they exchange. */
import type { Digest } from '../../core/digest.ts';
import { FRAMED_BLOCK } from './member.ts';

/** Blocks per write call. */
export const GROUP_BLOCKS = 16;
export const GROUP_SIZE: number = GROUP_BLOCKS * FRAMED_BLOCK;

export interface FramePoolMemory {
  readonly memory: SharedArrayBuffer;
}

export type WorkerRequest =
  | { readonly type: 'open'; readonly id: number; readonly fd: number; readonly offset: number; readonly size: number }
  | {
      readonly type: 'take-over';
      readonly id: number;
      readonly from: { readonly fd: number; readonly offset: number };
      readonly copy: boolean;
    }
  | { readonly type: 'group'; readonly id: number; readonly slot: number; readonly length: number }
  | { readonly type: 'finish'; readonly id: number }
  | { readonly type: 'drop'; readonly id: number }
  | { readonly type: 'deflate'; readonly id: number; readonly input: string; readonly output: string };

/** The result of deflating a file into one member. */
export interface Deflated {
  readonly packed: number;
  readonly packedDigest: Digest;
  /** Digest of the bytes that were read from the file. */
  readonly digest: Digest;
}

export type FrameValue = number | string | Deflated;

export type WorkerResponse =
  | { readonly type: 'free'; readonly slot: number }
  | { readonly type: 'done'; readonly id: number; readonly value: FrameValue }
  | {
      readonly type: 'failed';
      readonly id: number;
      readonly slot: number | undefined;
      readonly message: string;
      readonly code: string | undefined;
    };
