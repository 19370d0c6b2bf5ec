/** Every command of curlew in a shell block of a page is one that this version accepts. */
import { readdir, readFile } from 'node:fs/promises';
import { commandOf } from '../../src/cli/commands.ts';
import { splitName } from '../../src/cli/split-name.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/commands-in-pages');

const PAGES = [
  'README.md',
  ...(await readdir('docs')).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
];
/** A command behind what may stand before it on a line, up to what ends it there. */
const COMMAND =
  /(?:^\$? ?|[;|&(] *|\b(?:sudo|then|do) )(?:curlew|(?:bundle|\.)\/(?:tasks|(install|join|upgrade))\.sh)((?: +[^\s#|&;<>)][^\s|&;<>)]*)*)/gm;

/** The arguments of each command in the shell blocks of a text; a script of a bundle gives its own name. */
function commandsIn(text: string): readonly (readonly string[])[] {
  return [...text.matchAll(/^```(?:sh|console|bash)\n([^]*?)^```/gm)].flatMap(([, block = '']) =>
    [...block.replaceAll(/\\\n\s*/g, ' ').matchAll(COMMAND)].map(([, script, rest = '']) => [
      ...(script === undefined ? [] : [script]),
      ...rest
        .split(' ')
        .flatMap((word) => (word === '' ? [] : [word.replaceAll(/["']/g, '').replace(/^~(?=\/)/, '/home/user')])),
    ]),
  );
}

/** Why a command is not accepted; undefined if it is. */
async function refusalOf(words: readonly string[]): Promise<string | undefined> {
  // Options of the program are not those of a command.
  if (['--help', '--version', '-v'].includes(words[0] ?? '--help')) return undefined;
  try {
    const { name, args } = splitName(words);
    const { notes } = readArguments(await commandOf(name), args);
    return notes.length === 0 ? undefined : notes.join('; ');
  } catch (error) {
    if (error instanceof CurlewError) return error.message;
    throw error;
  }
}

test('every command in the pages is accepted', async () => {
  const refused: string[] = [];
  let count = 0;
  for (const page of PAGES) {
    for (const words of commandsIn(await readFile(page, 'utf8'))) {
      count += 1;
      const why = await refusalOf(words);
      if (why !== undefined) refused.push(`${page}: ${words.join(' ')}: ${why}`);
    }
  }
  assert.equal(refused, []);
  assert.ok(count > 150, String(count));
});

test('a command, an option and a value that do not exist are found', async () => {
  const page =
    '```sh\ncurlew bulid web   # builds it\ntrue && sudo bundle/install.sh --rooot x \\\n  --yes | tee log\n```\n';
  const found = commandsIn(`${page}\`\`\`yaml\ncurlew: x\n\`\`\`\n`);
  assert.equal(found, [
    ['bulid', 'web'],
    ['install', '--rooot', 'x', '--yes'],
  ]);
  assert.equal(await Promise.all(found.map(refusalOf)), [
    'unknown command "bulid"',
    'curlew install: unknown option --rooot',
  ]);
  assert.match((await refusalOf(['install', '--preflights', 'never'])) ?? '', 'never');
});

test.run();
