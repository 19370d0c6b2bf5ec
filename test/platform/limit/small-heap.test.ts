import { runProgram } from '../../../src/platform/process/run-program.ts';
import * as assert from '../../support/assert.ts';
import { compiledModule } from '../../support/compiled.ts';
import { never } from '../../support/context.ts';
import { curlew } from '../../support/curlew.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('limit/small-heap');
const MOST = 4 << 20;
/** Prints the bytes of the part of a heap for what is new, after much that is dropped at once and some that is kept for a while. */
const FILL = `
  const kept = [];
  for (let round = 0; round < 200; round += 1) {
    const made = Array.from({ length: 4000 }, (_, at) => ({ at, text: 'x' + at, list: [at] }));
    kept.push(made.slice(0, 400));
    if (kept.length > 30) kept.shift();
  }
  console.log(getHeapSpaceStatistics().find((one) => one.space_name === 'new_space').space_size);
`;
const IMPORT = "import { getHeapSpaceStatistics } from 'node:v8';";

async function newSpace(begin: string): Promise<number> {
  const code = `${IMPORT}\n${begin}\n${FILL}`;
  const { stdout } = await runProgram(process.execPath, ['--input-type=module', '-e', code], {
    env: {},
    signal: never,
  });
  return Number(stdout);
}

test('the heap of a process that keeps it small does not grow by garbage', async () => {
  const module_ = JSON.stringify(compiledModule('src/platform/limit/small-heap.ts'));
  const small = await newSpace(`const { keepHeapSmall } = await import(${module_}); keepHeapSmall();`);
  const usual = await newSpace('');
  assert.ok(small > 0 && small <= MOST, `${small} bytes`);
  assert.ok(usual >= 4 * small, `${usual} and ${small} bytes`);
});

test('a controller keeps its heap small from its start', async () => {
  await using box = await tree();
  // It ends at once, and then fills its heap.
  const code = `${IMPORT}\nprocess.on('exit', () => {${FILL}});`;
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
  const { exitCode, stdout, stderr } = await curlew(['controller', '--kubeconfig', 'missing.conf'], {
    cwd: box.path,
    env,
  });
  assert.ok(exitCode !== 0 && stderr.includes('missing.conf'), stderr);
  assert.ok(Number(stdout) > 0 && Number(stdout) <= MOST, `${stdout} bytes`);
});

test.run();
