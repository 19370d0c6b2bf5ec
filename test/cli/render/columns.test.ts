/** Lines on a terminal: as wide as it is, and no word broken at its edge. */
import { execa } from 'execa';
import { columns, fitted, screen, widthFor, wrapped } from '../../../src/cli/render/columns.ts';
import * as assert from '../../support/assert.ts';
import { MAIN } from '../../support/compiled.ts';
import { missing, unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/render/columns', { timeoutMs: 60_000 });
const onTerminal = unless(missing('script', 'stty'), test);

test('a line that is too long goes on below, further to the right', () => {
  assert.is(fitted('  one two three four', 12), '  one two\n    three\n    four');
  assert.is(fitted('short\n\n  also short', 12), 'short\n\n  also short');
});

test('a word that is wider than the screen stays whole, and blanks between columns stay', () => {
  assert.is(fitted('web   https://registry.example/a', 10), 'web\n  https://registry.example/a');
  assert.is(fitted('a     b     c', 20), 'a     b     c');
});

test('what does not fit after a tag is below its text', () => {
  const tag = '\u001b[33m[WARN]\u001b[39m';
  assert.is(fitted(`${tag} engine: does not respond`, 22), `${tag} engine: does\n       not respond`);
  assert.is(fitted('  [FAIL] one two', 18), '  [FAIL] one two');
  assert.is(fitted('  [FAIL] one two', 14), '  [FAIL] one\n       two');
});

test('colors have no width', () => {
  const red = '\u001b[31mfail\u001b[39m';
  assert.is(fitted(`${red} ${red} ${red}`, 14), `${red} ${red} ${red}`);
  assert.is(fitted(`${red} ${red} ${red}`, 13), `${red} ${red}\n  ${red}`);
});

test('the last column is below the others where they leave it too little room, and next to them elsewhere', () => {
  const rows = [
    ['CLUSTER', 'ADD-ON', 'REASON', 'WHY'],
    ['main', 'hello', 'ToApply', 'nothing: install begins with the next pass'],
  ];
  const before = screen.columns;
  try {
    screen.columns = 40;
    assert.equal(wrapped(rows), [
      'CLUSTER  ADD-ON  REASON',
      'main     hello   ToApply',
      '      nothing: install begins with the',
      '      next pass',
    ]);
    screen.columns = 160;
    const long = rows.map(([cluster = '', ...rest]) => [cluster.padEnd(70, 'x'), ...rest]);
    assert.match(wrapped(long)[1] ?? '', /ToApply {2}nothing: install begins with the next pass$/);
  } finally {
    screen.columns = before;
  }
});

test('a table that is wider than a terminal has its last columns below the others, and is whole elsewhere', () => {
  const rows = [
    ['add-on', 'version', 'package', 'last run, UTC', ''],
    ['web', '1.1.0', '373628c', '2026-11-27 02:50', ''],
    ['db', '2', '44136fa', '2026-11-27 02:51', 'files changed'],
  ];
  const before = { ...screen };
  try {
    screen.columns = 40;
    assert.is(columns(rows)[1], 'web     1.1.0    373628c  2026-11-27 02:50');
    screen.isTerminal = true;
    assert.equal(columns(rows), [
      'add-on  version  package',
      '      last run, UTC',
      'web     1.1.0    373628c',
      '      2026-11-27 02:50',
      'db      2        44136fa',
      '      2026-11-27 02:51, files changed',
    ]);
    screen.columns = 80;
    assert.is(columns(rows)[2], 'db      2        44136fa  2026-11-27 02:51  files changed');
  } finally {
    Object.assign(screen, before);
  }
});

test('a line above carets is cut around them, not broken', () => {
  const red = (text: string): string => `\u001b[31m${text}\u001b[39m`;
  const line = '    web: { version: "^1.0", replicas: 3 }';
  const carets = `${' '.repeat(20)}^^^^^^`;
  assert.is(fitted(`${line}\n${carets}`, 40), `${line.slice(0, 39)}…\n${carets}`);
  assert.is(fitted(`${line}\n${red(carets)}`, 20), `…version: "^1.0", r…\n${red(`${' '.repeat(10)}^^^^^^`)}`);
  assert.is(fitted(`short\n  ${'^'.repeat(30)}`, 20), `short\n  ${'^'.repeat(17)}`);
});

for (const [columns, width] of [
  [10, 40],
  [80, 80],
  [160, 160],
  [500, 200],
] as const) {
  test(`a terminal of ${columns} columns has lines of ${width}`, () => {
    assert.is(widthFor({ isTTY: true, columns }), width);
    assert.is(widthFor({ isTTY: false, columns }), undefined);
  });
}

/** What is shown on a terminal with so many columns. */
async function shownAt(columns: number, words: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const line = `stty cols ${columns}; exec "${process.execPath}" "${MAIN}" ${words}`;
  const { stdout } = await execa('script', ['-qec', line, '/dev/null'], {
    env: { TERM: 'xterm', NO_COLOR: '', ...env },
    stdin: 'ignore',
    reject: false,
  });
  return stdout.replaceAll('\r', '');
}

for (const columns of [40, 160]) {
  onTerminal(`help and errors fit into ${columns} columns, and use them`, async () => {
    const shown = await shownAt(columns, 'help install');
    // A word that is wider than the screen is on its own line.
    const lines = shown.split('\n').filter((line) => line.trim().includes(' '));
    const longest = Math.max(...lines.map(({ length }) => length));
    assert.ok(longest <= columns && longest > columns - 10, `${longest} of ${columns}`);
    const error = await shownAt(columns, 'new Web', { NO_COLOR: '1' });
    assert.match(error, /error USAGE/);
    assert.ok(
      error.split('\n').every(({ length }) => length <= columns),
      error,
    );
  });
}

onTerminal('colors are for terminals without NO_COLOR', async () => {
  assert.match(await shownAt(80, 'new Web'), '\u001b[');
  assert.not.match(await shownAt(80, 'new Web', { NO_COLOR: '1' }), '\u001b[31');
});

test.run();
