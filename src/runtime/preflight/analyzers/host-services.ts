import { firstOutcome, JudgeProblem, type Analyzer } from '../analyzer.ts';
import { hostServices as collector, type HostService } from '../collectors/host-services.ts';
import { wordsOf } from '../compare.ts';

export const hostServices: Analyzer<readonly HostService[]> = {
  kind: 'hostServices',
  collector,
  settings: {},
  title: () => 'Host Services',
  judge: firstOutcome(holds),
};

/**
 * `ufw.service = active`, `firewalld = inactive,dead,loaded` (active, sub, load; `*` is anything). The first service
 * whose name begins so counts; a service that is not there is neither equal nor unequal to anything.
 */
function holds(when: string, services: readonly HostService[]): boolean {
  const [name = '', sign = '', wanted = ''] = wordsOf(when, 3, 'ufw.service = active');
  const isUnequal = sign === '!=' || sign === '<>';
  if (!isUnequal && sign !== '=' && sign !== '==')
    throw new JudgeProblem(`${JSON.stringify(sign)} is no comparison of services`);
  const service = services.find(({ unit }) => unit.startsWith(name));
  if (service === undefined) return false;
  const [active = '', sub = '', load = ''] = wanted.split(',');
  const pairs = [
    [active, service.active],
    [sub, service.sub],
    [load, service.load],
  ].filter(([word]) => word !== '' && word !== '*');
  return isUnequal ? pairs.some(([word, is]) => word !== is) : pairs.every(([word, is]) => word === is);
}
