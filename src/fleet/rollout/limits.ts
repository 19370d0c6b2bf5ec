/** Counts and times of a rollout strategy as people write them. Pure. */
import { CurlewError } from '../../core/errors.ts';
import { parseDuration } from '../../core/units.ts';

/** Whose rules apply: those of the Helm add-on provider of Cluster API, of Open Cluster Management, or curlew's own. */
export type Rules = 'caaph' | 'ocm' | 'native';

/**
 * A number, or a percentage of `total`, rounded up. Open Cluster Management replaces what is below 1 or above `total` by `def`;
 * natively the value is limited to 0 … `total`, and `def` is only for what is not given. `SPEC_INVALID` for any other text.
 */
export function sizeOf(value: number | string | undefined, total: number, def: number, rules: Rules): number {
  if (value === undefined) return def;
  const percent = /^(\d{1,9})%$/.exec(String(value))?.[1];
  if (percent === undefined && !Number.isSafeInteger(value)) {
    throw new CurlewError('SPEC_INVALID', `cannot read the size ${JSON.stringify(value)}: it is not a count`, {
      hint: 'write a number such as 3, or a percentage such as 25%',
    });
  }
  const size = percent === undefined ? Number(value) : Math.ceil((Number(percent) * total) / 100);
  if (rules === 'ocm') return size <= 0 || size > total ? def : size;
  return Math.min(Math.max(size, 0), total);
}

/** Why something that people wrote cannot be read, as the code that reads it says. */
export function problemIn(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (error instanceof CurlewError) return error.message;
    throw error;
  }
}

/** Seconds of `90s`, `10m` or `2h`; infinite for `None` and for an empty text. `SPEC_INVALID` for any other text. */
export function parseTimeout(text: string): number {
  if (text === '' || text === 'None') return Number.POSITIVE_INFINITY;
  const ms = /^\d{1,9}[hms]$/.test(text) ? parseDuration(text) : undefined;
  if (ms !== undefined) return ms / 1000;
  throw new CurlewError('SPEC_INVALID', `cannot read the time ${JSON.stringify(text)}: it is not a duration`, {
    hint: 'write a number with a unit, such as 90s, 10m or 2h, or None',
  });
}
