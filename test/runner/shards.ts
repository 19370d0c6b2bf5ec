/** Parts of a run for several machines at once, by what its files took before. */
import type { Times } from './schedule.ts';

export interface Shard {
  /** From 1. */
  readonly number: number;
  readonly of: number;
}

/** Reads `2/3`. */
export function readShard(text: string): Shard {
  const [, number, of] = /^([1-9]\d?)\/([1-9]\d?)$/.exec(text) ?? [];
  if (of === undefined || Number(number) > Number(of)) throw new Error(`--shard is like 1/2, not ${text}`);
  return { number: Number(number), of: Number(of) };
}

/**
 * The names of one shard: the longest first, each goes where least has gone. All shards together have each name once, where they
 * know the same times; a name without a time counts as one of average length.
 */
export function shardOf(names: readonly string[], times: Times, { number, of }: Shard): readonly string[] {
  const known = names.flatMap((name) => times[name] ?? []);
  const average = known.reduce((sum, seconds) => sum + seconds, 0) / known.length || 1;
  const weight = (name: string): number => times[name] ?? average;
  const shards = Array.from({ length: of }, () => ({ seconds: 0, names: [] as string[] }));
  for (const name of names.toSorted().toSorted((a, b) => weight(b) - weight(a))) {
    const least = shards.reduce((one, other) => (other.seconds < one.seconds ? other : one));
    least.seconds += weight(name);
    least.names.push(name);
  }
  return shards[number - 1]?.names ?? [];
}
