/** Time zone and clock synchronization. */
import * as v from 'valibot';
import type { Read } from '../../../core/schema.ts';
import { CollectProblem, DEFAULT_LIMIT_MS, type Collector } from '../collector.ts';
import { outputOf } from '../program.ts';

const facts = v.object({
  /** In upper case; `ETC/UTC` is `UTC`. */
  timezone: v.string(),
  ntpSynchronized: v.boolean(),
  ntpActive: v.boolean(),
});
export type TimeFacts = Read<typeof facts>;

export const time: Collector<TimeFacts> = {
  kind: 'time',
  defaultName: 'time',
  shared: true,
  isProgram: true,
  settings: {},
  limitMs: () => DEFAULT_LIMIT_MS,
  collect: async (_, host) => {
    const properties = ['Timezone', 'NTPSynchronized', 'NTP'];
    const text = await outputOf('timedatectl', ['show', ...properties.map((name) => `--property=${name}`)], host);
    const [zone, synchronized, active] = properties.map((name) => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1]);
    if (zone === undefined || !isYesNo(synchronized) || !isYesNo(active)) {
      throw new CollectProblem('timedatectl does not report time zone and NTP');
    }
    const upper = zone.toUpperCase();
    return {
      timezone: upper === 'ETC/UTC' ? 'UTC' : upper,
      ntpSynchronized: synchronized === 'yes',
      ntpActive: active === 'yes',
    };
  },
  facts,
};

function isYesNo(value: string | undefined): boolean {
  return value === 'yes' || value === 'no';
}
