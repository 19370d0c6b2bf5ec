import { inOutcome, JudgeProblem, judgementOf, type Analyzer, type Judgement } from '../analyzer.ts';
import { kernelModules as collector, type KernelModuleFacts } from '../collectors/kernel-modules.ts';
import { wordsOf } from '../compare.ts';
import type { AnalyzerSpec } from '../spec.ts';

/**
 * Every outcome with a condition that holds is told. One without is told last: a fail unless something passed, a warn
 * unless something passed or failed, a pass unless something failed.
 */
export const kernelModules: Analyzer<KernelModuleFacts> = {
  kind: 'kernelModules',
  collector,
  settings: {},
  title: () => 'Kernel Modules',
  judge: (modules, { outcomes }: AnalyzerSpec): readonly Judgement[] => {
    const found = outcomes.filter(
      (outcome) => outcome.when !== '' && inOutcome(outcome, () => holds(outcome.when, modules)),
    );
    const passed = found.some(({ verdict }) => verdict === 'pass');
    const failed = found.some(({ verdict }) => verdict === 'fail');
    const applies = { fail: !passed, warn: !passed && !failed, pass: !failed };
    const last = outcomes.find(({ when, verdict }) => when === '' && applies[verdict]);
    const all = [...found, ...(last === undefined ? [] : [last])].map(judgementOf);
    return all.length > 0 ? all : [{ verdict: 'warn', message: 'no results', uri: undefined }];
  },
};

/** `overlay,br_netfilter == loaded,loadable`: all of the modules are in one of the states; `!=`: one is in none. */
function holds(when: string, modules: KernelModuleFacts): boolean {
  const [names = '', sign = '', states = ''] = wordsOf(when, 3, 'overlay == loaded');
  const wanted = states.split(',');
  const isIn = (name: string): boolean => wanted.includes(stateOf(name, modules) ?? '');
  if (sign === '=' || sign === '==') return names.split(',').every(isIn);
  if (sign !== '!=' && sign !== '<>') throw new JudgeProblem(`${JSON.stringify(sign)} is no comparison of modules`);
  for (const name of names.split(',')) {
    if (stateOf(name, modules) === undefined) return true;
    if (isIn(name)) return false;
  }
  return true;
}

/** Files of modules have dashes where the kernel has underscores. */
function stateOf(name: string, modules: KernelModuleFacts): string | undefined {
  const names = [name, name.replaceAll('-', '_'), name.replaceAll('_', '-')];
  const found = names.find((one) => Object.hasOwn(modules, one));
  return found === undefined ? undefined : modules[found];
}
