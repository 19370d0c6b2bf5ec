/** Draws docs/drawings: each text NAME.dot becomes NAME.svg. usage: npm run drawings */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawing } from './docs/drawings.ts';

const FOLDER = 'docs/drawings';
const draw = await drawing(process.cwd());
for (const file of await readdir(FOLDER)) {
  if (!file.endsWith('.dot')) continue;
  const path = join(FOLDER, file.replace(/dot$/, 'svg'));
  await writeFile(path, draw(await readFile(join(FOLDER, file), 'utf8')));
  console.log(path);
}
