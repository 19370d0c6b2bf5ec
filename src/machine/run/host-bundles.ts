/** Support bundles of the machines of a cluster, collected on each by its own curlew over SSH. */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import * as v from 'valibot';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { jsonIn } from '../../core/json.ts';
import { pathProblem } from '../../core/layout.ts';
import { walkTar } from '../../formats/archive/walk-tar.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { Item, CollectedPiece } from '../../runtime/support/collect.ts';
import { INDEX_PATH, parseSupportIndex, VERSION_PATH, type Verdicts } from '../../runtime/support/support-index.ts';
import { SshError, type Ssh } from '../ssh/ssh.ts';
import type { WrittenCluster, WrittenHost } from './cluster-file.ts';
import { askHost, lookAt, REMOTE } from './look.ts';

const unpack = promisify(gunzip);
const AT_ONCE = 8;
/** More than a bundle takes on a host. */
const LIMIT_MS = 12 * 60_000;
/** The size of a bundle as it is sent, and unpacked. */
const [SENT_BYTES, UNPACKED_BYTES] = [128 << 20, 512 << 20];

/** Prints what follows: a bundle, or only some output where no curlew is that can make one. */
const COLLECT = `umask 077; file=$(mktemp) || exit 70; rm -f "$file"; file=$file.tar.gz; trap 'rm -f "$file"' EXIT
if cd "$1/bundle" 2>/dev/null; then ./tasks.sh support-bundle --quiet --out "$file" >&2 </dev/null; fi
if [ -s "$file" ]; then echo bundle; base64 <"$file"; exit 0; fi
echo basics
for command in 'uname -a' uptime 'df -h' 'free -m' 'systemctl --failed --no-pager' 'crictl ps -a' \\
  'journalctl --no-pager -n 3000 -u kubelet -u containerd' 'dmesg'; do echo "== $command"; $command 2>&1 | tail -n 3000; done
cd "$1" 2>/dev/null && for file in name status log; do echo "== $file"; tail -n 3000 "$file"; done; exit 0`;

export interface HostBundles {
  readonly items: readonly Item[];
  /** The verdicts of the hosts that have answered. */
  readonly verdicts: () => Promise<Verdicts>;
}

/** One item for each machine. A host that does not answer is one that fails. */
export async function hostBundles(cluster: WrittenCluster, ssh: Ssh, context: Context): Promise<HostBundles> {
  const { hosts, speaker } = await lookAt(cluster, { ssh, bundle: undefined }, context);
  const found: (readonly [host: string, verdicts: Verdicts])[] = [];
  // One control plane speaks for the cluster.
  const leader = speaker?.name ?? hosts.find(({ facts }) => facts?.isControlPlane)?.host.name;
  const items = hosts.map(({ host, problem }): Item => {
    const { name } = host;
    return {
      path: `hosts/${name}`,
      source: `curlew support-bundle on ${name}`,
      limit: LIMIT_MS,
      collect: async (at) => {
        if (problem !== undefined) throw away(host, problem);
        const run = { script: COLLECT, operands: [REMOTE], limitMs: LIMIT_MS, outputLimit: SENT_BYTES, ...at };
        const [, what = '', sent = ''] = /^(\w+)\n([^]*)$/.exec(await ssh.run(host.ssh, run)) ?? [];
        if (what !== 'bundle') {
          const why = 'no curlew is there that makes support bundles: curlew cluster apply brings one';
          return [
            { path: `hosts/${name}/basics.txt`, text: sent },
            { path: `hosts/${name}/bundle`, problem: why },
          ];
        }
        const { verdicts, pieces } = await readArchive(host, Buffer.from(sent, 'base64'), at);
        found.push([name, name === leader ? verdicts : { ...verdicts, notEvaluated: [] }]);
        return pieces.flatMap((piece) => placed(piece, name, name === leader));
      },
    };
  });
  return { items, verdicts: async () => Promise.resolve(merged(found)) };
}

function away(
  { ssh }: WrittenHost,
  { problem, reason, hint }: Pick<SshError, 'problem' | 'reason' | 'hint'>,
): SshError {
  return new SshError(ssh, problem, reason, hint ?? '');
}

/** One verdict, with their names, where several machines say the same. */
function merged(found: readonly (readonly [host: string, verdicts: Verdicts])[]): Verdicts {
  const hosts = new Map<string, { readonly result: Verdicts['results'][number]; readonly names: string[] }>();
  for (const [host, { results }] of found.toSorted(([a], [b]) => a.localeCompare(b))) {
    for (const result of results) {
      const key = JSON.stringify(result);
      const known = hosts.get(key);
      if (known === undefined) hosts.set(key, { result, names: [host] });
      else known.names.push(host);
    }
  }
  return {
    results: [...hosts.values()].map(({ result, names }) => ({ ...result, host: names.join(', ') })),
    notEvaluated: found.flatMap(([, { notEvaluated }]) => notEvaluated),
  };
}

const CLUSTER = /^cluster-(?:resources|info)\//;

/** The cluster is at the top, where other programs look for it, as one machine sees it. */
function placed(piece: CollectedPiece, host: string, isLeader: boolean): readonly CollectedPiece[] {
  if (!CLUSTER.test(piece.path)) return [{ ...piece, path: `hosts/${host}/${piece.path}` }];
  return isLeader ? [piece] : [];
}

/** An archive of another machine: hostile. What is missing in it is missing here, too. */
async function readArchive(
  { ssh: host }: WrittenHost,
  packed: Uint8Array,
  { signal }: { readonly signal: AbortSignal },
): Promise<{ readonly pieces: readonly CollectedPiece[]; readonly verdicts: Verdicts }> {
  const refuse = (what: string): CurlewError =>
    new SshError(host, 'status', `its support bundle cannot be read: ${what}`, 'run curlew support-bundle there');
  const tar: Uint8Array = await unpack(packed, { maxOutputLength: UNPACKED_BYTES }).catch((error: unknown) => {
    throw refuse(error instanceof Error ? error.message : String(error));
  });
  const pieces: CollectedPiece[] = [];
  let verdicts: Verdicts | undefined;
  const stream = (async function* whole() {
    yield Promise.resolve(tar);
  })();
  for await (const { path: name, data } of walkTar(stream, { refuse, signal })) {
    const path = name.slice(name.indexOf('/') + 1);
    if (path === VERSION_PATH) continue;
    if (pathProblem(path) !== undefined) throw refuse(`a path ${pathProblem(path)}`);
    const text = (await data()).toString('utf8');
    if (path === INDEX_PATH) {
      const index = parseSupportIndex(text, refuse);
      verdicts = index;
      const missing = index.files.filter(({ state }) => state === 'failed' || state === 'left out');
      pieces.push(...missing.map(({ path: of, problem = 'it is missing' }) => ({ path: of, problem })));
    }
    const value = path.endsWith('.json') ? jsonIn(text) : undefined;
    pieces.push(value === undefined ? { path, text } : { path, value });
  }
  if (verdicts === undefined) throw refuse('it has no index');
  return { pieces, verdicts };
}

const planSchema = v.object({ files: v.array(v.object({ path: v.string(), source: v.string() })) });

/** The items that each machine would collect, by its own curlew. */
export async function planHostBundles(
  cluster: WrittenCluster,
  ssh: Ssh,
  context: Context,
): Promise<readonly { readonly path: string; readonly source: string }[]> {
  const { hosts } = await lookAt(cluster, { ssh, bundle: undefined }, context);
  const ask = async ({ host, problem }: (typeof hosts)[number], { signal }: { readonly signal: AbortSignal }) => {
    const { name } = host;
    try {
      if (problem !== undefined) throw away(host, problem);
      const read = v.parse(planSchema, await askHost(ssh, host, { command: ['support-bundle', '--dry-run'], signal }));
      return read.files.map(({ path, source }) => ({ path: `hosts/${name}/${path}`, source: `${name}: ${source}` }));
    } catch (error) {
      if (signal.aborted || !(error instanceof CurlewError || error instanceof v.ValiError)) throw error;
      return [{ path: `hosts/${name}/basics.txt`, source: `${name}: ${error.message}` }];
    }
  };
  return (await mapLimited(hosts, ask, { width: AT_ONCE, signal: context.signal })).flat();
}
