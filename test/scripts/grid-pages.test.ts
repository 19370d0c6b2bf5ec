/** The pages about clusters are promises: scenarios of `scripts/grid` run each of their commands on real nodes. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { splitName } from '../../src/cli/split-name.ts';
import { compareVersions } from '../../src/core/ref.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('pages of the grid');
const ROOT = join(import.meta.dirname, '../..');
const PAGES = ['docs/cluster.md', 'docs/clusters-as-data.md'];

/** They need the internet, or only look; other tests run them. */
const ELSEWHERE = new Set(['curlew lint', 'curlew build']);

/** The programs of curlew in blocks of sh: `./tasks.sh node remove`, `curlew lint`, `./install.sh`. */
function commandsOf(page: string): readonly string[] {
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
  return blocks
    .flatMap((block) => block.split(/\n|&&/))
    .flatMap((line) => {
      const [program = '', ...words] = line.trim().split(' ');
      if (program !== 'curlew' && program !== './tasks.sh') return program.startsWith('./') ? program : [];
      return `${program} ${splitName(words).name}`;
    });
}

async function scenarios(): Promise<string> {
  const folder = join(ROOT, 'test/grid');
  const own = (await readdir(folder)).filter((name) => name.endsWith('.bash')).map((name) => join(folder, name));
  const texts = await Promise.all([join(ROOT, 'scripts/grid'), ...own].map(async (path) => readFile(path, 'utf8')));
  return texts.join('\n').replaceAll(/^ *#.*$/gm, '');
}

test('each command of the pages about clusters is run by a scenario', async () => {
  const text = await scenarios();
  const isRun = (command: string): boolean => {
    const words = command.replace(/^(?:curlew |\.\/)/, '').replaceAll('.', '\\.');
    return new RegExp(`(?<![\\w-])${words}(?![\\w-])`).test(text);
  };
  for (const page of PAGES) {
    const commands = [...new Set(commandsOf(await readFile(join(ROOT, page), 'utf8')))];
    assert.ok(commands.length > 5, `${page}: ${commands.join()}`);
    assert.equal(
      commands.filter((command) => !ELSEWHERE.has(command) && !isRun(command)),
      [],
    );
  }
});

test('each scenario that scripts/grid lists is a file, and is in its help', async () => {
  const said = async (word: string): Promise<string> => (await execa(join(ROOT, 'scripts/grid'), [word])).stdout;
  const [list, help] = await Promise.all([said('list'), said('--help')]);
  const names = list
    .slice(0, list.indexOf('\n\n'))
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '');
  const files = new Set(await readdir(join(ROOT, 'test/grid')));
  assert.equal(
    names.filter((name) => !files.has(`${name}.bash`) || !help.includes(`\n  ${name}  `)),
    [],
  );
  for (const wrong of ['smo.e', 'none']) {
    const { stderr } = await execa(join(ROOT, 'scripts/grid'), ['run', wrong], { reject: false });
    assert.match(stderr, `${wrong} is neither a scenario (scripts/grid list) nor a file`);
  }
});

test('each version of Kubernetes in the pages about clusters, and in the README, has a package', async () => {
  const shipped = await readdir(join(ROOT, 'packages/kubernetes'));
  const newest =
    shipped
      .filter((name) => name.startsWith('1.'))
      .toSorted(compareVersions)
      .at(-1) ?? '';
  for (const page of [...PAGES, 'README.md']) {
    const text = await readFile(join(ROOT, page), 'utf8');
    const named = [...text.matchAll(/\bv(1\.[23]\d\.\d+)\b/g)].map(([, version = '']) => version);
    assert.equal(
      named.filter((version) => !shipped.includes(version)),
      [],
      page,
    );
    const minors = [...text.matchAll(/version: (1\.[23]\d)\.x/g)].map(([, minor = '']) => minor);
    assert.ok(
      minors.every((minor) => newest.startsWith(`${minor}.`)),
      `${page}: ${minors.join()}`,
    );
  }
});

test.run();
