/** Services of systemd and their states. */
import { DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { isListOf } from '../fact-shapes.ts';
import { outputOf } from '../program.ts';

export type HostService = {
  /** With its ending: `ufw.service`. */
  readonly unit: string;
  readonly load: string;
  readonly active: string;
  readonly sub: string;
};

const ARGS = ['list-units', '--type=service', '--no-legend', '--no-pager', '--all', '--plain'];

export const hostServices: Collector<readonly HostService[]> = {
  kind: 'hostServices',
  defaultName: 'hostServices',
  shared: true,
  isProgram: true,
  settings: {},
  limitMs: () => DEFAULT_LIMIT_MS,
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
  isFacts: (value): value is readonly HostService[] =>
    isListOf(value, { unit: 'text', load: 'text', active: 'text', sub: 'text' }),
};
