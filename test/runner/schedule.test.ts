import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { inOrder, runJobs, timeLeft, type Job, type Result } from './schedule.ts';

const test = suite('runner/schedule');
const OK: Result = { passed: 1, failed: 0, skipped: [], output: '', seconds: 1 };

function job(name: string, more: Partial<Job> = {}): Job {
  return {
    name,
    command: `run ${name}`,
    alone: undefined,
    isLong: false,
    after: undefined,
    run: async () => Promise.resolve(OK),
    ...more,
  };
}

/** Jobs that write down when they begin and end. */
function traced(trace: string[], name: string, more: Partial<Job> = {}): Job {
  const run = async (): Promise<Result> => {
    trace.push(`+${name}`);
    await new Promise((resolve) => setImmediate(resolve));
    trace.push(`-${name}`);
    return OK;
  };
  return job(name, { run, ...more });
}

test('the longest come first, unknown ones before them, of those what is known to be long, those that run alone last', () => {
  const jobs = [job('short'), job('alone', { alone: 'clock' }), job('new'), job('vast', { isLong: true }), job('long')];
  const order = inOrder(jobs, { short: 1, long: 60, alone: 300 }).map(({ name }) => name);
  assert.equal(order, ['vast', 'new', 'long', 'short', 'alone']);
});

test('so many run beside each other, and one that runs alone beside none', async ({ signal }) => {
  const trace: string[] = [];
  const jobs = [traced(trace, 'a'), traced(trace, 'b'), traced(trace, 'c', { alone: 'clock' }), traced(trace, 'd')];
  await runJobs(jobs, () => undefined, { width: 2, signal });
  assert.equal(trace.slice(0, 2), ['+a', '+b']);
  assert.is(trace.indexOf('-c'), trace.indexOf('+c') + 1);
});

test('more run where the machine has room, up to a number, in their order and beside none that runs alone', async ({
  signal,
}) => {
  const trace: string[] = [];
  // The first two end only once the third has begun.
  let begin: (result: Result) => void = () => undefined;
  const begun = new Promise<Result>((resolve) => (begin = resolve));
  const held = (name: string): Job => job(name, { run: async () => begun });
  const third = job('c', {
    run: async () => {
      trace.push('c');
      begin(OK);
      return Promise.resolve(OK);
    },
  });
  let looks = 0;
  const spare = { most: 3, hasRoom: () => (looks += 1) > 1, everyMs: 0 };
  await runJobs([held('a'), held('b'), third, job('d')], () => undefined, { width: 2, spare, signal });
  assert.equal(trace, ['c']);

  const names = ['a', 'b', 'c', 'd', 'e'];
  const jobs = names.map((name) => traced(trace, name, name === 'e' ? { alone: 'clock' } : {}));
  trace.length = 0;
  await runJobs(jobs, () => undefined, { width: 1, spare, signal });
  assert.equal(trace.slice(0, 3), ['+a', '+b', '+c']);
  assert.equal(trace.slice(-2), ['+e', '-e']);

  trace.length = 0;
  await runJobs(jobs, () => undefined, { width: 1, spare: { ...spare, hasRoom: () => false }, signal });
  assert.equal(
    trace,
    names.flatMap((name) => [`+${name}`, `-${name}`]),
  );
});

test('a job waits for its predecessor, and is a failure where that failed', async ({ signal }) => {
  const failed = job('build', { run: async () => Promise.resolve({ ...OK, passed: 0, failed: 1 }) });
  const ends: Record<string, Result> = {};
  const later = job('later', { after: 'build' });
  await runJobs([later, failed, job('other')], ({ name }, result) => (ends[name] = result), { width: 3, signal });
  assert.equal(Object.keys(ends).toSorted(), ['build', 'later', 'other']);
  assert.is(ends['later']?.failed, 1);
  assert.match(ends['later']?.output ?? '', 'not run: build failed');

  const trace: string[] = [];
  const jobs = [traced(trace, 'later', { after: 'build' }), traced(trace, 'build')];
  await runJobs(jobs, () => undefined, { width: 2, signal });
  assert.equal(trace, ['+build', '-build', '+later', '-later']);
});

test('after a stop nothing new begins, and what runs is waited for', async () => {
  const stop = new AbortController();
  const trace: string[] = [];
  const reported: string[] = [];
  const first = traced(trace, 'first');
  const run = async (signal: AbortSignal): Promise<Result> => {
    stop.abort();
    return first.run(signal);
  };
  await runJobs([{ ...first, run }, traced(trace, 'second')], ({ name }) => reported.push(name), {
    width: 1,
    signal: stop.signal,
  });
  assert.equal([trace, reported], [['+first', '-first'], []]);
});

test('the time left follows from what is known of the jobs, and is left out where that is too little', () => {
  const jobs = [job('a'), job('b'), job('c'), job('d')];
  assert.is(timeLeft(jobs, { a: 10, b: 20, c: 30 }, 2), 40);
  assert.is(timeLeft(jobs, { a: 10 }, 2), undefined);
});

test.run();
