/** Services of systemd and their states. */
import * as v from 'valibot';
import type { Read } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { outputOf } from '../host.ts';
import { AnalyzerProblem, firstOutcome, splitCondition } from '../outcome.ts';

const row = v.object({
  /** With its ending: `ufw.service`. */
  unit: v.string(),
  load: v.string(),
  active: v.string(),
  sub: v.string(),
});
type HostService = Read<typeof row>;

const ARGS = ['list-units', '--type=service', '--no-legend', '--no-pager', '--all', '--plain'];

export const hostServices: Check<readonly HostService[]> = {
  kind: 'hostServices',
  shared: true,
  isProgram: true,
  collect: async (_, host) => {
    const text = await outputOf('systemctl', ARGS, host);
    return text.split('\n').flatMap((line) => {
      const [unit, load, active, sub] = line
        .replace(/^[●○*×]/, '')
        .trim()
        .split(/\s+/);
      return unit === undefined || load === undefined || active === undefined || sub === undefined
        ? []
        : [{ unit, load, active, sub }];
    });
  },
  facts: v.array(row),
  title: 'Host Services',
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
