/** Services of systemd and their states. */
import * as v from 'valibot';
import type { Read } from '../../../core/schema.ts';
import { DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { outputOf } from '../program.ts';

const row = v.object({
  /** With its ending: `ufw.service`. */
  unit: v.string(),
  load: v.string(),
  active: v.string(),
  sub: v.string(),
});
export type HostService = Read<typeof row>;

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
  facts: v.array(row),
};
