/** Files of this machine: records, runs and their logs, the configuration of Kubernetes, logs of its own pods. */
import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { asError, isMissing } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { nodeStatus } from '../history/status.ts';
import { isRunId } from '../plan/records.ts';
import { CollectProblem } from '../preflight/host.ts';
import type { Item } from './collect.ts';

/** The end of a log has so many. */
const LOG_BYTES = 2 << 20;
const MAX_RUNS = 10;
const MAX_LOGS = 200;

const FILES = [
  '/etc/os-release',
  '/etc/hosts',
  '/etc/resolv.conf',
  '/proc/loadavg',
  '/proc/meminfo',
  '/proc/mounts',
  '/etc/containerd/config.toml',
  '/var/lib/kubelet/config.yaml',
];
const MANIFESTS = '/etc/kubernetes/manifests';
const POD_LOGS = '/var/log/pods';

export interface NodeFolders {
  /** The install folder. */
  readonly directory: string;
  /** Root of the other files; `/` except in tests. */
  readonly root: string;
  /** Files of curlew on a host that another machine manages. */
  readonly remote: string;
}

/** Reads only the names of files. What this user may not list is an item that fails. */
export async function nodeItems({ directory, root, remote }: NodeFolders): Promise<readonly Item[]> {
  const items: Item[] = [
    {
      path: 'curlew/status.json',
      source: `curlew status --install-dir ${directory}`,
      collect: async (at) => [{ path: 'curlew/status.json', value: await nodeStatus(directory, at) }],
    },
    fileItem('curlew/records.json', join(directory, nodePath.records)),
  ];
  const list = async (path: string, folder: string, each: (name: string) => Promise<void> | void): Promise<void> => {
    try {
      for (const name of (await readdir(folder)).toSorted().toReversed()) await each(name);
    } catch (error) {
      if (isMissing(error)) return;
      items.push({ path, source: folder, collect: async () => Promise.reject(asError(error)) });
    }
  };
  let runs = 0;
  await list('curlew/runs', join(directory, 'runs'), async (run) => {
    if (!isRunId(run) || (runs += 1) > MAX_RUNS) return;
    await list(`curlew/runs/${run}`, join(directory, nodePath.run(run)), (name) => {
      // Settings and the saved request are left out: they contain secrets, and the plan in the journal says what was run.
      if (!/^(?:journal\.jsonl|preflight\.json|.+\.log)$/.test(name)) return;
      items.push(fileItem(`curlew/runs/${run}/${name}`, join(directory, nodePath.run(run), name)));
    });
  });
  for (const name of ['name', 'status', 'log']) {
    items.push(fileItem(`curlew/remote/${name}`, join(root, remote, name)));
  }
  for (const path of FILES) items.push(fileItem(`host-files${path}`, join(root, path)));
  await list(`host-files${MANIFESTS}`, join(root, MANIFESTS), (name) => {
    items.push(fileItem(`host-files${MANIFESTS}/${name}`, join(root, MANIFESTS, name)));
  });
  let logs = 0;
  await list('pod-logs', join(root, POD_LOGS), async (pod) => {
    // The components are pods of kube-system, whose logs are there also if the API server is not.
    if (!pod.startsWith('kube-')) return;
    await list(`pod-logs/${pod}`, join(root, POD_LOGS, pod), async (container) => {
      let last = 0;
      await list(`pod-logs/${pod}/${container}`, join(root, POD_LOGS, pod, container), (name) => {
        if (!name.endsWith('.log') || (last += 1) > 2 || (logs += 1) > MAX_LOGS) return;
        items.push(fileItem(`pod-logs/${pod}/${container}/${name}`, join(root, POD_LOGS, pod, container, name)));
      });
    });
  });
  return items;
}

export function fileItem(path: string, source: string): Item {
  return { path, source, collect: async () => [{ path, text: await endOf(source) }] };
}

/** Its last bytes, in whole lines. */
async function endOf(path: string): Promise<string> {
  // Opening a pipe would block.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stats = await file.stat();
  if (!stats.isFile()) throw new CollectProblem('it is not a file');
  // Files of the kernel have no size.
  const buffer = Buffer.alloc(LOG_BYTES);
  const start = Math.max(0, stats.size - LOG_BYTES);
  let length = 0;
  for (let read = -1; read !== 0 && length < LOG_BYTES; length += read) {
    ({ bytesRead: read } = await file.read(buffer, length, LOG_BYTES - length, start + length));
  }
  const text = buffer.toString('utf8', start === 0 ? 0 : buffer.indexOf('\n') + 1, length);
  return start === 0 ? text : `… the first ${start} bytes are left out\n${text}`;
}
