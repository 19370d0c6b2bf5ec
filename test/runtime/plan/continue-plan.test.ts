import { digestOf } from '../../../src/core/digest.ts';
import { canContinue, continuePlan } from '../../../src/runtime/plan/continue-plan.ts';
import type { JournalEntry } from '../../../src/runtime/journal/journal.ts';
import { progressOf } from '../../../src/runtime/journal/progress.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import type { PlannedAction, RunPlan } from '../../../src/runtime/plan/run-plan.ts';

const test = suite('going on where a run has stopped');

const at = '2026-11-21T10:15:00.000Z';
const NOW = { identity: digestOf('same'), boot: 'this' };

function hook(name: string): PlannedAction {
  return { id: `hook ${name}`, kind: 'hook', addon: 'aaa', hook: 'install', function: name, because: 'x' };
}

const PLAN: RunPlan = {
  format: 1,
  kind: 'install',
  addons: [],
  actions: [{ id: 'images aaa', kind: 'images', addon: 'aaa', because: 'x' }, hook('one'), hook('two'), hook('three')],
};

function journal(...more: readonly JournalEntry<RunPlan>[]): readonly JournalEntry<RunPlan>[] {
  return [{ at, type: 'planned', plan: PLAN, ...NOW }, ...more];
}

function done(action: string): JournalEntry<RunPlan> {
  return { at, type: 'done', action, outcome: 'done' };
}

test('only a run that did not finish, of the same, since the same start of the machine is gone on from', () => {
  const can = (entries: readonly JournalEntry<RunPlan>[], now = NOW): boolean =>
    canContinue(progressOf('r1', entries), now);
  assert.ok(can(journal()));
  assert.ok(can(journal({ at, type: 'ended', outcome: 'failed' })));
  assert.ok(can(journal({ at, type: 'ended', outcome: 'cancelled' })));
  assert.not(can(journal({ at, type: 'ended', outcome: 'finished' })));
  assert.not(can(journal(), { ...NOW, boot: 'another' }));
  assert.not(can(journal(), { ...NOW, identity: digestOf('other') }));
  assert.not(can([]));
});

test('what is done stays out, images and what was only begun stay in', () => {
  const begun: JournalEntry<RunPlan> = { at, type: 'started', action: 'hook two', attempt: 1 };
  const plan = continuePlan(PLAN, progressOf('r1', journal(done('images aaa'), done('hook one'), begun)));
  assert.equal(
    plan.actions.map(({ id }) => id),
    ['images aaa', 'hook two', 'hook three'],
  );
  assert.equal(plan.continues, { run: 'r1', done: [{ action: 'hook one', run: 'r1' }] });
});

test('a run that went on itself is gone on from, with all that is done', () => {
  const second = continuePlan(PLAN, progressOf('r1', journal(done('hook one'))));
  const entries: readonly JournalEntry<RunPlan>[] = [{ at, type: 'planned', plan: second, ...NOW }, done('hook two')];
  const third = continuePlan(PLAN, progressOf('r2', entries));
  assert.equal(
    third.actions.map(({ id }) => id),
    ['images aaa', 'hook three'],
  );
  assert.equal(third.continues?.done, [
    { action: 'hook one', run: 'r1' },
    { action: 'hook two', run: 'r2' },
  ]);
});

test('what has to be extracted is decided anew', () => {
  const extract: PlannedAction = { id: 'extract aaa-1', kind: 'extract', addon: 'aaa', because: 'x' };
  const fresh = { ...PLAN, actions: [extract, ...PLAN.actions] };
  const plan = continuePlan(fresh, progressOf('r1', journal(done('extract aaa-1'), done('hook one'))));
  assert.is(plan.actions[0]?.id, 'extract aaa-1');
});

test.run();
