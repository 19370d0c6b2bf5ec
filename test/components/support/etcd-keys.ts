/** All keys of an etcd, by its gateway for JSON, and how they become what they were. */
import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';

/** By key; keys and values are base64. */
export type EtcdKeys = ReadonlyMap<string, string>;

interface Pair {
  readonly key: string;
  readonly value?: string;
}

/** A transaction has at most 128. */
const STEPS = 100;
/** The key of one zero byte: with `range_end` equal to it, everything. */
const ALL = { key: 'AA==', range_end: 'AA==' };

async function post(url: string, path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
  const sent = JSON.stringify(body);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent) };
  const asked = request(new URL(path, url), { method: 'POST', headers });
  asked.end(sent);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const answer = (await json(response)) as Readonly<Record<string, unknown>>;
  if (response.statusCode !== 200) throw new Error(`etcd: ${path}: ${JSON.stringify(answer)}`);
  return answer;
}

/** Reads the keys that `counts` accepts by their names. */
export async function readKeys(url: string, counts: (key: string) => boolean): Promise<EtcdKeys> {
  const { kvs = [] } = (await post(url, '/v3/kv/range', ALL)) as { readonly kvs?: readonly Pair[] };
  return new Map(
    kvs
      .filter(({ key }) => counts(Buffer.from(key, 'base64').toString()))
      .map(({ key, value = '' }) => [key, value] as const),
  );
}

/** Makes one step towards the keys and values of `before`: removes, adds and changes what differs; returns how many did. */
export async function restoreKeys(url: string, before: EtcdKeys, counts: (key: string) => boolean): Promise<number> {
  const now = await readKeys(url, counts);
  const steps = [
    ...[...now.keys()].filter((key) => !before.has(key)).map((key) => ({ request_delete_range: { key } })),
    ...[...before]
      .filter(([key, value]) => now.get(key) !== value)
      .map(([key, value]) => ({ request_put: { key, value } })),
  ];
  for (let from = 0; from < steps.length; from += STEPS)
    await post(url, '/v3/kv/txn', { success: steps.slice(from, from + STEPS) });
  return steps.length;
}
