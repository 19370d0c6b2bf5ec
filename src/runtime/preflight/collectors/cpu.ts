/** Processors: number, architecture, features. */
import { machine } from 'node:os';
import { readdir } from 'node:fs/promises';
import * as v from 'valibot';
import { finite, texts, type Read } from '../../../core/schema.ts';
import { CollectProblem, DEFAULT_LIMIT_MS, type Collector, type Host } from '../collector.ts';
import { hostPath, readHostFile } from '../host-files.ts';

const facts = v.object({
  logicalCount: finite,
  physicalCount: finite,
  flags: texts,
  /** As printed by `uname -m`. */
  machineArch: v.string(),
});
export type CpuFacts = Read<typeof facts>;

export const cpu: Collector<CpuFacts> = {
  kind: 'cpu',
  defaultName: 'cpu',
  shared: true,
  settings: {},
  limitMs: () => DEFAULT_LIMIT_MS,
  collect: async (_, host) => {
    const text = await readHostFile(host, 'proc/cpuinfo');
    if (text === undefined) throw new CollectProblem('the kernel provides no /proc/cpuinfo');
    const logicalCount = [...text.matchAll(/^processor\s*:\s*\d+/gim)].length;
    return {
      logicalCount,
      physicalCount: (await coreCount(host)) ?? listedCores(text),
      flags: [
        ...new Set([...text.matchAll(/^(?:flags|Features)\s*:\s*(.*)$/gm)].flatMap(([, all = '']) => words(all))),
      ],
      machineArch: machine(),
    };
  },
  facts,
};

function words(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** All threads of one core have the same list. */
async function coreCount(host: Host): Promise<number | undefined> {
  const folder = 'sys/devices/system/cpu';
  const names = await readdir(hostPath(host, folder)).catch(() => []);
  const cores = new Set<string>();
  for (const name of names.filter((one) => /^cpu\d+$/.test(one))) {
    for (const file of ['core_cpus_list', 'thread_siblings_list']) {
      const list = await readHostFile(host, `${folder}/${name}/topology/${file}`, 4096).catch(() => undefined);
      if (list === undefined) continue;
      cores.add(list.trim());
      break;
    }
  }
  return cores.size === 0 ? undefined : cores.size;
}

function listedCores(text: string): number {
  const packages = new Map<string, number>();
  for (const part of text.split(/\n\s*\n/)) {
    const [, id] = /^physical id\s*:\s*(\d+)/m.exec(part) ?? [];
    const [, cores] = /^cpu cores\s*:\s*(\d+)/m.exec(part) ?? [];
    if (id !== undefined && cores !== undefined) packages.set(id, Number(cores));
  }
  return [...packages.values()].reduce((sum, count) => sum + count, 0);
}
