/** Kernel modules: loaded, built in, or loadable. */
import { readdir } from 'node:fs/promises';
import { release } from 'node:os';
import { basename } from 'node:path';
import * as v from 'valibot';
import { errnoOf } from '../../../core/errors.ts';
import { byKey } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { CollectProblem, type Host, hostPath, readHostFile } from '../host.ts';
import { AnalyzerProblem, type AnalyzerResult, inOutcome, checkResult, splitCondition } from '../outcome.ts';
import type { AnalyzerSpec } from '../spec.ts';

/** `loaded`, `loadable`, `loading`, `unloading` or `unknown`, by the name of the module. */
type KernelModuleFacts = Readonly<Record<string, string>>;

/**
 * Results are all outcomes whose condition holds, then the first applicable one without a condition: fail unless another passed,
 * warn unless another passed or failed, pass unless another failed.
 */
export const kernelModules: Check<KernelModuleFacts> = {
  kind: 'kernelModules',
  shared: true,
  collect: async (_, host) => {
    const loaded = await readHostFile(host, 'proc/modules');
    if (loaded === undefined) throw new CollectProblem('the kernel provides no /proc/modules');
    const states = new Map<string, string>();
    const folder = (await modulesFolder(host)) ?? '';
    if (folder !== '') {
      for (const name of await moduleFiles(host, folder)) states.set(name, 'loadable');
      const builtin = (await readHostFile(host, `${folder}/modules.builtin`)) ?? '';
      for (const line of builtin.split('\n')) if (line !== '') states.set(moduleName(line), 'loaded');
    }
    for (const line of loaded.split('\n')) {
      const [name = '', , , , state = ''] = line.split(' ');
      if (name !== '') states.set(name, STATES[state] ?? 'unknown');
    }
    return Object.fromEntries(states);
  },
  facts: byKey(v.string()),
  title: 'Kernel Modules',
  analyze: (modules, { outcomes }: AnalyzerSpec): readonly AnalyzerResult[] => {
    const matching = outcomes.filter(
      (outcome) => outcome.when !== '' && inOutcome(outcome, () => holds(outcome.when, modules)),
    );
    const passed = matching.some(({ verdict }) => verdict === 'pass');
    const failed = matching.some(({ verdict }) => verdict === 'fail');
    const applies = { fail: !passed, warn: !passed && !failed, pass: !failed };
    const last = outcomes.find(({ when, verdict }) => when === '' && applies[verdict]);
    const all = [...matching, ...(last === undefined ? [] : [last])].map(checkResult);
    return all.length > 0 ? all : [{ verdict: 'warn', message: 'no results', uri: undefined }];
  },
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

/**
 * `overlay,br_netfilter == loaded,loadable`: every module is in one of the states; `!=`: none is, or a missing one comes before.
 */
function holds(when: string, modules: KernelModuleFacts): boolean {
  const [names = '', sign = '', states = ''] = splitCondition(when, 3, 'overlay == loaded');
  const wanted = states.split(',');
  const isIn = (name: string): boolean => wanted.includes(stateOf(name, modules) ?? '');
  if (sign === '=' || sign === '==') return names.split(',').every(isIn);
  if (sign !== '!=' && sign !== '<>')
    throw new AnalyzerProblem(`${JSON.stringify(sign)} is not a comparison of modules`);
  for (const name of names.split(',')) {
    if (stateOf(name, modules) === undefined) return true;
    if (isIn(name)) return false;
  }
  return true;
}

/** File names of modules may have dashes instead of the kernel's underscores. */
function stateOf(name: string, modules: KernelModuleFacts): string | undefined {
  const names = [name, name.replaceAll('-', '_'), name.replaceAll('_', '-')];
  const match = names.find((one) => Object.hasOwn(modules, one));
  return match === undefined ? undefined : modules[match];
}
