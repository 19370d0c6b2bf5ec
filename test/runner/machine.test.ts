import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { roomOn } from './machine.ts';

const test = suite('runner/machine');

test('there is room for a job where a processor was free for seconds, and memory is left', () => {
  const machine = { at: 0, used: 100, free: 8e9 };
  const hasRoom = roomOn({
    processors: 2,
    now: () => machine.at,
    used: () => machine.used,
    freeBytes: () => machine.free,
  });
  const after = (seconds: number, used: number, free = 8e9): boolean => {
    machine.at += seconds;
    machine.used += used;
    machine.free = free;
    return hasRoom();
  };
  assert.is(after(1, 0), false, 'too early to say');
  assert.is(after(2, 3), true);
  assert.is(after(1, 0), false, 'what began meanwhile is not seen yet');
  assert.is(after(3, 5), false, 'more than one of two was busy');
  assert.is(after(4, 4, 1e9), false, 'memory is short');
  assert.is(after(4, 4), true);
});

test.run();
