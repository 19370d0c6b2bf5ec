/** What a run writes into a cluster, kept in memory, for tests of what it writes when. */
import type { NodeCluster, ClusterNode } from '../../src/runtime/cluster/cluster.ts';
import type { AppliedRecord } from '../../src/runtime/plan/records.ts';
import type { Given } from './node-install.ts';

type Kurl = Readonly<Record<string, string>> | undefined;
type Write = 'writeRecords' | 'keepKurl' | 'beginKurl' | 'addKurl' | 'removeKurl';

export interface MemoryCluster {
  readonly state: {
    applied: Readonly<Record<string, AppliedRecord>>;
    current: Kurl;
    last: Kurl;
    /** The channels of add-ons. */
    readonly channels: Map<string, string>;
  };
  /** How a run gets it; the write of this name and number does not come to pass. */
  readonly given: (fails?: Write, times?: number) => Given;
}

/** A cluster in memory, with these nodes. */
export function memoryCluster(nodes: readonly ClusterNode[] = []): MemoryCluster {
  const state: MemoryCluster['state'] = { applied: {}, current: undefined, last: undefined, channels: new Map() };
  const given = (fails?: Write, times = 1): Given => {
    let left = times;
    const write = async (name: Write, act: () => void): Promise<void> => {
      if (name === fails && (left -= 1) === 0) throw new Error(`no ${name}`);
      act();
      return Promise.resolve();
    };
    const cluster: NodeCluster = {
      uid: 'one',
      readRecords: async () => Promise.resolve({ applied: state.applied, adopted: undefined, loadBalancer: undefined }),
      readChannelOwners: async () => Promise.resolve(state.channels),
      readKurl: async () => Promise.resolve(undefined),
      readKubeadm: async () => Promise.resolve(undefined),
      readNodes: async () => Promise.resolve(nodes),
      writeRecords: async ({ applied }) =>
        write('writeRecords', () => {
          const rows = Object.entries({ ...state.applied, ...applied });
          state.applied = Object.fromEntries(rows.flatMap(([name, row]) => (row === undefined ? [] : [[name, row]])));
        }),
      keepKurl: async () => write('keepKurl', () => (state.last = state.current)),
      beginKurl: async ({ shown }) => write('beginKurl', () => (state.current = shown)),
      addKurl: async ({ shown }) => write('addKurl', () => (state.current = { ...state.current, ...shown })),
      removeKurl: async (keys) =>
        write('removeKurl', () => {
          const rows = Object.entries(state.current ?? {}).filter(([key]) => !keys.includes(key));
          state.current = Object.fromEntries(rows);
        }),
    };
    const find = async (): Promise<NodeCluster> => Promise.resolve(cluster);
    return { cluster: { find, adopt: false, whole: true, release: 'v1', entries: new Map() } };
  };
  return { state, given };
}
