/** Kernel modules: loaded, built in, or loadable. */
import { readdir } from 'node:fs/promises';
import { release } from 'node:os';
import { basename } from 'node:path';
import * as v from 'valibot';
import { byKey } from '../../../core/schema.ts';
import { errnoOf } from '../../../core/errors.ts';
import { CollectProblem, DEFAULT_LIMIT_MS, type Collector, type Host } from '../collector.ts';
import { hostPath, readHostFile } from '../host-files.ts';

/** `loaded`, `loadable`, `loading`, `unloading` or `unknown`, by the name of the module. */
export type KernelModuleFacts = Readonly<Record<string, string>>;

export const kernelModules: Collector<KernelModuleFacts> = {
  kind: 'kernelModules',
  defaultName: 'kernelModules',
  shared: true,
  settings: {},
  limitMs: () => DEFAULT_LIMIT_MS,
  collect: async (_, host) => {
    const loaded = await readHostFile(host, 'proc/modules');
    if (loaded === undefined) throw new CollectProblem('the kernel provides no /proc/modules');
    const found = new Map<string, string>();
    const folder = (await modulesFolder(host)) ?? '';
    if (folder !== '') {
      for (const name of await moduleFiles(host, folder)) found.set(name, 'loadable');
      const builtin = (await readHostFile(host, `${folder}/modules.builtin`)) ?? '';
      for (const line of builtin.split('\n')) if (line !== '') found.set(moduleName(line), 'loaded');
    }
    for (const line of loaded.split('\n')) {
      const [name = '', , , , state = ''] = line.split(' ');
      if (name !== '') found.set(name, STATES[state] ?? 'unknown');
    }
    return Object.fromEntries(found);
  },
  facts: byKey(v.string()),
};

/** proc(5), /proc/modules, fifth field. */
const STATES: Readonly<Record<string, string>> = { Live: 'loaded', Loading: 'loading', Unloading: 'unloading' };

async function modulesFolder(host: Host): Promise<string | undefined> {
  for (const folder of [`lib/modules/${release()}`, `usr/lib/modules/${release()}`]) {
    try {
      await readdir(hostPath(host, folder));
      return folder;
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
  }
  return undefined;
}

async function moduleFiles(host: Host, folder: string): Promise<readonly string[]> {
  const entries = await readdir(hostPath(host, folder), { recursive: true });
  return entries.filter((path) => /\.ko(?:\.(?:gz|xz|zst))?$/.test(path)).map(moduleName);
}

/** Files may be compressed. */
function moduleName(path: string): string {
  return basename(path).replace(/\.ko(?:\.(?:gz|xz|zst))?$/, '');
}
