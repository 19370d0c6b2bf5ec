/**
 * Draws docs/drawings: each text NAME.dot becomes NAME.svg, and a run of the first block of docs/addons.md terminal.svg, as root and
 * with the build of this checkout. usage: npm run drawings
 */
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { drawing } from './docs/drawings.ts';
import { comparable, drawTerminal } from './docs/terminal.ts';

const FOLDER = 'docs/drawings';
const TERMINAL = join(FOLDER, 'terminal.svg');
const MAIN = resolve('dist/cli/main.js');
const draw = await drawing(process.cwd());
for (const file of await readdir(FOLDER)) {
  if (!file.endsWith('.dot')) continue;
  const path = join(FOLDER, file.replace(/dot$/, 'svg'));
  await writeFile(path, draw(await readFile(join(FOLDER, file), 'utf8')));
  console.log(path);
}
if (existsSync(MAIN)) {
  const terminal = await drawTerminal(process.cwd(), MAIN);
  // Only times differ from one run to the next.
  if (comparable(terminal) !== comparable(await readFile(TERMINAL, 'utf8'))) await writeFile(TERMINAL, terminal);
  console.log(TERMINAL);
} else console.log(`${TERMINAL}: left as it is; npm run build, then try again`);
