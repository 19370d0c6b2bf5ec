import { closedWindows, type Window } from '../../../src/fleet/rollout/windows.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/windows');

const at = (text: string): number => Date.parse(text) / 1000;
const isOpen = (window: Window, text: string): boolean => closedWindows([window], at(text)) === undefined;

test('a window is open from its minute on, as long as it says', () => {
  const window = { cron: '30 22 * * *', duration: '2h' };
  const times = ['22:29:59', '22:30:00', '23:59:59'].map((time) => `2026-01-05T${time}Z`);
  assert.equal(
    [...times, '2026-01-06T00:29:59Z', '2026-01-06T00:30:00Z'].map((time) => isOpen(window, time)),
    [false, true, true, true, false],
  );
});

test('lists, ranges and steps, and either of two days', () => {
  const minutes = (cron: string) =>
    ['00', '10', '15', '20', '45'].filter((minute) => isOpen({ cron, duration: '1m' }, `2026-01-05T10:${minute}:00Z`));
  assert.equal(minutes('*/15 * * * *'), ['00', '15', '45']);
  assert.equal(minutes('10-20/5,45 9-11 * * *'), ['10', '15', '20', '45']);
  const days = (cron: string) =>
    [1, 2, 3, 4, 5].filter((day) => isOpen({ cron, duration: '1m' }, `2026-01-0${day}T00:00:00Z`));
  assert.equal(days('0 0 * * 0,7'), [4]);
  assert.equal(days('0 0 2 * 0'), [2, 4]);
  assert.equal(days('0 0 2 2 *'), []);
});

test('a time zone is followed across the change of clocks', () => {
  const window = { cron: '0 2 * * *', duration: '1h', timeZone: 'America/New_York' };
  assert.ok(isOpen(window, '2026-01-05T07:30:00Z'));
  assert.ok(isOpen(window, '2026-07-05T06:30:00Z'));
  assert.not(isOpen(window, '2026-03-08T07:30:00Z'));
});

test('one that cannot be read is closed, and named', () => {
  const why = (window: Window) => closedWindows([window], 0) ?? '';
  assert.match(why({ cron: '0 25 * * *', duration: '1h' }), /"25" is not a hour|"25" is not an hour/);
  assert.match(why({ cron: '0 2 * *', duration: '1h' }), /"" is not a weekday/);
  assert.match(why({ cron: '0 2 * * *', duration: 'long' }), /cannot read the time "long"/);
  assert.match(why({ cron: '0 2 * * *', duration: '1h', timeZone: 'Mars/Base' }), /no time zone Mars\/Base/);
});

test.run();
