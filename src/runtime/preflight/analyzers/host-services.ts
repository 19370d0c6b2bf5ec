import { firstOutcome, AnalyzerProblem, type Analyzer } from '../analyzer.ts';
import { hostServices as collector, type HostService } from '../collectors/host-services.ts';
import { splitCondition } from '../compare.ts';

export const hostServices: Analyzer<readonly HostService[]> = {
  kind: 'hostServices',
  collector,
  settings: {},
  title: () => 'Host Services',
  analyze: firstOutcome(holds),
};

/**
 * `ufw.service = active`, `firewalld = inactive,dead,loaded` (active, sub, load; `*` is anything). The first service whose name
 * starts with the given one counts; for a service that does not exist, every comparison is false.
 */
function holds(when: string, services: readonly HostService[]): boolean {
  const [name = '', sign = '', wanted = ''] = splitCondition(when, 3, 'ufw.service = active');
  const isUnequal = sign === '!=' || sign === '<>';
  if (!isUnequal && sign !== '=' && sign !== '==')
    throw new AnalyzerProblem(`${JSON.stringify(sign)} is not a comparison of services`);
  const service = services.find(({ unit }) => unit.startsWith(name));
  if (service === undefined) return false;
  const [active = '', sub = '', load = ''] = wanted.split(',');
  const pairs = [
    [active, service.active],
    [sub, service.sub],
    [load, service.load],
  ].filter(([expected]) => expected !== '' && expected !== '*');
  return isUnequal
    ? pairs.some(([expected, actual]) => expected !== actual)
    : pairs.every(([expected, actual]) => expected === actual);
}
