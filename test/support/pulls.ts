/** Pulls as the command does, in this process, from servers on loopback. */
import { readFile } from 'node:fs/promises';
import type { ProgressEvent } from '../../src/core/events.ts';
import type { HttpOptions } from '../../src/platform/http/http.ts';
import type { Pulled } from '../../src/ship/transfer/from-place.ts';
import { pull, type PullOptions } from '../../src/ship/transfer/pull.ts';
import { webObject } from '../../src/ship/store/web.ts';
import { quickHttp } from './client.ts';
import { noise, packageOf, type TestFile } from './packages.ts';
import type { Asked, WebServer } from './web-server.ts';

/** A package with four large payloads that cannot be deflated, and some small ones that can. */
export function largePackage(version = '1.0.0', changes: Readonly<Record<string, Uint8Array>> = {}) {
  const blobs = [1, 2, 3, 4].map((seed): TestFile => ({
    path: `images/blob${seed}`,
    data: changes[`blob${seed}`] ?? noise(2_500_000 + seed, seed),
  }));
  const own = { path: 'install.sh', data: `#!/bin/bash\n${'echo hello\n'.repeat(20_000)}` };
  return packageOf('web', version, [own, { path: 'empty', data: '' }, ...blobs]);
}

export interface PullResult extends Pulled {
  readonly notes: readonly string[];
}

export type TestPull = Partial<PullOptions> & { readonly http?: Partial<HttpOptions>; readonly signal: AbortSignal };

/** Pulls the object of these addresses to `file`. */
export async function pullTo(
  file: string,
  addresses: readonly string[],
  { http: given = {}, ...options }: TestPull,
): Promise<PullResult> {
  await using http = await quickHttp(given);
  const notes: string[] = [];
  const report = (event: ProgressEvent): void => {
    if (event.type === 'note') notes.push(event.text);
    options.report?.(event);
  };
  const places = addresses.map((address) => webObject(address, http));
  const usual = { sha256: undefined, check: undefined, force: false, connections: 3, pace: undefined };
  const pulled = await pull(places, file, { ...usual, ...options, report });
  return { ...pulled, notes };
}

/** Bytes that the last complete line of a partial file's note lists; 0 without a note. */
export async function notedBytes(note: string): Promise<number> {
  const text = await readFile(note, 'utf8').catch(() => '');
  const [last = '{"have":[]}'] = text.split('\n').slice(0, -1).slice(-1);
  const { have } = JSON.parse(last) as { readonly have: readonly (readonly [number, number])[] };
  return have.reduce((sum, [offset, end]) => sum + end - offset, 0);
}

/** The ranges that were asked for, in order, as `[first, last]`; without those that were refused. */
export function askedRanges({ log }: WebServer): readonly (readonly [number, number])[] {
  return log.flatMap(({ method, headers }: Asked) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(String(headers['range'] ?? '')) ?? [];
    return method === 'GET' && first !== undefined ? [[Number(first), Number(last)] as const] : [];
  });
}
