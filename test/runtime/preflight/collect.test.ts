import { createServer } from 'node:net';
import { collectFacts } from '../../../src/runtime/preflight/collect.ts';
import { analyzeFacts } from '../../../src/runtime/preflight/analyze.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { preflightOf } from '../../support/preflight.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('preflight/collect');
const PATH = process.env['PATH'];
const quiet = { root: '/', env: { PATH }, report: noReport };

const run = (name: string, script: string, more = ''): string =>
  `    - run: {collectorName: ${name}, command: sh, args: ['-c', '${script}']${more}}\n`;

test('a collector that hangs is told by its name, and the others have their facts', async ({ signal }) => {
  const spec = preflightOf(`  collectors:
${run('slow', 'sleep 1000', ', timeout: 200ms')}${run('quick', 'echo hello')}  analyzers:
    - textAnalyze: {fileName: host-collectors/run-host/quick.txt, regex: hello, outcomes: [{pass: {when: 'true', message: m}}]}
`);
  const facts = await collectFacts([spec], { ...quiet, signal });
  assert.equal(
    facts.map(({ name, status }) => [name, status]),
    [
      ['slow', 'late'],
      ['quick', 'collected'],
    ],
  );
  const [slow] = facts;
  assert.is(slow?.status === 'late' ? slow.problem : '', 'run "slow" took longer than 0.2 s');
  assert.equal(
    analyzeFacts([spec], facts).map(({ verdict }) => verdict),
    ['pass'],
  );
});

test('nothing that a collector started is left when it is given up', async ({ signal }) => {
  await using box = await tree();
  const script = `echo $$ > ${box.at('pid')}; sleep 1000 & sleep 1000`;
  const spec = preflightOf(`  collectors:\n${run('slow', script, ', timeout: 300ms')}`);
  await collectFacts([spec], { ...quiet, signal });
  const { readFile } = await import('node:fs/promises');
  const pid = Number(await readFile(box.at('pid'), 'utf8'));
  let error: unknown;
  for (let tries = 0; tries < 100 && error === undefined; tries += 1) {
    try {
      process.kill(-pid, 0);
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
    } catch (thrown) {
      error = thrown;
    }
  }
  assert.match(String(error), 'ESRCH');
});

test('collectors run at the same time: each waits for the other', async ({ signal }) => {
  await using box = await tree();
  const meet = (own: string, other: string): string =>
    `touch ${box.at(own)}; while [ ! -e ${box.at(other)} ]; do sleep 0.01; done`;
  const spec = preflightOf(`  collectors:\n${run('a', meet('a', 'b'))}${run('b', meet('b', 'a'))}`);
  const facts = await collectFacts([spec], { ...quiet, signal });
  assert.equal(
    facts.map(({ status }) => status),
    ['collected', 'collected'],
  );
});

test('two checks of one port take turns', async ({ signal }) => {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  const check = (name: string): string =>
    `    - tcpPortStatus: {collectorName: ${name}, port: ${port}, interface: lo}\n`;
  const spec = preflightOf(`  collectors:\n${['a', 'b', 'c'].map(check).join('')}`);
  const facts = await collectFacts([spec, spec], { ...quiet, signal });
  assert.equal(
    facts.map((fact) => (fact.status === 'collected' ? fact.data : fact.problem)),
    Array.from({ length: 6 }, () => ({ status: 'connected', message: '' })),
  );
});

test('what is excluded is not run, and the general limit counts for all', async ({ signal }) => {
  await using box = await tree();
  const spec = preflightOf(`  collectors:
${run('never', `touch ${box.at('made')}`, ", exclude: 'true'")}${run('slow', 'sleep 1000')}`);
  const facts = await collectFacts([spec], { ...quiet, signal, limitMs: 100 });
  assert.equal(
    facts.map(({ name, status }) => [name, status]),
    [['slow', 'late']],
  );
});

test('cancelling stops all and is no result', async () => {
  const controller = new AbortController();
  const spec = preflightOf(`  collectors:\n${run('slow', 'sleep 1000')}`);
  const work = collectFacts([spec], {
    ...quiet,
    report: ({ type }) => {
      if (type === 'step-started') controller.abort(new Error('enough'));
    },
    signal: controller.signal,
  });
  let message = '';
  await work.catch((error: unknown) => {
    message = String(error);
  });
  assert.match(message, 'enough');
});

test('a mistake in a timeout, and a program that is not there, are told as reasons', async ({ signal }) => {
  const spec = preflightOf(`  collectors:
    - tcpConnect: {collectorName: x, address: '127.0.0.1:1', timeout: soon}
    - run: {collectorName: y, command: nosuchprogram}
  analyzers:
    - tcpConnect: {collectorName: x, outcomes: [{pass: {message: m}}]}
    - cpu: {outcomes: [{pass: {message: m}}]}
`);
  const facts = await collectFacts([spec], { ...quiet, signal });
  assert.equal(
    facts.map((fact) => (fact.status === 'collected' ? '' : fact.problem)),
    ['tcpConnect "x": timeout "soon" is not a duration such as 30s', 'run "y": nosuchprogram is not installed'],
  );
  assert.equal(
    analyzeFacts([spec], facts).map(({ verdict, message }) => [verdict, message]),
    [
      ['fail', 'cannot be evaluated: tcpConnect "x": timeout "soon" is not a duration such as 30s'],
      ['fail', 'cannot be evaluated: spec.yaml:11: nothing was collected for it'],
    ],
  );
});

test.run();
