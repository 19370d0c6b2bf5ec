/** Processors: number, architecture, features. */
import { readdir } from 'node:fs/promises';
import { machine } from 'node:os';
import * as v from 'valibot';
import { finite, type Read, textList } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { CollectProblem, type Host, hostPath, readHostFile } from '../host.ts';
import { AnalyzerProblem, compareNumbers, firstOutcome, wholeNumber } from '../outcome.ts';

const schema = v.object({
  logicalCount: finite,
  physicalCount: finite,
  flags: textList,
  /** Output of `uname -m`. */
  machineArch: v.string(),
});
type CpuFacts = Read<typeof schema>;

export const cpu: Check<CpuFacts> = {
  kind: 'cpu',
  shared: true,
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
  facts: schema,
  title: 'Number of CPUs',
  analyze: firstOutcome(holds),
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

/** Features that each level adds (x86-64 psABI, "Micro-Architecture Levels"; names of /proc/cpuinfo). */
const LEVELS: readonly (readonly [level: string, flags: readonly string[]])[] = [
  ['x86-64', ['cmov', 'cx8', 'fpu', 'fxsr', 'mmx', 'syscall', 'sse', 'sse2']],
  ['x86-64-v2', ['cx16', 'lahf_lm', 'popcnt', 'ssse3', 'sse4_1', 'sse4_2']],
  ['x86-64-v3', ['avx', 'avx2', 'bmi1', 'bmi2', 'f16c', 'fma', 'movbe', 'xsave']],
  ['x86-64-v4', ['avx512f', 'avx512bw', 'avx512cd', 'avx512dq', 'avx512vl']],
];

/** `count < 2`, `< 2`, `logical >= 4`, `physical >= 2`, `machineArch == x86_64`, `supports x86-64-v2`, `hasFlags a,b`. */
function holds(when: string, facts: CpuFacts): boolean {
  const words = when.split(' ');
  const [sign = '', wanted = ''] = words.slice(-2);
  const subject = words.length === 3 ? (words[0] ?? '').toLowerCase() : 'count';
  if (words.length === 2 || words.length === 3) {
    if (sign.toLowerCase() === 'supports') return supports(wanted, facts.flags);
    if (sign.toLowerCase() === 'hasflags') return wanted.split(',').every((flag) => facts.flags.includes(flag));
    if (subject === 'logical') return compareNumbers(sign, facts.logicalCount, wholeNumber(wanted), true);
    if (subject === 'physical') return compareNumbers(sign, facts.physicalCount, wholeNumber(wanted), true);
    if (subject === 'machinearch') return compareArch(sign, facts.machineArch, wanted);
    if (subject === 'count') {
      return compareNumbers(sign, Math.max(facts.logicalCount, facts.physicalCount), wholeNumber(wanted), true);
    }
  }
  throw new AnalyzerProblem(`the condition ${JSON.stringify(when)} does not have the form "count < 2"`);
}

function compareArch(sign: string, actual: string, wanted: string): boolean {
  if (['=', '==', '==='].includes(sign)) return actual === wanted;
  if (['!=', '!=='].includes(sign)) return actual !== wanted;
  throw new AnalyzerProblem(`${JSON.stringify(sign)} is not a known comparison`);
}

function supports(level: string, flags: readonly string[]): boolean {
  const at = LEVELS.findIndex(([name]) => name === level);
  if (at === -1) throw new AnalyzerProblem(`${JSON.stringify(level)} is not an x86-64 level`);
  // The kernel reports lzcnt by its older name, abm.
  const has = (flag: string): boolean => flags.includes(flag);
  return LEVELS.slice(0, at + 1).every(([, needed]) => needed.every(has)) && (at < 2 || has('lzcnt') || has('abm'));
}
