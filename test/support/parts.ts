/** An archive in parts, and joined again. */
import { readFile } from 'node:fs/promises';
import { memorySource } from '../../src/formats/archive/read.ts';
import { joinParts, type JoinOptions } from '../../src/ship/bundle/parts/join-parts.ts';
import {
  writeParts,
  type SplitOptions,
  type Whole,
  type WrittenParts,
} from '../../src/ship/bundle/parts/split-write.ts';
import { noReport } from './context.ts';
import { archiveOf, noise } from './packages.ts';
import type { Tree } from './tree.ts';

export const LIMIT = 100_000;

/** Some 330,000 bytes that no other seed gives. */
export function wholeOf(seed: number): Whole & { readonly bytes: Buffer } {
  const files = [1, 2, 3].map((n) => ({ path: `blob-${n}.gz`, data: noise(110_000 + n, seed * 10 + n) }));
  const { bytes, plan } = archiveOf(files);
  return { name: 'b.tar.gz', bytes, source: memorySource('b.tar.gz', bytes), index: plan.index };
}

export const WHOLE = wholeOf(1);
export const NAMES = [1, 2, 3, 4].map((number) => `b.tar.gz.part-00${number}`);
export const BESIDE = ['b.tar.gz.parts.json', 'b.tar.gz.parts.sha256'];

/** Splits {@link WHOLE}, or another, into the box. */
export async function split(
  box: Tree,
  signal: AbortSignal,
  { whole = WHOLE, ...more }: Partial<SplitOptions> & { readonly whole?: Whole } = {},
): Promise<WrittenParts> {
  const options = { folders: [box.path], limit: LIMIT, force: false, verify: false, report: noReport, signal };
  return writeParts(whole, { ...options, ...more });
}

export function joining(box: Tree, signal: AbortSignal, more: Partial<JoinOptions> = {}): JoinOptions {
  return { folders: [box.path], force: false, report: noReport, signal, ...more };
}

/** Joins what lies in the box, and hands back the bytes. */
export async function join(box: Tree, signal: AbortSignal, more: Partial<JoinOptions> = {}): Promise<Buffer> {
  await joinParts(box.at('b.tar.gz.parts.json'), box.at('joined'), joining(box, signal, more));
  return readFile(box.at('joined'));
}
