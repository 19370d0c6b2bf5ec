import { inOutcome, AnalyzerProblem, resultOf, type Analyzer, type AnalyzerResult } from '../analyzer.ts';
import { kernelModules as collector, type KernelModuleFacts } from '../collectors/kernel-modules.ts';
import { splitCondition } from '../compare.ts';
import type { AnalyzerSpec } from '../spec.ts';

/**
 * Results are all outcomes whose condition holds, then the first applicable one without a condition: fail unless another passed,
 * warn unless another passed or failed, pass unless another failed.
 */
export const kernelModules: Analyzer<KernelModuleFacts> = {
  kind: 'kernelModules',
  collector,
  settings: {},
  title: () => 'Kernel Modules',
  analyze: (modules, { outcomes }: AnalyzerSpec): readonly AnalyzerResult[] => {
    const found = outcomes.filter(
      (outcome) => outcome.when !== '' && inOutcome(outcome, () => holds(outcome.when, modules)),
    );
    const passed = found.some(({ verdict }) => verdict === 'pass');
    const failed = found.some(({ verdict }) => verdict === 'fail');
    const applies = { fail: !passed, warn: !passed && !failed, pass: !failed };
    const last = outcomes.find(({ when, verdict }) => when === '' && applies[verdict]);
    const all = [...found, ...(last === undefined ? [] : [last])].map(resultOf);
    return all.length > 0 ? all : [{ verdict: 'warn', message: 'no results', uri: undefined }];
  },
};

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
  const found = names.find((one) => Object.hasOwn(modules, one));
  return found === undefined ? undefined : modules[found];
}
