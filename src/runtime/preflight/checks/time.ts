/** Time zone and clock synchronization. */
import * as v from 'valibot';
import type { Read } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { CollectProblem, outputOf } from '../host.ts';
import { AnalyzerProblem, firstOutcome, splitCondition } from '../outcome.ts';

const schema = v.object({
  /** Name in upper case; `ETC/UTC` is `UTC`. */
  timezone: v.string(),
  ntpSynchronized: v.boolean(),
  ntpActive: v.boolean(),
});
type TimeFacts = Read<typeof schema>;

export const time: Check<TimeFacts> = {
  kind: 'time',
  shared: true,
  isProgram: true,
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
  facts: schema,
  title: 'Time',
  analyze: firstOutcome(holds),
};

function isYesNo(value: string | undefined): boolean {
  return value === 'yes' || value === 'no';
}

const EQUAL: readonly string[] = ['=', '==', '==='];
const SYNCHRONIZED = ['synchronized', 'unsynchronized'];
const ACTIVE = ['active', 'inactive'];

/** `ntp == synchronized+active`, `timezone != UTC`. */
function holds(when: string, facts: TimeFacts): boolean {
  const [subject = '', sign = '', wanted = ''] = splitCondition(when, 3, 'timezone == UTC');
  const unequal = subject === 'timezone' && sign === '!=';
  if (!EQUAL.includes(sign) && !unequal)
    throw new AnalyzerProblem(`${JSON.stringify(sign)} is not a comparison of ${subject}`);
  if (subject === 'timezone') return (wanted === facts.timezone) !== unequal;
  if (subject !== 'ntp') throw new AnalyzerProblem(`${JSON.stringify(subject)} is neither timezone nor ntp`);
  const [synchronized = '', active = '', more] = wanted.split('+');
  if (!SYNCHRONIZED.includes(synchronized) || !ACTIVE.includes(active) || more !== undefined) {
    throw new AnalyzerProblem(`${JSON.stringify(wanted)} does not have the form synchronized+active`);
  }
  return facts.ntpSynchronized === (synchronized === 'synchronized') && facts.ntpActive === (active === 'active');
}
