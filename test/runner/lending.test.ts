import { execa } from 'execa';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { lend } from './lending.ts';
import { borrow } from './lent.ts';
import { createStock, type Server, type Stock } from './stock.ts';

const test = suite('runner/lending');

interface Trial {
  readonly stock: Stock;
  /** What was done with which server. */
  readonly trace: string[];
}

/** Numbered servers; `refuses` throws where one cannot do this. */
function trial(refuses: (what: string) => void = () => undefined): Trial {
  const trace: string[] = [];
  let started = 0;
  const start = async (): Promise<Server> => {
    started += 1;
    const number = started;
    const does = (what: string) => async (): Promise<void> => {
      trace.push(`${what} ${number}`);
      await Promise.resolve();
      refuses(`${what} ${number}`);
    };
    return Promise.resolve({
      about: number,
      calls: { kill: does('kill') },
      restore: does('restore'),
      check: does('check'),
      [Symbol.asyncDispose]: does('end'),
    });
  };
  return { stock: createStock(start), trace };
}

test('a server that was given back is restored, checked, and lent again; no two have the same at a time', async () => {
  const { stock, trace } = trial();
  const [one, two] = await Promise.all([stock.take(), stock.take()]);
  assert.equal([one.about, two.about], [1, 2]);
  stock.giveBack(two);
  const [again, other] = await Promise.all([stock.take(), stock.take()]);
  assert.equal([again.about, other.about], [2, 3]);
  assert.equal(trace, ['restore 2', 'check 2']);
  await stock[Symbol.asyncDispose]();
  assert.equal(trace.slice(2).toSorted(), ['end 1', 'end 2', 'end 3']);
});

test('a server that cannot be restored, or has ended since, is given up for a new one', async () => {
  for (const failure of ['restore 1', 'check 1']) {
    const { stock, trace } = trial((what) => {
      if (what === failure) throw new Error('etcd is gone');
    });
    stock.giveBack(await stock.take());
    assert.is((await stock.take()).about, 2);
    assert.is(trace.at(-1), 'end 1');
    await stock[Symbol.asyncDispose]();
    assert.equal(trace.slice(-2), ['end 1', 'end 2']);
  }
});

test('users of the socket have a server until they dispose of it, and have the lender do things with it', async () => {
  await using box = await tree();
  const { stock, trace } = trial();
  await using _lending = await lend(box.at('socket'), { number: stock });
  {
    await using lent = await borrow('number', box.at('socket'));
    assert.is(lent?.about, 1);
    await lent?.call('kill');
  }
  await using next = await borrow('number', box.at('socket'));
  assert.is(next?.about, 1);
  assert.equal(trace, ['kill 1', 'restore 1', 'check 1']);
  const refused = await borrow('letter', box.at('socket')).catch((error: unknown) => error);
  assert.match(refused instanceof Error ? refused.message : '', 'nothing of the kind letter is lent');
});

test('a server of a user that was killed comes back', async () => {
  await using box = await tree();
  const { stock, trace } = trial();
  await using _lending = await lend(box.at('socket'), { number: stock });
  const script = `require('node:net').connect(${JSON.stringify(box.at('socket'))})
    .on('data', () => process.kill(process.pid, 'SIGKILL')).write('{"take":"number"}\\n')`;
  await execa(process.execPath, ['-e', script], { reject: false });
  await using lent = await borrow('number', box.at('socket'));
  assert.is(lent?.about, 1);
  assert.equal(trace, ['restore 1', 'check 1']);
});

test.run();
