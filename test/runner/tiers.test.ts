import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { chooseFiles, isShared, readTestFile, type Choice } from './tiers.ts';

const test = suite('runner/tiers');

const FILES = [
  readTestFile('test/core/ref.test.ts', ''),
  readTestFile('test/core/fuzz.test.ts', "import x from 'y';\n// soak: random cases\nconst test = 1;\n"),
  readTestFile('test/components/s3.test.ts', '// runs alone: fills the disk of the machine\n'),
  readTestFile('test/nightly/oracle.test.ts', '// not fast: an oracle\n'),
  readTestFile('test/cli/life.test.ts', '// not fast: 200 hooks\n'),
];

function names({ files, leftOut }: Choice): readonly unknown[] {
  return [files.map(({ path }) => path), leftOut.map(({ group, files: left }) => [group.title, left.length])];
}

test('each tier takes what the one before it takes, and says what it leaves out', () => {
  const [ref, fuzz, s3, oracle, life] = FILES.map(({ path }) => path);
  assert.equal(names(chooseFiles(FILES, 'fast', [])), [
    [ref, fuzz],
    [
      ['of test/components/', 1],
      ['of test/nightly/', 1],
      ['with a line `// not fast: WHY`', 1],
    ],
  ]);
  assert.equal(names(chooseFiles(FILES, 'default', [])), [[ref, fuzz, s3, life], [['of test/nightly/', 1]]]);
  assert.equal(names(chooseFiles(FILES, 'rest', [])), [[s3, life], [['of test/nightly/', 1]]]);
  assert.equal(names(chooseFiles(FILES, 'all', [])), [[ref, fuzz, s3, oracle, life], []]);
  assert.equal(names(chooseFiles(FILES, 'soak', [])), [[fuzz], []]);
});

test('where tools cannot be had, what needs none is still taken', () => {
  const [ref, fuzz, , , life] = FILES.map(({ path }) => path);
  assert.equal(names(chooseFiles(FILES, 'default', [], { canHaveTools: false })), [
    [ref, fuzz, life],
    [
      ['of test/components/', 1],
      ['of test/nightly/', 1],
    ],
  ]);
});

test('filters choose by parts of paths', () => {
  assert.equal(names(chooseFiles(FILES, 'default', ['core/ref', 's3'])), [
    ['test/core/ref.test.ts', 'test/components/s3.test.ts'],
    [],
  ]);
  assert.equal(names(chooseFiles(FILES, 'default', ['oracle'])), [[], [['of test/nightly/', 1]]]);
});

test('a file says by lines of its own that it runs alone, or has more to do in a soak', () => {
  assert.equal(
    FILES.map(({ alone, soak }) => [alone, soak]),
    [
      [undefined, undefined],
      [undefined, 'random cases'],
      ['fills the disk of the machine', undefined],
      [undefined, undefined],
      [undefined, undefined],
    ],
  );
});

test('files of the fast tier share processes, but for those with a line against it, those that run alone, and soaks', () => {
  const [ref, fuzz, ...others] = FILES;
  const own = readTestFile('test/core/heap.test.ts', '// own process: measures memory\n');
  const alone = readTestFile('test/core/clock.test.ts', '// runs alone: the clock\n');
  assert.equal(
    [ref, fuzz, ...others, own, alone].map((file) => file !== undefined && isShared(file, 'default')),
    [true, true, false, false, false, false, false],
  );
  assert.is(fuzz !== undefined && isShared(fuzz, 'soak'), false);
});

test.run();
