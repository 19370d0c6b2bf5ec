/** The etcd of a control plane that kubeadm has made, by its JSON interface: its members, their health and removal, and its data. */
import { join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import * as v from 'valibot';
import { CurlewError } from '../../core/errors.ts';
import { jsonIn } from '../../core/json.ts';
import { parsed } from '../../core/schema.ts';
import { readFound } from '../../platform/files/state-file.ts';
import { openConnections } from '../../platform/http/connections.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { exchange, streamLines } from './exchange.ts';
import { unreadable } from './objects.ts';
import type { Session } from './session.ts';

export interface Member {
  readonly id: string;
  /** Name of its Node where kubeadm has made it; empty while it starts for the first time. */
  readonly name: string;
  /** Hosts of the URLs by which other members reach it. */
  readonly addresses: readonly string[];
  readonly learner: boolean;
  /** It answers with a quorum, and raises no alarm. */
  readonly healthy: boolean;
  /** It answers, which it does also without a quorum. */
  readonly answers: boolean;
}

export interface Etcd extends Disposable {
  /** Members as the one on this machine lists them, also without a quorum. `CLUSTER_FAILED` if it does not answer. */
  readonly members: () => Promise<readonly Member[]>;
  /** Whether the member on this machine is part of a quorum: it answers a linearizable read. */
  readonly agrees: () => Promise<boolean>;
  /** `CLUSTER_FAILED` if etcd refuses it, as where the others would have no quorum. */
  readonly remove: (id: string) => Promise<void>;
  /** The space of the data of the member on this machine, in bytes. `CLUSTER_FAILED` if it does not say so. */
  readonly size: () => Promise<number>;
  /** Passes on all data of the member on this machine, as `etcdctl snapshot save` writes it. `CLUSTER_FAILED` if the stream ends early. */
  readonly save: (write: (bytes: Buffer) => void) => Promise<void>;
}

interface EtcdOptions {
  readonly signal: AbortSignal;
  /** Folder with the certificates; default: that of kubeadm. */
  readonly folder?: string;
  /** Address of the member on this machine. */
  readonly server?: string;
}

const REQUEST_MS = 10_000;
/** A member that needs longer counts as one that does not answer. */
const HEALTH_MS = 4000;
/** A snapshot has up to 8 GiB. */
const SAVE_MS = 30 * 60_000;
const PEM_LIMIT = 1 << 20;
const AT_ONCE = 4;

/** api/etcdserverpb/rpc.proto of etcd, as grpc-gateway writes it: 64-bit numbers are texts, and empty fields are left out. */
const membersSchema = v.object({
  members: v.optional(
    v.array(
      v.object({
        ID: v.pipe(v.string(), v.regex(/^\d{1,20}$/)),
        name: v.optional(v.string(), ''),
        isLearner: v.optional(v.boolean(), false),
        clientURLs: v.optional(v.array(v.pipe(v.string(), v.url())), []),
        peerURLs: v.optional(v.array(v.pipe(v.string(), v.url())), []),
      }),
    ),
    [],
  ),
});
const blobSchema = v.object({
  result: v.object({ remaining_bytes: v.optional(v.string(), '0'), blob: v.optional(v.string(), '') }),
});
const statusSchema = v.object({ dbSize: v.pipe(v.string(), v.regex(/^\d{1,15}$/)) });
const healthSchema = v.object({ health: v.literal('true') });

/** Undefined if kubeadm has made no member of etcd on this machine, and `CLUSTER_FAILED` if a certificate for it is damaged. */
export async function openEtcd({
  signal,
  folder = '/etc/kubernetes/pki/etcd',
  server = 'https://127.0.0.1:2379',
}: EtcdOptions): Promise<Etcd | undefined> {
  const names = ['ca.crt', 'healthcheck-client.crt', 'healthcheck-client.key'];
  const [ca, cert, key] = await Promise.all(names.map(async (name) => readFound(join(folder, name), PEM_LIMIT)));
  if (ca === undefined || cert === undefined || key === undefined) return undefined;
  const secureContext = contextOf(folder, { ca, cert, key });
  const connections = openConnections({ proxyOf: () => undefined, connectMs: REQUEST_MS, secureContext });
  const sessionOf = (to: string): Session => ({
    server: new URL(to),
    connections,
    namespace: '',
    headers: {},
    secrets: [],
    certificateEndsAt: undefined,
    way: 'KUBECONFIG',
  });
  const requestOf = (method: 'GET' | 'POST', path: string, body?: object) => ({
    method,
    path,
    accept: 'application/json',
    contentType: 'application/json',
    body: body && JSON.stringify(body),
  });
  const ask = async (to: string, method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> => {
    const both = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]);
    const { status, body: answer } = await exchange(sessionOf(to), requestOf(method, path, body), { signal: both });
    const text = answer.toString('utf8');
    if (status === 200) return jsonIn(text);
    throw new Error(`it returned ${status} (${text.slice(0, 200).trim()})`);
  };
  const attempt = async <Found>(doing: string, perform: () => Promise<Found>): Promise<Found> => {
    try {
      return await perform();
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof CurlewError) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new CurlewError('CLUSTER_FAILED', `cannot ${doing}: etcd on this machine: ${why}`, {
        hint: 'crictl ps --all --name etcd shows its container; then run the same command again',
        cause: error,
      });
    }
  };
  const asked = async (doing: string, path: string, body: object): Promise<unknown> =>
    attempt(doing, async () => ask(server, 'POST', path, body));
  const healthOf = async (url: string | undefined): Promise<Pick<Member, 'healthy' | 'answers'>> => {
    if (url === undefined) return { healthy: false, answers: false };
    try {
      const both = AbortSignal.any([signal, AbortSignal.timeout(HEALTH_MS)]);
      const { status, body } = await exchange(sessionOf(url), requestOf('GET', '/health'), { signal: both });
      return { healthy: status === 200 && v.is(healthSchema, jsonIn(body.toString('utf8'))), answers: true };
    } catch {
      signal.throwIfAborted();
      return { healthy: false, answers: false };
    }
  };
  return {
    members: async () => {
      const doing = 'list the members of etcd';
      const answer = await asked(doing, '/v3/cluster/member/list', {});
      const { members } = parsed(membersSchema, answer, unreadable(doing));
      const one = async (member: (typeof members)[number]): Promise<Member> => {
        const { ID: id, name, isLearner: learner, clientURLs, peerURLs } = member;
        const addresses = peerURLs.map((url) => new URL(url).hostname.replace(/^\[(.*)\]$/, '$1'));
        return { id, name, addresses, learner, ...(await healthOf(clientURLs[0])) };
      };
      return mapLimited(members, one, { width: AT_ONCE, signal });
    },
    agrees: async () => {
      try {
        // Any key: the answer may be that it does not exist.
        await ask(server, 'POST', '/v3/kv/range', { key: Buffer.from('health').toString('base64'), keys_only: true });
        return true;
      } catch {
        signal.throwIfAborted();
        return false;
      }
    },
    remove: async (id) => void (await asked('remove a member of etcd', '/v3/cluster/member/remove', { ID: id })),
    size: async () => {
      const doing = 'read the size of etcd';
      const answer = await asked(doing, '/v3/maintenance/status', {});
      return Number(parsed(statusSchema, answer, unreadable(doing)).dbSize);
    },
    save: async (write) => {
      // An error of the disk is not one of etcd.
      let unwritten: unknown;
      await attempt('save etcd', async () => {
        let remaining = '';
        const onLine = (line: string): void => {
          const { result } = v.parse(blobSchema, jsonIn(line));
          remaining = result.remaining_bytes;
          try {
            write(Buffer.from(result.blob, 'base64'));
          } catch (error) {
            unwritten = error;
            throw error;
          }
        };
        const { status, body } = await streamLines(
          sessionOf(server),
          requestOf('POST', '/v3/maintenance/snapshot', {}),
          { signal: AbortSignal.any([signal, AbortSignal.timeout(SAVE_MS)]), onData: () => undefined, onLine },
        );
        if (status !== 200) throw new Error(`it returned ${status} (${body.toString('utf8').slice(0, 200).trim()})`);
        if (remaining !== '0') throw new Error('it ended early');
      }).catch((error: unknown) => {
        throw unwritten ?? error;
      });
    },
    [Symbol.dispose]: () => connections[Symbol.dispose](),
  };
}

function contextOf(folder: string, files: Readonly<Record<'ca' | 'cert' | 'key', Buffer>>): SecureContext {
  try {
    return createSecureContext(files);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CurlewError('CLUSTER_FAILED', `cannot use ca.crt and healthcheck-client in ${folder}: ${why}`, {
      hint: 'remove healthcheck-client.crt and .key, then kubeadm init phase certs etcd-healthcheck-client makes them again',
      cause: error,
    });
  }
}
