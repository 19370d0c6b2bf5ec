/** Maintenance windows: when changes may begin. Pure. */
import { CurlewError } from '../../core/errors.ts';
import { parseTimeout, problemIn } from './limits.ts';

export interface Window {
  /** When it opens: minute, hour, day of the month, month, day of the week (0 is Sunday), as in crontab(5), in numbers. */
  readonly cron: string;
  /** How long it stays open, such as `4h`; at most 31 days. */
  readonly duration: string;
  /** `UTC` by default. */
  readonly timeZone?: string;
}

/** What windows that cannot be read become: nothing begins, and the reason says so. */
export const UNREADABLE: Window = { cron: '', duration: '0s' };

const MAX_SECONDS = 31 * 24 * 3600;
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const FIELDS = [
  ['minute', 0, 59],
  ['hour', 0, 23],
  ['day', 1, 31],
  ['month', 1, 12],
  ['weekday', 0, 7],
] as const;

/** Why the times of a window cannot be read. */
export function windowProblem(window: Window): string | undefined {
  return problemIn(() => isOpen({ ...window, duration: '0s' }, 0));
}

/** Why nothing may begin at `now`, in seconds since 1970: no window is open, or one cannot be read. */
export function closedWindows(windows: readonly Window[] = [], now: number): string | undefined {
  let isClosed = windows.length > 0;
  const problem = problemIn(() => (isClosed &&= !windows.some((window) => isOpen(window, now))));
  return problem ?? (isClosed ? 'no maintenance window is open' : undefined);
}

function isOpen({ cron, duration, timeZone = 'UTC' }: Window, now: number): boolean {
  const parts = cron.trim().split(/\s+/);
  const sets = FIELDS.map((field, at) => valuesOf(parts[at] ?? '', field));
  const format = formatOf(timeZone);
  // Either day is enough if both are restricted, like in crontab(5).
  const either = parts[2] !== '*' && parts[4] !== '*';
  const least = now - Math.min(parseTimeout(duration), MAX_SECONDS);
  for (let start = now - (now % 60); start > least; start -= 60) {
    const local = new Map(format.formatToParts(start * 1000).map(({ type, value }) => [type, value]));
    const [minute, hour, day, month, weekday] = FIELDS.map(([field], at) => {
      const text = local.get(field) ?? '';
      return sets[at]?.has(field === 'weekday' ? WEEKDAYS.indexOf(text) : Number(text)) === true;
    });
    if (minute && hour && month && (either ? day || weekday : day && weekday)) return true;
  }
  return false;
}

function valuesOf(text: string, [field, least, most]: (typeof FIELDS)[number]): ReadonlySet<number> {
  const values = new Set<number>();
  for (const part of text.split(',')) {
    const [whole, from, to, step] = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/([1-9]\d?))?$/.exec(part) ?? [];
    const first = Number(from ?? least);
    const last = Number(to ?? (from === undefined || step !== undefined ? most : from));
    if (whole === undefined || first < least || last > most) {
      const what = `cannot read the window: ${JSON.stringify(part)} is not a ${field}`;
      throw new CurlewError('SPEC_INVALID', what, { hint: 'write five numbers or *, such as 0 22 * * 1-5' });
    }
    for (let value = first; value <= last; value += Number(step ?? 1)) values.add(most === 7 ? value % 7 : value);
  }
  return values;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const numeric = { minute: 'numeric', hour: 'numeric', day: 'numeric', month: 'numeric' } as const;
  try {
    return new Intl.DateTimeFormat('en-US', { ...numeric, weekday: 'short', hourCycle: 'h23', timeZone });
  } catch {
    throw new CurlewError('SPEC_INVALID', `cannot read the window: there is no time zone ${timeZone}`);
  }
}
