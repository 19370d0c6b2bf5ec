/** Writes the reference pages that are made from the tables in src. usage: npm run docs */
import { writeFile } from 'node:fs/promises';
import { manifestPage } from './docs/manifest-page.ts';

const PAGES = { 'docs/manifest.md': manifestPage };

for (const [path, make] of Object.entries(PAGES)) {
  await writeFile(path, make());
  console.log(path);
}
